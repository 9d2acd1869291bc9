"""Releases: the same bytes twice, answers of the models they were made of, honest with few data, whole or absent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jahs.files.runs import read_runs
from jahs.files.sealed_json import sealed_text
from jahs.files.tables import take
from jahs.models.features import DEFAULT_TIMES, joint_times
from jahs.queries.benchmark import Benchmark
from jahs.queries.best import best_of, search_best
from jahs.queries.references import References
from jahs.release import read_release
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from splits.split import write_split
from surrogate import contents, packing, release
from surrogate.contents import ReleaseSettings
from surrogate.data.measurements import Measurements, read_measurements, read_with_split
from surrogate.data.rows import Facts, assemble, by_part
from surrogate.judging import noise
from surrogate.packing import release_answers
from surrogate.release import make_release
from surrogate.timing import times_of
from surrogate.tune import data_of
from tests import releases
from tests.surrogate.landscape import TASK, arguments, measurements, split_of, write_folder

MEASURED = measurements(10)
LEARNED = ("train_acc", "valid_acc", "test_acc", "runtime", "latency")
SETTINGS = {metric: {"n_trees": 12, "max_depth": 3} for metric in LEARNED}
TUNED = LEARNED[:-1]  # others have the defaults, whose many trees take longer
OPTIONS = ["--workers", "1", "--curve-seeds", "1", "--refits", "2"]


def write_params(folder: Path, measured: Measurements = MEASURED, *, tuned: Sequence[str] = LEARNED) -> Path:
    folder.mkdir()
    size = {"settings": {**SETTINGS["runtime"]}, "n_nodes": 100, "tau": 0.9}
    summary = {
        "evaluations": [{"number": 1, "settings": SETTINGS["runtime"], "tau": 0.9, "seconds": 1.0}],
        "default_tau": 0.8,
        "beats_default": True,
        "n_valid_configs": 54,
        "sizes": [size],
        "chosen": size,
    }
    history = {**data_of(measured, split_of(measured)), "metrics": {"runtime": summary}}
    (folder / "params.json").write_text(sealed_text({"metrics": {metric: SETTINGS[metric] for metric in tuned}}))
    (folder / "history.json").write_text(sealed_text(history))
    return folder / "params.json"


def some_configs(measured: Measurements, n: int) -> Measurements:
    """The same measurements as if only the first configs had been trained."""
    ids = measured.configs["config_id"][:n]
    return replace(
        measured,
        configs=take(measured.configs, np.isin(measured.configs["config_id"], ids)),
        runs=take(measured.runs, np.isin(measured.runs["config_id"], ids)),
        profile=take(measured.profile, np.isin(measured.profile["config_id"], ids)),
    )


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """Fewer configs to look for references among, and fewer folds to fit the noise to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "_N_REFERENCE_CONFIGS", 500)
        patch.setattr(noise, "_MOST_FOLDS", 3)
        yield


@pytest.fixture(scope="module")
def made(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    params = write_params(folder / "tuned", read_measurements(runs), tuned=TUNED)
    assert release.main([*arguments(runs, folder / "one"), *OPTIONS, "--params", str(params)]) == 0
    return folder


def make_plain(runs: Path, out: Path, **more: Any) -> Facts:
    """Make a release without a learning curve and without refits."""
    settings = ReleaseSettings(curve_seeds=0, n_refits=0, workers=1, **more)
    return make_release(*read_with_split(runs, runs / "split.json"), out, settings)


def test_the_same_input_gives_the_same_bytes_wherever_the_folders_are(made: Path, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    runs = write_folder(tmp_path / "below" / "elsewhere", MEASURED)
    params = write_params(tmp_path / "found", read_measurements(runs), tuned=TUNED)
    settings = ReleaseSettings(params=params, curve_seeds=1, n_refits=2, workers=1)
    make_release(*read_with_split(runs, runs / "split.json"), tmp_path / "two", settings)
    names = sorted(path.name for path in (made / "one").iterdir())
    assert {"manifest.json", "models.json", "forests-0.npz", "quality.json", "table.npz"} <= set(names)
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in names:
        assert (made / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_release_is_sound_and_has_a_model_of_every_metric(made: Path) -> None:
    opened = read_release(made / "one")
    opened.verify()
    assert tuple(opened.models.metrics) == ("train_acc", "valid_acc", "test_acc", "latency", "runtime")
    X = encode(space().sample_columns(300, seed=5), TASK.max_epoch)
    assert all(np.ptp(release_answers(opened, metric, X)) > 5 for metric in ("train_acc", "valid_acc", "test_acc"))


def test_models_that_ship_know_the_validation_part_and_both_scores_are_kept(made: Path) -> None:
    opened = read_release(made / "one")
    parts = by_part(assemble("valid_acc", MEASURED), split_of(MEASURED))
    facts = opened.quality["metrics"]["valid_acc"]
    assert facts["fitted_on"]["rows"] == len(parts["train"])
    assert facts["refitted_on"]["rows"] == len(parts["train"]) + len(parts["valid"])
    assert opened.models.counts["valid_acc"] == facts["refitted_on"]
    once, again = facts["test"]["cuts"], facts["refitted_test"]["last epoch"]
    assert once["last epoch"]["model"]["n"] == again["model"]["n"] == len(np.unique(parts["test"].config_id))
    assert once["last epoch"]["model"]["rmse"] != again["model"]["rmse"]
    assert once["last epoch"]["ceiling"]["n"] > 0


def test_settings_that_were_found_are_used_and_their_search_is_kept(made: Path) -> None:
    metrics = read_release(made / "one").quality["metrics"]
    assert metrics["valid_acc"]["settings"]["n_trees"] == 12
    assert metrics["latency"]["settings"]["n_trees"] == 500
    assert metrics["runtime"]["search"]["default_tau"] == 0.8
    assert metrics["runtime"]["search"]["is_of_this_split"]
    assert metrics["valid_acc"]["search"] is None


def test_a_release_carries_and_answers_with_the_times_that_its_training_part_gives(runs: Path, made: Path) -> None:
    opened = read_release(made / "one")
    times = times_of(*read_with_split(runs, runs / "split.json"))
    assert times != DEFAULT_TIMES
    assert joint_times([pack.features for pack in opened.models.packs]) == times
    configs = space().sample(50, seed=6)
    answers = Benchmark(TASK.name, release=made / "one").query_many(configs, at=1, metrics=["latency", "runtime"])
    for metric in ("latency", "runtime"):
        assert (answers[metric] == release_answers(opened, metric, encode(configs, 1))).all()


def test_the_recorded_table_is_what_was_measured(runs: Path, made: Path) -> None:
    table = read_release(made / "one").table
    assert table.runs["valid_acc"].tolist() == read_runs(runs)["valid_acc"].tolist()
    assert (np.diff(table.configs["config_id"].astype(object)) > 0).all()
    assert len(table.profile["latency"]) == len(MEASURED.profile["latency"])


@pytest.mark.usefixtures("without_noise")
def test_a_config_that_is_only_profiled_helps_to_fit_latency_and_stays_out_of_the_table(tmp_path: Path) -> None:
    waiting = MEASURED.configs["config_id"][-5:]
    measured = replace(MEASURED, runs=take(MEASURED.runs, ~np.isin(MEASURED.runs["config_id"], waiting)))
    runs, split = write_folder(tmp_path / "runs", measured), split_of(measured)
    is_trained = ~np.isin(split.config_ids, waiting)
    write_split(
        runs / "split.json", replace(split, config_ids=split.config_ids[is_trained], parts=split.parts[is_trained])
    )
    params = write_params(tmp_path / "tuned")
    quality = make_plain(runs, tmp_path / "one", params=params, fewest=2)
    table = read_release(tmp_path / "one").table
    assert not np.isin(waiting, table.configs["config_id"]).any()
    assert set(table.profile["config_id"]) == set(table.configs["config_id"]) == set(table.runs["config_id"])
    accuracy, latency = (quality["metrics"][metric] for metric in ("valid_acc", "latency"))
    assert latency["refitted_on"]["configs"] == accuracy["refitted_on"]["configs"] + 5
    for facts, n_more in ((accuracy, 0), (latency, 5)):
        n_training = quality["data"]["parts"]["train"] + n_more
        assert sum(facts["train_by_group"]) == facts["fitted_on"]["configs"] == n_training


def test_noise_references_and_refits_come_with_it(made: Path) -> None:
    opened = read_release(made / "one")
    assert opened.noise.task == TASK.name
    assert {share["metric"] for share in opened.quality["noise"]["folds"]} >= {"valid_acc", "runtime"}
    assert ["valid_acc", "latency"] in [front["metrics"] for front in opened.quality["references"]["fronts"]]
    assert opened.manifest.read_json("references.json")["format"] == 1
    assert opened.refits.n_refits == opened.quality["uncertainty"]["n_refits"] == 2
    assert opened.refits.metrics == ("train_acc", "valid_acc", "test_acc")
    assert sum(size for name, (size, _) in opened.manifest.files.items() if name.startswith("refits")) < 2_000_000


def test_no_search_from_the_references_finds_a_better_config(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "build_references", partial(release.build_references, n_rounds=0))  # poor fronts
    monkeypatch.setattr(release, "_N_REFERENCE_CONFIGS", 10)
    monkeypatch.setattr(release, "_best_of_all", lambda *_: space().sample(seed=0))
    references, _ = release._references_of(made / "one", TASK.name, ReleaseSettings(rates=2))
    assert references is not None
    known, bench = References.from_dict(references), Benchmark(TASK.name, release=made / "one")
    assert len(known.starts) > 1
    best = best_of(bench, known.configs, "valid_acc", is_exact=False)
    assert search_best(bench, known.configs, "valid_acc").value <= best.value


def test_exact_costs_are_modelled_for_comparison_only(made: Path) -> None:
    opened = read_release(made / "one")
    assert "n_params" not in opened.models.metrics
    assert 0.5 < opened.quality["compared"]["n_params"]["r2"] < 1
    assert opened.quality["compared"]["n_macs"]["relative_error"]["most"] > 0


def test_few_configs_without_a_profile_make_a_release_that_says_so(tmp_path: Path) -> None:
    measured = some_configs(MEASURED, 20)  # one in each group at most, all of them for training
    measured = replace(measured, profile=take(measured.profile, np.zeros(len(measured.profile["latency"]), bool)))
    runs = write_folder(tmp_path / "runs", measured)
    settings = ReleaseSettings(params=write_params(tmp_path / "t"), fewest=0, n_refits=0, workers=1)
    quality = make_release(*read_with_split(runs, runs / "split.json"), tmp_path / "release", settings)
    opened = read_release(tmp_path / "release")
    assert "there is no profile yet" in quality["missing"]["latency"]
    assert "latency" not in opened.models.metrics
    assert quality["data"]["configs"] == 20
    assert quality["data"]["small_groups"] == 27
    assert quality["metrics"]["valid_acc"]["test"] is None
    assert quality["metrics"]["valid_acc"]["learning_curve"] is None
    assert [entry["is_met"] for entry in quality["requirements"]] == [None] * 4
    assert not any(entry["is_due"] for entry in quality["requirements"])
    assert "4 configs were trained with more than one seed; noise needs 5" in quality["noise"]["reason"]
    assert opened.noise is None


def test_bad_tables_are_refused_and_leave_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = MEASURED.runs["valid_acc"].copy()
    values[[3, 9]] = np.nan
    runs = write_folder(tmp_path / "runs", MEASURED, runs={**MEASURED.runs, "valid_acc": values})
    assert release.main([*arguments(runs, tmp_path / "release"), *OPTIONS]) == 2
    assert "valid_acc: 2 of" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_config_on_both_sides_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configs = {name: values.copy() for name, values in MEASURED.configs.items()}
    order = np.argsort(configs["config_id"])
    parts = split_of(MEASURED).parts
    a, b = order[np.flatnonzero(parts == 0)[0]], order[np.flatnonzero(parts == 2)[0]]
    for name in set(configs) - {"config_id", "config_index"}:
        configs[name][b] = configs[name][a]
    runs = write_folder(tmp_path / "runs", replace(MEASURED, configs=configs))
    assert release.main([*arguments(runs, tmp_path / "release"), *OPTIONS]) == 2
    assert "several parts" in capsys.readouterr().err
    assert not (tmp_path / "release").exists()


def test_what_is_no_release_is_not_replaced(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("1")
    (tmp_path / "file").write_text("")
    for name, message in (("thesis", "exists and is not a release"), ("file/below", "cannot be written")):
        assert release.main([*arguments(runs, tmp_path / name), *OPTIONS]) == 2
        assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["chapter.txt", "file", "thesis"]


@pytest.mark.usefixtures("without_noise")
def test_a_release_stays_as_it_is_if_the_new_one_is_too_large_or_answers_otherwise(
    runs: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in (made / "one").iterdir()}
    numbers = {"--workers": "1", "--curve-seeds": "0", "--refits": "0", "--seed": "1"}
    options = [*chain(*numbers.items()), "--params", str(write_params(tmp_path / "tuned"))]
    monkeypatch.setattr(release, "MOST_BYTES", 1000)
    assert release.main([*arguments(runs, made / "one"), *options]) == 2
    assert "more than 1,000; tune with fewer --trees" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setattr(packing, "release_answers", lambda _, metric, X: np.zeros(len(X)))
    assert release.main([*arguments(runs, made / "one"), *options]) == 2
    assert "does not answer as its model" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (made / "one").iterdir()} == before
    assert sorted(path.name for path in made.iterdir()) == ["one", "tuned"]


def test_every_bad_number_is_named_at_once_before_anything_is_fitted(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contents, "fit_each", lambda *_, **__: pytest.fail("something was fitted"))
    names = ("seed", "fewest", "curve-seeds", "refits", "workers", "rates", "distilled")
    flags = [text for name in names for text in (f"--{name}", "-1")]
    assert release.main([*arguments(runs, tmp_path / "release"), *flags, "--families", "knn"]) == 2
    shown = capsys.readouterr().err
    for name in ("seed", "fewest", "curve_seeds", "n_refits", "workers", "rates", "distilled"):
        assert f" {name}=-1 must be an integer in {int(name == 'workers')}..2**31-1" in shown
    assert "family='knn' does not exist" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("without_noise")
def test_timed_configs_that_are_all_held_out_make_a_release_without_runtimes(tmp_path: Path) -> None:
    measured = replace(MEASURED, runs={**MEASURED.runs})
    is_held_out = split_of(measured).parts_of(measured.runs["config_id"]) > 0
    measured.runs["machine"] = np.where(is_held_out, "a processor", "another processor")
    runs = write_folder(tmp_path / "runs", measured)
    quality = make_plain(runs, tmp_path / "one", params=write_params(tmp_path / "tuned"))
    assert quality["missing"] == {"runtime": "0 training configs were timed on a processor"}
    assert "runtime" not in read_release(tmp_path / "one").models.metrics


def test_what_a_killed_writer_left_is_undone(tmp_path: Path) -> None:
    old, unfinished, other = (tmp_path / f".r.{name}" for name in ("abcdefgh.old", "abcdefgh.part", "s.abcdefgh.part"))
    releases.make_release(old)
    before = read_release(old).sha256
    for folder in (unfinished, other):
        folder.mkdir()
        (folder / "forests-0.npz").write_text("half of it")
    release.clear_leftovers(tmp_path / "r")
    assert {path.name for path in tmp_path.iterdir()} == {"r", other.name}  # of r.s, not of r
    assert read_release(tmp_path / "r").sha256 == before
    releases.make_release(old, quality={"format": 1})
    release.clear_leftovers(tmp_path / "r")
    assert {path.name for path in tmp_path.iterdir()} == {"r", other.name}
    assert read_release(tmp_path / "r").sha256 == before


def test_what_a_killed_process_left_is_cleared_away_and_what_a_living_one_needs_is_not(tmp_path: Path) -> None:
    out = tmp_path / "digits"
    (tmp_path / ".digits.abcdefgh.part" / "digits").mkdir(parents=True)
    with release._beside(out) as first:
        assert [path.name for path in tmp_path.iterdir()] == [first.name]
        with release._beside(tmp_path / "digits") as second:
            assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name}
    assert [path.name for path in tmp_path.iterdir()] == ["digits"]


def test_what_is_not_whole_yet_stays_out_of_packages_and_commits() -> None:
    import tomllib

    root = Path(__file__).resolve().parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert "/jahs/releases/.*" in settings["exclude"]
    assert "exclude" not in settings["targets"]["wheel"].keys() | settings["targets"]["sdist"].keys()
    assert "jahs/releases/.*" in (root / ".gitignore").read_text().splitlines()


@pytest.mark.usefixtures("without_noise")
def test_distillation_is_a_setting_of_the_accuracies(runs: Path, tmp_path: Path) -> None:
    params = write_params(tmp_path / "tuned", read_measurements(runs))
    more = ["--workers", "1", "--curve-seeds", "0", "--params", str(params), "--refits", "0"]
    assert release.main([*arguments(runs, tmp_path / "distilled"), *more, "--distilled", "50", "--rates", "2"]) == 0
    made = read_release(tmp_path / "distilled")
    references = made.parse("references.json", References.from_dict)
    bench = Benchmark(made.task.name, release=made.path)
    configs = space(LARGEST).sample(500, seed=0)
    [best] = references.starts  # of an exhaustive search
    assert best.items() >= LARGEST.items()
    assert bench.query(best).valid_acc >= bench.query_many(configs)["valid_acc"].max()
    assert bench.best("valid_acc", bench.view(fixed=LARGEST)).value >= bench.query(best).valid_acc
    assert bench.best().value >= bench.query(best).valid_acc
    assert "--rates 2" in made.facts["command"]
    assert release.main([*arguments(runs, tmp_path / "one"), *more, "--rates", "1"]) == 2
    drawn = {metric: facts["settings"]["n_distilled"] for metric, facts in made.quality["metrics"].items()}
    assert drawn == {"valid_acc": 50, "test_acc": 50, "train_acc": 50, "runtime": 0, "latency": 0}
    assert "--distilled 50" in made.facts["command"]
    recorded = {**SETTINGS, "valid_acc": {**SETTINGS["valid_acc"], "n_distilled": 40}}
    params.write_text(sealed_text({"metrics": recorded}))
    assert release.main([*arguments(runs, tmp_path / "as recorded"), *more]) == 0
    made = read_release(tmp_path / "as recorded")
    drawn = {metric: facts["settings"]["n_distilled"] for metric, facts in made.quality["metrics"].items()}
    assert drawn == {"valid_acc": 40, "test_acc": 0, "train_acc": 0, "runtime": 0, "latency": 0}
    assert "--distilled" not in made.facts["command"]


def test_too_few_configs_for_distillation_are_refused_before_anything_is_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contents, "fit_each", lambda *_, **__: pytest.fail("something was fitted"))
    runs = write_folder(tmp_path / "runs", some_configs(MEASURED, 10))
    assert release.main([*arguments(runs, tmp_path / "release"), "--distilled", "50", "--fewest", "0"]) == 2
    shown = capsys.readouterr().err
    assert re.search(
        r"valid_acc: \d training configs of a bootstrap sample have all epochs; distillation needs 8", shown
    )
