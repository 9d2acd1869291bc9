"""The figures of a release: a number where it was measured, and the final test set only when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from jahs.files.tables import take, write_table
from jahs.queries.benchmark import Benchmark
from jahs.release import read_release
from jahs.release.table import RecordedTable
from jahs.schema import CONFIG_TABLE_COLUMNS
from jahs.spaces.columns import rows
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from splits.final import FinalTest, n_reads, write_final
from splits.split import write_split
from surrogate import figures as command
from surrogate.card.figures import read_figures, write_figures
from surrogate.data.measurements import Measurements
from surrogate.data.rows import assemble, by_part, join_rows
from surrogate.judging.agreement import ceiling
from surrogate.judging.top import leave_sources_out
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import fit_surrogate
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release
from tests.surrogate.landscape import PROTOCOL, TASK, arguments, measurements, split_of, write_folder
from workshop.repeats import pairs_of_seeds

SETTINGS = ForestSettings(n_trees=6, max_depth=3)
WITH_FINAL = measurements(8)
MEMBERS = take(WITH_FINAL.configs, np.flatnonzero(WITH_FINAL.configs["config_index"] >= 27 * 7)[:20])


def without_members() -> Measurements:
    ids = WITH_FINAL.configs["config_id"][~np.isin(WITH_FINAL.configs["config_id"], MEMBERS["config_id"])]
    tables = {
        name: take(table, np.isin(table["config_id"], ids))
        for name, table in (
            ("configs", WITH_FINAL.configs), ("runs", WITH_FINAL.runs), ("profile", WITH_FINAL.profile)
        )
    }  # fmt: skip
    return replace(WITH_FINAL, **tables)


SPLIT = split_of(without_members())


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = write_folder(tmp_path / "runs", WITH_FINAL)
    write_split(folder / "split.json", SPLIT)
    configs = tuple(rows(MEMBERS))
    write_final(
        folder / "split.json",
        FinalTest(task=TASK.name, protocol=PROTOCOL, configs=configs, groups=("uniform",) * 20, seeds=(0, 1)),
    )
    return folder


def made(path: Path, *, split: str = SPLIT.digest, n_trees: int = 6, table: RecordedTable | None = None) -> Path:
    quality = {"format": 1, "metrics": {"valid_acc": {"settings": {"n_trees": n_trees, "max_depth": 3}}}}
    facts = {"protocol": PROTOCOL, "split": split}
    return make_release(path, task=TASK.name, facts=facts, quality=quality, table=table)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return made(tmp_path / "release")


def call(runs: Path, release: Path, out: Path, *more: str) -> int:
    return command.main([*arguments(runs, out), "--release", str(release), *more])


def test_the_final_test_set_is_read_only_when_it_is_asked_for_and_then_counted(
    runs: Path, release: Path, tmp_path: Path
) -> None:
    assert call(runs, release, tmp_path / "one.json") == 0
    facts = read_figures(tmp_path / "one.json")
    assert (facts["final"], facts["n_reads"], n_reads(runs / "split.json")) == (None, 0, 0)
    assert facts["final_counts"] == {"uniform": 20}
    assert facts["ordinary"]["mae"]["value"] is None
    assert "needed" in facts["ordinary"]["mae"]["missing"]
    assert facts["search"]["missing"] == "no config that this release proposed is trained; propose and train `best`"
    assert 0 <= facts["refits"]["overlap"]["value"] <= 1
    assert facts["shipped_refits"]["tau"]["missing"] == "the release has no refits"
    assert facts["sizes"]["measured"]["value"] is None
    assert facts["trained"]["one_run"]["missing"] == "0 of 6 configs needed among the predicted best"
    assert call(runs, release, tmp_path / "two.json", "--read-final") == 0
    facts = read_figures(tmp_path / "two.json")
    assert (facts["final"]["n_configs"], facts["n_reads"]) == (20, 1)


def test_seeds_are_compared_on_the_uniform_configs_of_the_final_test_set_alone() -> None:
    repeated = np.unique(WITH_FINAL.runs["config_id"][WITH_FINAL.runs["seed"] == 1])
    configs = take(WITH_FINAL.configs, np.isin(WITH_FINAL.configs["config_id"], repeated))
    groups = tuple("tpe" if i % 3 == 0 else "uniform" for i in range(len(repeated)))
    members = FinalTest(
        task=TASK.name, protocol=PROTOCOL, configs=tuple(rows(configs)), groups=groups, seeds=(0, 1)
    )  # fmt: skip
    found = command._seed_facts(members, WITH_FINAL)["valid_acc"]
    is_uniform = np.array(groups) == "uniform"
    of_uniform = take(WITH_FINAL.runs, np.isin(WITH_FINAL.runs["config_id"], configs["config_id"][is_uniform]))
    expected = pairs_of_seeds(of_uniform)["valid_acc"].repeats()
    assert expected.n == is_uniform.sum() >= 10
    assert expected.tau is not None
    assert (found["value"], found["n"]) == (expected.tau.value, expected.n)
    few = replace(members, groups=("tpe",) * len(groups))
    assert "two seeds; 10 are needed" in command._seed_facts(few, WITH_FINAL)["valid_acc"]["missing"]


def test_refits_that_ship_are_compared_as_a_user_asks_them(tmp_path: Path) -> None:
    path = make_release(tmp_path / "release", task=TASK.name, n_refits=3, noise=noise_model(TASK.name).to_dict())
    facts = command._shipped_facts(read_release(path))
    columns = space(LARGEST).sample_columns(command._N_SAMPLE, seed=command._SEED)
    best = [
        set(np.argsort(-Benchmark(TASK.name, release=path, refit=k).query_many(columns)["valid_acc"])[:200].tolist())
        for k in range(3)
    ]
    pairs = [len(a & b) / 200 for a, b in combinations(best, 2)]
    assert facts["overlap"]["value"] == pytest.approx(np.mean(pairs), abs=0.02)  # apart from equal predictions
    assert facts["overlap"]["n"] == facts["difference"]["n"] == 3


def test_a_release_of_another_split_is_refused_before_anything_is_read(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_release(tmp_path / "other", task=TASK.name, facts={"protocol": PROTOCOL, "split": "0" * 16})
    assert call(runs, other, tmp_path / "out.json", "--read-final") == 2
    error = capsys.readouterr().err
    assert "was made from other data; give the split and the runs that it was made from, or these after" in error
    assert f"its split must be {SPLIT.digest}, got {'0' * 16}" in error
    assert n_reads(runs / "split.json") == 0
    assert not (tmp_path / "out.json").exists()


def test_a_release_of_the_split_that_was_extended_is_judged_too(runs: Path, tmp_path: Path) -> None:
    write_split(runs / "split.json", replace(SPLIT, extends="e" * 16))
    assert call(runs, made(tmp_path / "before", split="e" * 16), tmp_path / "out.json") == 0


@pytest.mark.parametrize("n_moved", [0, 1])
def test_a_release_is_judged_with_a_later_split_if_no_config_of_it_has_moved(
    n_moved: int, runs: Path, tmp_path: Path
) -> None:
    is_old = np.arange(len(SPLIT.config_ids)) % 3 > 0
    before = replace(SPLIT.of(SPLIT.config_ids[is_old]), parts=SPLIT.parts[is_old].copy())
    before.parts[:n_moved] = (before.parts[:n_moved] + 1) % 3
    tables = {"configs": WITH_FINAL.configs, "runs": WITH_FINAL.runs, "profile": WITH_FINAL.profile}
    table = RecordedTable(
        **{name: take(of, np.isin(of["config_id"], before.config_ids)) for name, of in tables.items()}
    )
    release = made(tmp_path / "before", split=before.digest, table=table)
    assert call(runs, release, tmp_path / "out.json") == (2 if n_moved else 0)


def test_parts_that_are_not_measured_again_stay_if_they_belong_to_the_release(
    runs: Path, release: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    assert call(runs, release, out, "--read-final") == 0
    final = read_figures(out)["final"]
    write_figures(out, {**read_figures(out), "fits": {"kept": True}})
    assert call(runs, release, out) == 0
    assert (read_figures(out)["final"], read_figures(out)["fits"]) == (final, {"kept": True})
    assert call(runs, made(tmp_path / "other", n_trees=5), out) == 0
    assert (read_figures(out)["final"], read_figures(out)["fits"]) == (None, None)


def test_every_source_is_left_out_in_turn() -> None:
    measured = measurements(14)
    n = len(measured.configs["config_id"])
    source = np.where(np.arange(n) % 3 == 0, "best", "uniform")
    measured = replace(measured, configs={**measured.configs, "source": source})
    parts = by_part(assemble("valid_acc", measured), split_of(measured))
    fitted = fit_surrogate("valid_acc", parts["train"], TASK, settings=SETTINGS)
    results = leave_sources_out(measured, parts, fitted)
    assert [facts["source"] for facts in results] == ["uniform", "best"]
    assert all(facts["with"].keys() == facts["without"].keys() == {"r2", "tau"} for facts in results)
    assert sum(facts["n_train"] for facts in results) == parts["train"].n_configs
    every = join_rows(list(parts.values()))
    every = every.take(every.epoch == TASK.max_epoch)
    of_best = measured.configs["config_id"][measured.configs["source"] == "best"]
    assert results[1]["ceiling"] == ceiling("valid_acc", every.take(np.isin(every.config_id, of_best)))["tau"]
    assert results[1]["with"] != results[1]["without"]
    one_source = replace(measured, configs={**measured.configs, "source": np.full(n, "uniform")})
    assert leave_sources_out(one_source, parts, fitted) == []


def test_configs_that_the_release_proposed_are_judged_by_it(runs: Path, release: Path, tmp_path: Path) -> None:
    sha = read_release(release).sha256
    is_proposed = np.arange(len(WITH_FINAL.configs["config_id"])) < 50
    columns = {"source": np.where(is_proposed, "best", "uniform"), "release": np.where(is_proposed, sha, "")}
    write_table(runs / "configs.parquet", {**WITH_FINAL.configs, **columns}, CONFIG_TABLE_COLUMNS)
    assert call(runs, release, tmp_path / "out.json") == 0
    results = read_figures(tmp_path / "out.json")
    write_figures(tmp_path / "before.json", {**results, "search": {"value": None, "missing": "none is trained yet"}})
    assert call(runs, release, tmp_path / "before.json", "--proposed") == 0
    found = {**results["search"], "measurements": results["measurements"]}
    assert read_figures(tmp_path / "before.json") == {**results, "search": found}
    measured = {"value": 0.3, "missing": ""}
    write_figures(tmp_path / "before.json", {**results, "search": measured})
    assert call(runs, release, tmp_path / "before.json", "--proposed") == 2
    assert call(runs, release, tmp_path / "before.json", "--proposed", "--fits", "f.json") == 2
    assert read_figures(tmp_path / "before.json")["search"] == measured
    assert "final configs of a search are trained with two seeds; 6 are needed" in results["search"]["missing"]
    assert [facts["source"] for facts in results["sources"]] == ["uniform", "best"]


def test_what_is_refused_does_not_count_as_a_reading(
    runs: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(runs, release, tmp_path / "out.json", "--read-final", "--fits", "missing.json") == 2
    assert "missing.json" in capsys.readouterr().err
    assert call(runs, release, tmp_path / "no" / "such.json", "--read-final") == 2
    assert "its folder does not exist" in capsys.readouterr().err
    assert call(runs, release, tmp_path, "--read-final") == 2
    assert "must be a file, got a folder" in capsys.readouterr().err
    assert n_reads(runs / "split.json") == 0
