"""The page says what the folder holds, is the same every time, and works with few runs and without a profile."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from jahs.files.runs import VISITS, read_profile, read_runs
from jahs.files.tables import read_table, sort_by, take, typed, write_table
from jahs.schema import (
    CONFIG_COLUMNS,
    CONFIG_TABLE_COLUMNS,
    OPS,
    RUN_COLUMNS,
    SOURCE_DEFAULTS,
    VISIT_COLUMNS,
)
from pipeline.describe import cell_plots, plots
from pipeline.describe.__main__ import main, write_page
from pipeline.describe.measured import MeasuredRuns, epoch_agreement, read_measured, seed_noise, value_agreement
from pipeline.describe.page import describe
from tests.building import make_runs_folder
from workshop.measured import last_rows
from workshop.pages.html import svg_text
from workshop.pages.markdown import to_markdown
from workshop.pages.style import follow_scheme

pytestmark = pytest.mark.slow

PLOTS = {"accuracies", "curves", "depth", "effects", "epochs", "fidelities", "map", "noise", "seeds", "work"}
DIVERGED = (1, 2, 10)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs_folder(tmp_path_factory.mktemp("data") / "runs", 216, diverged=DIVERGED)


@pytest.fixture(scope="module")
def measured(runs: Path) -> MeasuredRuns:
    return read_measured(runs)


@pytest.fixture(scope="module")
def out(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pages") / "data"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([str(runs), "--out", str(out)]) == 0
    report = json.loads(printed.getvalue())
    assert report["bytes"] == sum(Path(path).stat().st_size for path in report["files"])
    assert report["bytes"] < 1_000_000
    return out


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty figures, for tests that read the text alone."""
    for module in (plots, cell_plots):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and function.__annotations__["return"] == "Figure":
                monkeypatch.setattr(module, name, lambda *_: Figure())


def page_of(out: Path) -> str:
    return (out / "digits.md").read_text(encoding="utf-8")


def change(folder: Path, name: str, values: np.ndarray) -> None:
    """Replace a column of a folder's runs; values in the order of `read_runs`."""
    table = typed({**read_runs(folder), name: values}, RUN_COLUMNS)
    write_table(folder / "runs-0001.parquet", table, RUN_COLUMNS)


def test_the_page_says_how_much_was_measured(out: Path, runs: Path) -> None:
    page = page_of(out)
    last = last_rows(read_runs(runs))
    assert "| configs | 216: 194 with 1 seed, 22 with 3 seeds |" in page
    assert "| configs with a finished run | 213 |" in page
    assert "| runs | 260 |" in page
    assert "| diverged runs | 5, 1.9 % of all |" in page
    assert f"| cost | {last['runtime'].sum() / 3600:.1f} core-hours |" in page
    assert f"| test | cpu | 0 | 260 | {last['runtime'].mean():.1f} | {last['runtime'].max():.1f} |" in page
    assert "CPU time of 216 configs on an otherwise idle test, torch 0; the minimum of 5 repeats," in page
    assert len(re.findall(r"^\| [135] \| (?:4|8|16) \| [\d.]+ \| 8 \|", page, re.MULTILINE)) == 27


@pytest.mark.usefixtures("without_plots")
def test_times_of_another_processor_are_counted_and_not_compared(runs: Path, tmp_path: Path) -> None:
    """Every second seed ran elsewhere, a hundred times as long: it costs, and moves neither groups nor noise."""
    for name in ("here", "there"):
        shutil.copytree(runs, tmp_path / name)
    table = read_runs(tmp_path / "there")
    is_elsewhere = table["seed"] == 1
    change(tmp_path / "there", "machine", np.where(is_elsewhere, "another", table["machine"]))
    change(tmp_path / "there", "runtime", np.where(is_elsewhere, 100 * table["runtime"], table["runtime"]))
    here, there = (read_measured(tmp_path / name) for name in ("here", "there"))
    assert np.nansum(there.seconds) > 5 * np.nansum(here.seconds)
    noise = {each.metric: each for each in seed_noise(there)}
    assert noise["runtime"].mean_difference < 10
    assert noise["valid_acc"] == {each.metric: each for each in seed_noise(here)}["valid_acc"]
    assert "\n| another | cpu | 0 | 22 | " in to_markdown(describe(there))


@pytest.mark.usefixtures("without_plots")
def test_one_processor_is_meant_everywhere(runs: Path, tmp_path: Path) -> None:
    """The one of most measured epochs, also where another one has more runs, which diverged in their first epoch."""
    folder = tmp_path / "runs"
    shutil.copytree(runs, folder)
    (folder / "profile.parquet").unlink()
    (folder / VISITS).unlink(missing_ok=True)
    table = read_runs(folder)
    ids = np.unique(table["config_id"])
    at_once = np.isin(table["config_id"], ids[: 2 * len(ids) // 3])
    table = {**table, "status": np.where(at_once, "diverged", table["status"])}
    table["machine"] = np.where(at_once, "another", table["machine"])
    table["valid_loss"] = np.where(at_once, np.nan, table["valid_loss"])
    write_table(folder / "runs-0001.parquet", take(table, ~at_once | (table["epoch"] == 1)), RUN_COLUMNS)
    found = read_measured(folder)
    assert (found.last["machine"] == "another").sum() > found.is_timed.sum() > 0
    assert found.machine == "test"
    assert "runtimes are those on test." in " ".join(to_markdown(describe(found)).split())
    assert len(found.last["seed"]) - (found.last["machine"] == "another").sum() == found.is_timed.sum()


def test_the_final_test_set_is_not_shown(tmp_path: Path) -> None:
    folder = make_runs_folder(tmp_path / "runs", 30)
    table = read_table(folder / "configs.parquet", CONFIG_COLUMNS)
    table = typed({**table, **SOURCE_DEFAULTS}, CONFIG_TABLE_COLUMNS)
    table["source"] = np.where(np.arange(30) < 4, "final", "uniform")
    write_table(folder / "configs.parquet", table, CONFIG_TABLE_COLUMNS)
    found = read_measured(folder)
    assert found.n_configs == 26
    assert not np.isin(table["config_id"][:4], found.runs["config_id"]).any()


def test_every_plot_is_linked_and_every_link_leads_to_a_plot(out: Path) -> None:
    linked = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page_of(out))
    assert {Path(link).stem for link in linked} == PLOTS
    assert sorted(out / link for link in linked) == sorted(out.glob("digits/*"))


def test_the_same_runs_give_the_same_bytes(out: Path, runs: Path) -> None:
    for figure in describe(read_measured(runs)).figures:
        written = (out / f"digits/{figure.name}.svg").read_text(encoding="utf-8")
        assert follow_scheme(svg_text(figure)) == written, figure.name


def test_plots_are_small_vectors_without_a_date_that_follow_the_readers_colours(out: Path) -> None:
    for path in out.glob("digits/*.svg"):
        text = path.read_text(encoding="utf-8")
        assert ET.fromstring(text).tag.endswith("svg")
        assert "prefers-color-scheme:dark" in text
        assert not re.search(r"\b20\d\d-\d\d|matplotlib v|dc:date", text)
        assert "data:image" not in text
        assert len(text) < 250_000


def test_labels_stay_text(out: Path) -> None:
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", (out / "digits/effects.svg").read_text(encoding="utf-8"))
    assert {"10⁻⁵", "10⁻³", "conv 3×3", "Hardswish", "TrivialAugment", "0.25", "16"} <= set(labels)


def test_one_run_makes_a_page_that_says_what_is_missing_and_old_plots_go(tmp_path: Path) -> None:
    folder = make_runs_folder(tmp_path / "runs", 1, repeat_every=1)
    table = read_runs(folder)
    write_table(folder / "runs-0001.parquet", take(table, table["seed"] == 0), RUN_COLUMNS)
    (folder / "profile.parquet").unlink()
    (tmp_path / "out/digits").mkdir(parents=True)
    (tmp_path / "out/digits/old.svg").write_text("")
    (tmp_path / "out/notes.md").write_text("mine")
    paths = write_page(folder, tmp_path / "out")
    page = page_of(tmp_path / "out")
    assert "1 config of the joint space, 1 training. After every epoch, a run records" in page
    assert "There is no quiet profile (`latency`, `step_time_s`) yet. `python -m pipeline.profile`" in page
    assert "This needs 60 configs" in page
    assert "No config has two finished runs" in page
    missing = {"fidelities", "map", "noise", "seeds"}
    assert {path.stem for path in (tmp_path / "out/digits").iterdir()} == PLOTS - missing
    assert (tmp_path / "out/notes.md").read_text() == "mine"
    assert all(path.is_file() for path in paths)


@pytest.mark.usefixtures("without_plots")
def test_halves_of_the_visits_show_how_far_times_can_be_trusted(tmp_path: Path) -> None:
    folder = make_runs_folder(tmp_path / "runs", 3, repeat_every=1)
    profile = read_profile(folder)
    n = len(profile["config_id"])
    visits = {name: np.tile(profile[name], 2) for name in ("config_id", "machine", "torch_version", "protocol")}
    visits |= {name: np.append(profile[name], 1.1 * profile[name]) for name in ("latency", "step_time_s")}
    visits["latency"][[n, n + 1]] = visits["latency"][[n + 1, n]]
    table = typed({**visits, "visit": np.repeat([0, 1], n), "repeat": 0}, VISIT_COLUMNS)
    write_table(folder / VISITS, sort_by(table, ("config_id", "visit")), VISIT_COLUMNS)
    write_page(folder, tmp_path / "out")
    page = page_of(tmp_path / "out")
    assert f"| `step_time_s` | {n} configs | 1.000 | 9.5 % |" in page
    assert re.search(rf"\| `latency` \| {n} configs \| 0\.333 \|", page)
    write_table(folder / VISITS, take(table, table["visit"] == 0), VISIT_COLUMNS)
    write_page(folder, tmp_path / "out")
    assert "Kendall's tau | median difference" not in page_of(tmp_path / "out")


def test_a_folder_in_which_nothing_finished_is_refused(tmp_path: Path) -> None:
    folder = make_runs_folder(tmp_path / "runs", 2, diverged=(0, 1))
    assert main([str(folder), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert main([str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]) == 2


@pytest.mark.usefixtures("without_plots")
def test_a_place_that_cannot_be_written_is_refused(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert main([str(runs), "--out", str(tmp_path / "file")]) == 2


def test_noise_between_seeds_is_what_was_planted(tmp_path: Path) -> None:
    folder = make_runs_folder(tmp_path / "runs", 6, repeat_every=2)
    table = read_runs(folder)
    place = np.unique(table["config_id"], return_inverse=True)[1]
    change(folder, "valid_acc", 10.0 * place + table["seed"])
    change(folder, "test_acc", np.where(table["seed"] == 1, 90 - 10.0 * place, 10.0 * place))
    change(folder, "runtime", np.exp(0.1 * table["seed"]) * table["epoch"])
    noise = {row.metric: row for row in seed_noise(read_measured(folder))}
    assert noise["valid_acc"].tau == 1
    assert noise["valid_acc"].n_configs == 3
    assert noise["valid_acc"].mean_difference == pytest.approx(4 / 3)  # 1, 1 and 2 between three seeds
    assert noise["test_acc"].tau == pytest.approx(-1 / 3)  # -1, -1 and 1
    assert noise["runtime"].mean_difference == pytest.approx(100 * 0.4 / 3, rel=1e-4)
    assert np.isnan(noise["runtime"].tau)


def test_a_diverged_seed_has_no_part_in_the_noise(tmp_path: Path) -> None:
    folder = make_runs_folder(tmp_path / "runs", 3, repeat_every=1, diverged=(1,))
    assert {row.n_configs for row in seed_noise(read_measured(folder))} == {2}


def test_epochs_agree_with_the_last_as_their_orders_do(measured: MeasuredRuns) -> None:
    n_epochs = measured.curves["valid_acc"].shape[1]
    planted = np.repeat(measured.final[:, None], n_epochs, axis=1)
    planted[:, 0] = -measured.final
    overall, within = epoch_agreement(replace(measured, curves={**measured.curves, "valid_acc": planted}))
    assert overall.tolist() == [-1.0] + [1.0] * (n_epochs - 1)
    assert within.tolist() == pytest.approx([-1.0] + [1.0] * (n_epochs - 1))


def test_values_that_prefer_the_same_configs_agree_and_others_do_not(measured: MeasuredRuns) -> None:
    alike = value_agreement(measured, "N")
    assert alike is not None
    assert alike[0, 1] > 0.6
    final = measured.curves["valid_acc"].copy()
    chosen = measured.configs["N"] == 5
    final[chosen, -1] = 100 - final[chosen, -1]
    turned = value_agreement(replace(measured, curves={**measured.curves, "valid_acc": final}), "N")
    assert turned is not None
    assert turned[0, 1] == alike[0, 1]
    assert turned[0, 2] < -0.6
    assert turned[2, 2] == pytest.approx(alike[2, 2])
    assert np.array_equal(turned, turned.T)


def test_a_first_seed_that_diverged_is_replaced_by_the_next(tmp_path: Path) -> None:
    folder = make_runs_folder(tmp_path / "runs", 2, repeat_every=1)
    table = read_runs(folder)
    is_bad = (table["seed"] == 0) & (table["config_id"] == table["config_id"][0])
    change(folder, "status", np.where(is_bad, "diverged", "finished"))
    found = read_measured(folder)
    second = table["valid_acc"][(table["seed"] == 1) & (table["config_id"] == table["config_id"][0])]
    assert np.array_equal(found.curves["valid_acc"][0], second.astype(np.float64))


@pytest.mark.usefixtures("without_plots")
def test_the_caveat_of_a_task_follows_the_first_paragraph(measured: MeasuredRuns) -> None:
    page = to_markdown(describe(replace(measured, task=replace(measured.task, caveat="Short training."))))
    _, first, second, *_ = page.split("\n\n")
    assert first.startswith("216 configs")
    assert second == "**Caveat:** Short training."


@pytest.mark.usefixtures("without_plots")
def test_a_saved_comparison_with_the_real_landscape_is_on_the_page(measured: MeasuredRuns) -> None:
    epoch = {"rho": 0.9, "rho_low": 0.8, "rho_high": 0.95, "tau": 0.7, "tau_within_groups": None, "rho_full_size": 0.6}
    check = {
        "n_configs": 81,
        "n_full_size": 12,
        "epochs": {"20": epoch, "200": epoch, "3": epoch},
        "resolution": {"ours": 12.75, "real": 15.21, "ratio": 0.84},
    }
    page = to_markdown(describe(replace(measured, landscape=check)), has_png=False)
    rows = [line for line in page.splitlines() if " of 200 |" in line]
    assert rows[0] == "| 200 of 200 | 0.900 (0.800 to 0.950) | 0.700 | – | 0.600 |"
    assert [row.split()[1] for row in rows] == ["200", "20", "3"]
    assert "gains 12.8 points here and 15.2 points on the real landscape" in page
    few = to_markdown(describe(replace(measured, landscape={**check, "n_full_size": 3})), has_png=False)
    assert "Spearman at full size" in page
    assert "Spearman at full size" not in few
    assert "NAS-Bench-201" not in page
    curve = [{"epoch": epoch, "ours": 0.8, "real": real} for epoch, real in ((3, 0.5), (75, 0.79), (200, 1.0))]
    curve[0]["ours"] = 0.85
    page = to_markdown(describe(replace(measured, landscape={**check, "curve": curve})), has_png=False)
    assert (
        "agrees with epoch 200 (0.800) as well as epoch 75 of the real landscape itself does (0.790), and most with "
        "epoch 3 (0.850)." in page
    )
    late = [{**at, "real": 1.0} for at in curve]
    page = to_markdown(describe(replace(measured, landscape={**check, "curve": late})), has_png=False)
    assert "agrees less with epoch 200 (0.800) than early epochs of the real landscape itself do" in page
    cells = {"n_cells": 14, "200": epoch, "12": {**epoch, "rho": 0.5}}
    page = to_markdown(describe(replace(measured, landscape={**check, "cells": cells})), has_png=False)
    assert "14 cells of NAS-Bench-201 were trained" in page
    assert "0.900 (0.800 to 0.950) after 200 epochs and 0.500 (0.800 to 0.950) after 12 epochs." in page
    assert "real landscape" not in to_markdown(describe(measured), has_png=False)


def test_the_same_cells_are_at_one_place_of_the_map_and_the_map_is_the_same_again(measured: MeasuredRuns) -> None:
    places = cell_plots.embedding(measured)
    np.testing.assert_array_equal(cell_plots.embedding(measured), places)
    ops = np.column_stack([measured.configs[op] for op in OPS])
    _, of = np.unique(ops, axis=0, return_inverse=True)
    for cell in np.unique(of).tolist():
        assert len(np.unique(places[of.ravel() == cell], axis=0)) == 1


def test_sources_are_told_apart_the_most_frequent_first(measured: MeasuredRuns) -> None:
    sources = np.where(np.arange(len(measured.final)) % 3 == 0, "cells", "uniform")
    several = replace(measured, configs={**measured.configs, "source": sources})
    masks = cell_plots.by_source(several)
    assert list(masks) == ["uniform", "cells"]
    assert sum(is_in.sum() for is_in in masks.values()) == len(sources)
    figure = cell_plots.accuracy_by_source(several)
    assert [text.get_text().partition(",")[0] for text in figure.axes[0].get_legend().get_texts()] == [*masks]


def test_the_spread_of_seeds_is_that_of_the_repeated_configs(measured: MeasuredRuns) -> None:
    mean, sd = cell_plots.seed_spread(measured)
    last = take(measured.last, measured.last["status"] == "finished")
    by_config = [last["valid_acc"][last["config_id"] == i].astype(float) for i in np.unique(last["config_id"])]
    repeated = [values for values in by_config if len(values) > 1]
    np.testing.assert_allclose(mean, [values.mean() for values in repeated])
    np.testing.assert_allclose(sd, [values.std(ddof=1) for values in repeated], atol=1e-6)
