"""One command from recorded runs to a release and its card: old sides stay, nothing changes without new data."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.errors import InvalidArgument
from jahs.files.sealed_json import sealed_text
from jahs.release import read_release
from splits.split import Split, read_split
from surrogate import release, renew
from surrogate.card import page
from surrogate.contents import ReleaseSettings
from surrogate.data.measurements import Measurements, digest_measurements, read_measurements
from surrogate.data.rows import Facts
from surrogate.judging.quality import rounded
from surrogate.models.boosting import ForestSettings
from surrogate.release import make_release
from tests.surrogate.landscape import measurements, write_folder
from tests.surrogate.test_release import SETTINGS, some_configs

MEASURED = measurements(4)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, without_noise: None) -> None:
    monkeypatch.setattr(release, "_N_REFERENCE_CONFIGS", 500)
    monkeypatch.setattr(page, "svg_text", lambda _figure: "<svg></svg>")  # drawing takes longer than all fits

    def quick(measured: Measurements, split: Split, out: Path, settings: ReleaseSettings) -> Facts:
        return make_release(measured, split, out, replace(settings, curve_seeds=0, n_refits=0))

    monkeypatch.setattr(renew, "make_release", quick)


def write_runs(folder: Path, measured: Measurements) -> Path:
    runs = write_folder(folder, measured)
    (runs / "split.json").unlink()
    return runs


def arguments(folder: Path, runs: Path, *more: str) -> list[str]:
    places = {"split": "s/split.json", "recorded": "found", "searches": "build", "out": "r/release", "card": "d/card"}
    options = [text for name, place in places.items() for text in (f"--{name}", str(folder / place))]
    return [str(runs), *options, "--workers", "1", *more]


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_results_that_cannot_be_written_are_refused_before_the_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(renew, "tune_all", lambda *_, **__: pytest.fail("it searched"))
    runs = write_runs(tmp_path / "few", some_configs(MEASURED, 30))
    (tmp_path / "file").write_text("")
    for flag, message in (
        ("out", "exists and is not a release"),
        ("recorded", "cannot be written"),
        ("card", "cannot be written"),
    ):
        assert renew.main([*arguments(tmp_path, runs), f"--{flag}", str(tmp_path / "file")]) == 2
        assert f"file {message}" in capsys.readouterr().err


def test_old_sides_stay_and_nothing_changes_without_new_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "params.json").write_text(sealed_text({"metrics": SETTINGS}))
    few = write_runs(tmp_path / "few", some_configs(MEASURED, 30))
    assert renew.main(arguments(tmp_path, few, "--evaluations", "0")) == 0
    assert "from 30 configs" in capsys.readouterr().out
    first, old = files(tmp_path), read_split(tmp_path / "s" / "split.json")
    assert {"s/split.json", "r/release/manifest.json", "d/card/quality.md", "d/card/quality.html"} < first.keys()
    assert "**30 configs** (21 train" in first["d/card/quality.md"].decode()
    assert renew.main(arguments(tmp_path, few, "--evaluations", "0")) == 0
    assert files(tmp_path) == first

    more = write_runs(tmp_path / "more", MEASURED)
    assert renew.main(arguments(tmp_path, more, "--evaluations", "0")) == 0
    new = read_split(tmp_path / "s" / "split.json")
    assert new.extends == old.digest
    assert len(new.config_ids) == 108
    assert np.array_equal(new.parts_of(old.config_ids), old.parts)
    renewed = read_release(tmp_path / "r" / "release")
    assert renewed.quality["data"]["configs"] == 108
    assert json.loads(first["r/release/manifest.json"])["version"] == "0.1.0"
    assert renewed.facts["version"] == "0.2.0"


def test_what_was_searched_is_what_ships_whatever_is_recorded_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = write_runs(tmp_path / "runs", some_configs(MEASURED, 30))
    before = digest_measurements(read_measurements(runs))

    def search(measured: Measurements, split: Split, folder: Path, **_: object) -> None:
        folder.mkdir(parents=True)
        (folder / "history.json").write_text(sealed_text({"metrics": {}}))
        (folder / "params.json").write_text(sealed_text({"metrics": SETTINGS}))
        shutil.rmtree(runs)
        write_runs(runs, MEASURED)

    monkeypatch.setattr(renew, "tune_all", search)
    assert renew.main(arguments(tmp_path, runs)) == 0
    opened = read_release(tmp_path / "r" / "release")
    assert opened.manifest.facts["measurements"] == before
    assert opened.quality["data"]["configs"] == 30


def test_a_search_of_something_else_works_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = write_runs(tmp_path / "runs", some_configs(MEASURED, 30))
    folders = []

    def stop(measured: Measurements, split: Split, folder: Path, **_: object) -> None:
        folders.append(folder)
        raise InvalidArgument("stopped")

    monkeypatch.setattr(renew, "tune_all", stop)
    for trees in ("5", "6", "5"):
        assert renew.main(arguments(tmp_path, runs, "--trees", trees)) == 2
    monkeypatch.setattr("surrogate.tune.FEATURES_VERSION", 0)
    assert renew.main(arguments(tmp_path, runs, "--trees", "5")) == 2
    first, second, third, fourth = folders
    assert first == third
    assert len({first, second, fourth}) == 3
    monkeypatch.undo()
    assert renew.main(arguments(tmp_path, runs, "--trees", "0")) == 2
    assert "n_trees=0 must be an integer" in capsys.readouterr().err
    assert renew.main(arguments(tmp_path, runs, "--seed", "-1")) == 2
    assert "seed=-1 must be an integer in 0..2**31-1" in capsys.readouterr().err
    assert not (tmp_path / "build").exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_a_search_finds_is_recorded_and_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renew, "LEARNED", ("runtime",))
    runs = write_runs(tmp_path / "runs", MEASURED)
    options = ["--evaluations", "1", "--trees", "5", "--seed", "3"]
    assert renew.main(arguments(tmp_path, runs, *options)) == 0
    params = json.loads((tmp_path / "found" / "params.json").read_text())["metrics"]
    history = json.loads((tmp_path / "found" / "history.json").read_text())
    quality = read_release(tmp_path / "r" / "release").quality
    assert history["split"] == read_split(tmp_path / "s" / "split.json").digest == quality["split"]
    facts = quality["metrics"]["runtime"]
    assert ForestSettings.from_dict(facts["settings"]) == ForestSettings.from_dict(rounded(params["runtime"]))
    assert facts["search"]["is_of_this_split"]
    assert len(facts["search"]["evaluations"]) == 1
    assert facts["search"]["chosen"]["tau"] >= max(size["tau"] for size in facts["search"]["sizes"]) - 0.0021
    assert quality["metrics"]["valid_acc"]["search"] is None


def test_bad_runs_leave_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = write_runs(tmp_path / "runs", some_configs(MEASURED, 30))
    (runs / "protocol.json").unlink()
    assert renew.main(arguments(tmp_path, runs)) == 2
    assert "is not a folder of runs" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
    assert not (tmp_path / "s" / "split.json").exists()
