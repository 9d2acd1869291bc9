"""The commands fit, score, ablation and learning_curve: whole results or none, and one clear line for bad input."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.files.tables import take
from splits.split import read_split, write_split
from surrogate import ablation, fit, learning_curve, score, tune
from surrogate.judging.curve import Point, extrapolate
from tests.surrogate.landscape import measurements, write_folder

MEASURED = measurements(10)
CHOSEN = ("valid_acc", "runtime", "latency")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("data") / "runs", MEASURED)


@pytest.fixture(scope="module")
def models(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted")
    settings = {metric: {"n_trees": 40, "max_depth": 4} for metric in CHOSEN}
    (folder / "params.json").write_text(json.dumps({"format": 1, "metrics": settings}))
    arguments = [str(runs), "--split", str(runs / "split.json"), "--params", str(folder / "params.json")]
    for name in ("one", "two"):
        assert fit.main([*arguments, "--out", str(folder / name), "--metrics", *CHOSEN]) == 0
    return folder


def arguments(runs: Path, out: Path) -> list[str]:
    return [str(runs), "--split", str(runs / "split.json"), "--out", str(out)]


def test_fitting_twice_gives_the_same_bytes(models: Path) -> None:
    names = sorted(path.name for path in (models / "one").iterdir())
    assert names == sorted(["manifest.json", *(f"{m}.{s}" for m in CHOSEN for s in ("json", "ubj"))])
    for name in set(names) - {"manifest.json"}:
        assert (models / "one" / name).read_bytes() == (models / "two" / name).read_bytes()
    first, second = (json.loads((models / name / "manifest.json").read_text()) for name in ("one", "two"))
    assert first["sha256"] == second["sha256"]
    assert first["diverged_runs"] == {"train": 0, "valid": 0, "test": 0}
    assert {"versions", "commit", "command", "split", "protocol", "models"} < first.keys()


def test_scores_stand_beside_their_ceiling(
    runs: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scores.json"
    assert score.main([*arguments(runs, out), "--models", str(models / "one"), "--part", "test"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["metric", *["valid_acc"] * 3, *["latency"] * 2, *["runtime"] * 3]
    scores = json.loads(out.read_text())["scores"]
    last = scores["valid_acc"]["cuts"]["last epoch"]
    assert 0.6 < last["model"]["tau"] < 1
    assert 0.6 < last["ceiling"]["tau"] < 1
    low, high = scores["valid_acc"]["tau_interval"]
    assert low < last["model"]["tau"] < high


def test_models_of_another_split_are_not_scored(
    runs: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A config that trained them may stand in the part that is scored; a split that extends theirs moves no config."""
    split = read_split(runs / "split.json")
    for name, other in (
        ("moved", replace(split, parts=np.roll(split.parts, 1))),
        ("extended", replace(split, extends=split.digest)),
    ):
        write_split(tmp_path / name, other)
    given = [str(runs), "--models", str(models / "one"), "--split"]
    assert score.main([*given, str(tmp_path / "moved")]) == 2
    assert "a config may have changed parts; give the split of the fit, or fit again" in capsys.readouterr().err
    assert score.main([*given, str(tmp_path / "extended")]) == 0
    nowhere = tmp_path / "nowhere"
    shutil.copytree(models / "one", nowhere)
    (nowhere / "manifest.json").unlink()
    assert score.main([str(runs), "--models", str(nowhere), "--split", str(runs / "split.json")]) == 2
    assert "does not say with which split" in capsys.readouterr().err


def test_a_split_that_extends_theirs_is_that_of_models_whose_configs_all_had_a_part(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A config that was only profiled trains latency, and gets any part once it is trained as well."""
    whole = read_split(runs / "split.json")
    is_old = np.arange(len(whole.config_ids)) % 27 > 0
    old = replace(whole, config_ids=whole.config_ids[is_old], parts=whole.parts[is_old])
    is_run = np.isin(MEASURED.runs["config_id"], old.config_ids)
    before = write_folder(tmp_path / "before", replace(MEASURED, runs=take(MEASURED.runs, is_run)))
    write_split(before / "split.json", old)
    write_split(tmp_path / "extended", replace(whole, extends=old.digest))
    params = tmp_path / "params.json"
    params.write_text(json.dumps({"format": 1, "metrics": {m: {"n_trees": 5} for m in CHOSEN}}))
    given = ["--fewest", "0", "--params", str(params), "--metrics"]
    for metric, code in (("valid_acc", 0), ("latency", 2)):
        models = tmp_path / metric
        assert fit.main([*arguments(before, models), *given, metric]) == 0
        assert score.main([str(runs), "--models", str(models), "--split", str(tmp_path / "extended")]) == code
    assert "latency was fitted to configs that had no part in split" in capsys.readouterr().err
    assert json.loads((tmp_path / "latency" / "manifest.json").read_text())["only_profiled"] == 10


@pytest.mark.parametrize("fact", ["task", "protocol", "timing_machine", "profile_machine"])
def test_models_of_other_measurements_are_not_scored(
    fact: str, runs: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "models"
    shutil.copytree(models / "one", elsewhere)
    manifest = elsewhere / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {fact: "another"}))
    given = [str(runs), "--split", str(runs / "split.json"), "--models", str(elsewhere)]
    assert score.main(given) == 2
    assert f"was fitted to other measurements ({fact} another, not " in capsys.readouterr().err
    if "machine" in fact:  # it decides about its own metric alone
        (elsewhere / {"timing_machine": "runtime.json", "profile_machine": "latency.json"}[fact]).unlink()
        assert score.main(given) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {"runs": {**m.runs, "valid_acc": m.runs["valid_acc"] * np.nan}}, "values are invalid"),
        (lambda m: {"configs": take(m.configs, m.configs["N"] < 5)}, "are not in the config table"),
        (lambda m: {"profile": {**m.profile, "protocol": np.full(270, "no")}}, "rows of no: 270 of profile"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_with_counts_and_leave_nothing(
    change: object, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(change)
    broken = write_folder(tmp_path / "runs", MEASURED, **change(MEASURED))
    assert fit.main(arguments(broken, tmp_path / "models")) == 2
    error = capsys.readouterr().err
    assert message in error
    assert any(digit in error for digit in "123456789")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_too_few_configs_in_a_group_are_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for main in (fit.main, tune.main):
        assert main([*arguments(runs, tmp_path / "out"), "--fewest", "8"]) == 2
        assert "27 of 27 fidelity groups have fewer than 8 training configs: N=1 W=4" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["one", "file/below"])
def test_a_folder_that_is_there_or_cannot_be_written_is_refused(
    name: str, runs: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (models / "file").write_text("")
    before = sorted(models.rglob("*"))
    assert fit.main(arguments(runs, models / name)) == 2
    assert capsys.readouterr().err.startswith("surrogate.fit: ")
    assert sorted(models.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_is_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    assert fit.main(arguments(runs, tmp_path / "models")) == 2
    assert "cannot be written: Permission denied" in capsys.readouterr().err


def test_unknown_metrics_optimizers_settings_and_numbers_are_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = tmp_path / "params.json"
    params.write_text(json.dumps({"format": 1, "metrics": {"valid_acc": {"max_depth": 99}, "speed": {}}}))
    out = tmp_path / "out"
    for main, extra, message in (
        (fit.main, ["--metrics", "valid-acc"], "metric='valid-acc' does not exist (did you mean 'valid_acc'?)"),
        (fit.main, ["--params", str(params)], "max_depth=99 must be an integer in 1..15"),
        (fit.main, ["--params", str(params)], "'speed' is not a learned metric"),
        (fit.main, ["--params", str(tmp_path / "none.json")], "none.json does not exist"),
        (tune.main, ["--optimizer", "pico"], "optimizer='pico' does not exist (did you mean 'pibo'?)"),
        (tune.main, ["--trees", "0"], "n_trees=0 must be an integer in 1..10000"),
        (tune.main, ["--workers", "0", "--evaluations", "-1"], "at least 1\nsurrogate.tune: workers=0 must be"),
    ):  # fmt: skip
        assert main([*arguments(runs, out), *extra]) == 2
        assert message in capsys.readouterr().err
        assert not out.exists()


def test_the_ablation_shows_every_choice_beside_the_shipped_one(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "ablation.json"
    options = ["--metrics", "valid_acc", "runtime", "--repeats", "1", "--trees", "15", "--learning-rate", "0.3"]
    assert ablation.main([*arguments(runs, out), *options]) == 0
    printed = capsys.readouterr().out
    found = {o["variant"]: o for o in json.loads(out.read_text())["metrics"]["valid_acc"]}
    assert found["shipped"]["difference"] == 0
    assert {"published", "accuracy_as_is", "paths, no signal", "bounds as observed"} < found.keys()
    assert {"without signal", "without epochs", "with paths"} < found.keys()
    assert found["published"]["n_columns"] == 41
    assert "| published | 41 |" in printed
    assert "rising with the epoch: R2" in printed


def test_the_curve_predicts_a_size_that_was_not_fitted(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "curve.json"
    options = ["--sizes", "27", "54", "81", "108", "162", "--seeds", "2", "--trees", "30", "--target", "1400"]
    assert learning_curve.main([*arguments(runs, out), *options]) == 0
    assert "with 1400 training configs, 90 % interval" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert [point["n_configs"] for point in content["points"]] == [27, 54, 81, 108, 162] * 2
    predicted = content["predictions"]["tau"]
    assert predicted["low"] < predicted["value"] < predicted["high"] < 1
    assert max(point["tau"] for point in content["points"]) < predicted["high"]


def test_a_power_law_is_found_again_and_its_interval_holds_the_truth() -> None:
    sizes, seeds = (100, 200, 400, 800, 1400), range(5)
    rng = np.random.default_rng(0)
    points = [
        Point(n_configs=n, seed=s, tau=1 - 2 * n**-0.3 * float(np.exp(rng.normal(0, 0.02))), r2=0.9)
        for n in sizes
        for s in seeds
    ]
    found = extrapolate(points, 5000)
    assert found.exponent == pytest.approx(-0.3, abs=0.03)
    assert found.low < 1 - 2 * 5000**-0.3 < found.high
    assert found.high - found.low < 0.05


def test_too_few_sizes_and_too_large_ones_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = [str(runs), "--split", str(runs / "split.json"), "--trees", "5", "--seeds", "1"]
    assert learning_curve.main([*shared, "--sizes", "27", "54", "81"]) == 2
    assert "3 sizes; a curve and its spread need at least 4" in capsys.readouterr().err
    assert learning_curve.main([*shared, "--sizes", "27", "5000"]) == 2
    assert "sizes [5000] must be integers in 1..189" in capsys.readouterr().err
