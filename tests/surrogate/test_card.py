"""The card: it says what is wrong before what is right, and its page needs nothing but itself."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from jahs.errors import CorruptFile, MissingData, UnknownFormat
from jahs.release import read_release, releases, write_release
from jahs.tasks.definitions import TASKS
from surrogate.card import page as card
from surrogate.card.__main__ import main
from workshop.pages.document import Document, Table, Text, sections_of
from workshop.pages.html import to_html
from workshop.pages.markdown import to_markdown

SCORES = {"n": 30, "r2": 0.9, "tau": 0.8, "sparse_tau": 0.79, "rmse": 3.0, "mae": 2.0, "bias": 0.1}
CUT = {"model": SCORES, "ceiling": dict.fromkeys(SCORES, 0.9)}
SIZE = {"settings": {"n_trees": 100, "max_depth": 4}, "n_nodes": 900, "tau": 0.81}
LAW = {"n_configs": 1400, "value": 0.9, "low": 0.8, "high": 0.95, "level": 0.9, "exponent": -0.3}
METRIC: dict[str, Any] = {
    "features": {"name": "accuracy", "columns": 73},
    "settings": {"n_trees": 100, "max_depth": 4, "learning_rate": 0.1},
    "nodes": 900,
    "fitted_on": {"rows": 10, "configs": 5},
    "refitted_on": {"rows": 12, "configs": 6},
    "train_by_group": [0],
    "test": {
        "cuts": {"all": CUT, "last epoch": CUT, "epochs 1-1": CUT, "best tenth": CUT, "N=1 W=4 Resolution=0.25": CUT},
        "tau_by_epoch": [{"epoch": e, "n": 30, "tau": 0.7 + e / 100, "ceiling": 0.9} for e in range(1, 5)],
        "calibration": [{"n": 10, "predicted": v, "measured": v + 1, "spread": 0.5} for v in (20.0, 50.0, 80.0)],
        "tau_within_groups": 0.7,
        "tau_interval": [0.7, 0.86],
        "n_configs": 30,
        "points": [[20.0, 25.0, 0], [50.0, 45.0, 13], [80.0, 82.0, 26]],
        "residuals": [{"group": g, "n": 1, "quantiles": [-2.0, -1.0, 0.0, 1.0, 2.0]} for g in (0, 13, 26)],
        "is_relative": False,
    },
    "refitted_test": {"all": {"model": SCORES}, "last epoch": {"model": SCORES}},
    "search": {
        "evaluations": [{"number": n, "tau": 0.7 + n / 100, "settings": {}, "seconds": 1.0} for n in range(1, 6)],
        "default_tau": 0.78,
        "beats_default": True,
        "is_of_this_split": True,
        "n_valid_configs": 30,
        "sizes": [SIZE, {**SIZE, "n_nodes": 2000}],
        "chosen": SIZE,
    },
    "learning_curve": {
        "points": [{"n_configs": n, "seed": 0, "tau": 0.5 + n / 1000, "r2": 0.5} for n in (50, 100, 200)],
        "predictions": {"tau": LAW, "check: tau at 200 from smaller sizes": {**LAW, "n_configs": 200}},
        "not_predicted": {"r2": "a curve and its spread need 4 sizes, and there are 1"},
    },
}  # fmt: skip
QUALITY: dict[str, Any] = {
    "format": 1,
    "data": {
        "configs": 200,
        "parts": {"train": 140, "valid": 30, "test": 30},
        "runs": 240,
        "repeated_configs": 20,
        "rows": 2880,
        "max_epoch": 12,
        "diverged_runs": {"train": 3, "valid": 0, "test": 1},
        "machines": {"a <fast> processor": 230, "another, slower": 10},
        "timing_machine": "a <fast> processor",
        "profile_machine": "another",
        "groups": [{"N": 1, "W": 4, "Resolution": 0.25, "train": 0, "valid": 1, "test": 0}],
        "small_groups": 1,
        "fewest": 4,
    },
    "missing": {"latency": "there is no profile yet"},
    "metrics": {"runtime": {**METRIC, "search": None}, "valid_acc": METRIC},
    "compared": {"n_macs": {**SCORES, "relative_error": {"mean": 0.1, "most": 0.5}}},
    "noise": {"reason": "2 configs were trained with more than one seed"},
    "references": {"fronts": [{"metrics": ["valid_acc", "n_macs"], "configs": 12}]},
    "requirements": [
        {
            "metric": "valid_acc", "score": "tau", "cut": "last epoch", "required": 0.92, "n_configs": 30, "value": 0.8,
            "ceiling": 0.9, "reached": 0.889, "is_met": False, "is_due": False,
        },
        {
            "metric": "latency", "score": "tau", "cut": "all", "required": 0.9, "n_configs": 0, "value": None,
            "ceiling": None, "reached": None, "is_met": None, "is_due": False,
        },
        {
            "metric": "valid_acc", "score": "r2", "cut": "all", "required": 0.95, "n_configs": 30, "value": 0.85,
            "ceiling": 0.93, "reached": 0.85, "is_met": False, "is_due": False,
        },
    ],
}  # fmt: skip


def write(folder: Path, quality: dict[str, Any] | None) -> Path:
    folder.mkdir(exist_ok=True)
    write_release(folder / "release", manifest_facts={"task": "digits", "commit": "abc"}, quality=quality)
    return folder / "release"


def changed(change: Any) -> dict[str, Any]:
    quality = copy.deepcopy(QUALITY)
    change(quality)
    return quality


def markdown(folder: Path, quality: dict[str, Any]) -> str:
    return to_markdown(card.card(read_release(write(folder, quality))), has_figures=False)


def test_the_noise_that_is_drawn_stands_beside_what_was_measured(tmp_path: Path) -> None:
    line = {"metric": "valid_acc", "region": "all", "n_configs": 9, "freedom": 18, "measured": 1.0, "drawn": 1.04}
    lines = [{**line, "ratio": 1.04, "low": 0.9, "high": 1.2}]
    lines += [{**line, "region": "best tenth", "drawn": 1.5, "ratio": 1.5, "low": 1.2, "high": 1.8}]
    counts = {"repeated_configs": 9, "timed_repeated_configs": 8}
    noise = {"counts": counts, "folds": [], "test": [], "realism": [], "seed_sd": lines}
    text = markdown(tmp_path, {**QUALITY, "noise": noise})
    assert "| valid_acc | predicted best tenth | 9 | 18 | 1.00 points | 1.50 points | 1.50 (1.20 to 1.80) |" in text
    assert "does not include 1 for: valid_acc, predicted best tenth." in text


def test_the_count_of_configs_and_every_weakness_come_first(tmp_path: Path) -> None:
    text = markdown(tmp_path, QUALITY)
    opening = text[: text.index("## At a glance")]
    for part in (
        "**200 configs** (140 train, 30 valid, 30 test)",
        "200 configs, not the 2,000",
        "valid_acc, runtime: 1 of 1 fidelity groups have fewer than 4 training configs, 1 have none",
        "There is no model of latency: there is no profile yet",
        "Default settings, not tuned: runtime.",
    ):
        assert part in opening
    assert (
        "| valid_acc | tau / noise ceiling | last epoch | 30 | 0.800 | 0.900 | 0.889 | 0.92 | not reached yet |" in text
    )
    assert "| latency | tau / noise ceiling | all | 0 | – | – | – | 0.90 | too few data |" in text
    assert "| R2 | all | 30 | 0.850 | 0.930 | 0.850 | 0.95 | not reached yet; the noise ceiling is lower, too |" in text
    assert text.index("## valid_acc") < text.index("## runtime")


def test_every_metric_is_described_by_its_own_configs(tmp_path: Path) -> None:
    def change(quality: dict[str, Any]) -> None:
        metrics = quality["metrics"]
        metrics["valid_acc"] |= {"train_by_group": [5] * 27, "fitted_on": {"rows": 1600, "configs": 135}}
        metrics["runtime"] |= {"train_by_group": [3, 0, *[5] * 25], "fitted_on": {"rows": 128, "configs": 128}}

    text = markdown(tmp_path, changed(change))
    assert "| valid_acc | 135 | 30 |" in text
    assert "| runtime | 128 | 30 |" in text
    assert "runtime: 2 of 27 fidelity groups have fewer than 4 training configs, 1 have none." in text
    assert text.count("fidelity groups have fewer") == 1


def test_the_embedded_releases_have_a_card() -> None:
    for folder in releases().values():
        assert to_markdown(card.card(read_release(folder))).startswith("# Quality of the surrogates")


def test_the_processors_of_both_times_are_named(tmp_path: Path) -> None:
    text = markdown(tmp_path, QUALITY)
    assert "runtimes were measured on a <fast> processor, latencies on another." in text
    assert "| another, slower | 10 |" in text


def test_a_search_that_found_nothing_better_is_named(tmp_path: Path) -> None:
    def change(quality: dict[str, Any]) -> None:
        quality["metrics"]["valid_acc"]["search"] |= {"beats_default": False, "is_of_this_split": False}

    text = markdown(tmp_path, changed(change))
    assert "Default settings, because the search found no better ones: valid_acc." in text
    assert "Settings from a search on other data: valid_acc." in text


def test_what_was_due_and_not_reached_stands_out(tmp_path: Path) -> None:
    def change(quality: dict[str, Any]) -> None:
        quality["requirements"][0]["is_due"] = True

    assert "| **not reached** |" in markdown(tmp_path, changed(change))


def test_the_page_is_whole_by_itself_and_light_and_dark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "card"
    assert main([str(write(tmp_path, QUALITY)), "--out", str(out)]) == 0
    assert capsys.readouterr().out.split() == [str(out / "quality.md"), str(out / "quality.html")]
    page = (out / "quality.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|src=|href=\"(?!#|data:)|@import|url\((?!#)", page)
    assert all(url.startswith("http://www.w3.org/") for url in re.findall(r"https?://[^\"]+", page))
    assert "prefers-color-scheme:dark" in page
    assert "a &lt;fast&gt; processor" in page
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    names = [ET.fromstring(plot).attrib["aria-label"] for plot in plots]
    assert names[:7] == [
        "Predicted and measured",
        "Errors by group (configs)",
        "Calibration, means by decile",
        "Kendall's tau by epoch",
        "Learning curve, validation tau",
        "Search, validation tau",
        "Size of the forest, validation tau",
    ]
    assert len(plots) == 12  # runtime was not searched


def test_the_same_release_gives_the_same_card(tmp_path: Path) -> None:
    release = read_release(write(tmp_path, QUALITY))
    paths = [card.write_card(read_release(release.path), tmp_path / name) for name in ("a", "b")]
    assert paths[0][0].read_bytes() == paths[1][0].read_bytes()
    assert paths[0][1].read_bytes() == paths[1][1].read_bytes()


def test_a_metric_without_a_test_part_has_no_scores(tmp_path: Path) -> None:
    def change(quality: dict[str, Any]) -> None:
        quality["metrics"]["valid_acc"] |= {"test": None, "refitted_test": None, "learning_curve": None}

    text = markdown(tmp_path, changed(change))
    assert "| valid_acc | 5 | 0 | – |" in text


def test_a_release_without_quality_or_of_another_format_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, quality, error, message in (
        ("a", None, MissingData, "has no quality.json"),
        ("b", {**QUALITY, "format": 2}, UnknownFormat, "format 2; this version of jahs reads format 1"),
        ("c", {"format": 1}, CorruptFile, "lacks a value of the card: KeyError"),
    ):
        (tmp_path / name).mkdir()
        folder = write(tmp_path / name, quality)
        with pytest.raises(error, match=message):
            card.card(read_release(folder))
        assert main([str(folder)]) == 2
        assert message in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path, QUALITY)
    (tmp_path / "file").write_text("")
    assert main([str(folder), "--out", str(tmp_path / "file" / "card")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_text_is_shown_as_it_is_in_both_forms() -> None:
    table = Table(caption="t", columns=("x", "y"), rows=(("1|2", "<b>"),), is_folded=True)
    document = Document(
        title="<", subtitle="", sections=sections_of(["a < b", Text(text="**b** `code` & more"), table])
    )
    page, text = to_html(document, {}), to_markdown(document)
    assert '<h2 id="a-b">a &lt; b</h2>' in page
    assert "<strong>b</strong> <code>code</code> &amp; more" in page
    assert "<details><summary>t</summary>" in page
    assert "&lt;b&gt;</td>" in page
    assert "| 1\\|2 | <b> |" in text
    assert json.dumps(text).isascii()


def test_the_caveat_of_a_task_follows_the_first_paragraph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = dataclasses.replace(TASKS["digits"], caveat="Short: `x` < 1.")
    monkeypatch.setattr("jahs.tasks.definitions.TASKS", {**TASKS, "digits": task})
    text, page = (
        path.read_text(encoding="utf-8") for path in card.write_card(read_release(write(tmp_path, QUALITY)), tmp_path)
    )
    _, first, second, *_ = text.split("\n\n")
    assert first.startswith("**200 configs**")
    assert second == "**Caveat:** Short: `x` < 1."
    shown = '</p>\n<p class="answer"><strong>Caveat:</strong> Short: <code>x</code> &lt; 1.</p>\n<nav'
    assert shown in page


def test_a_second_family_is_beside_the_first_where_a_release_has_one(tmp_path: Path) -> None:
    assert "LightGBM" not in markdown(tmp_path, QUALITY)
    lightgbm = {"test": {"valid_acc": {"last epoch": {**SCORES, "tau": 0.755, "mae": 2.25}}}}
    text = markdown(tmp_path / "more", {**QUALITY, "lightgbm": lightgbm})
    assert "| valid_acc | last epoch | 30 | 0.800 | 2 points | 0.755 | 2.25 points |" in text
