"""`jahs verify` and `jahs quality`."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest

from jahs.cli import main
from jahs.files.download import FetchedFile
from jahs.release import releases, write_release
from jahs.tasks.definitions import TASKS
from tests.jahs.cli.conftest import QUALITY, TASK
from tests.releases import make_release, make_table

MET = QUALITY["requirements"][0]


@pytest.fixture
def copy(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "copy"))


def test_a_whole_release_passes_and_every_file_is_named(release: Path, capsys) -> None:
    assert main(["verify", str(release)]) == 0
    shown = capsys.readouterr().out
    names = {path.name for path in release.iterdir()} - {"manifest.json"}
    assert all(f"{name} " in shown for name in names)
    assert main(["verify", str(release), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["files"]) == names


def test_every_damaged_and_missing_file_is_told_at_once(copy: Path, capsys) -> None:
    forest = copy / "forests-0.npz"
    data = bytearray(forest.read_bytes())
    data[len(data) // 2] ^= 1
    forest.write_bytes(data)
    (copy / "table.npz").unlink()
    assert main(["verify", str(copy)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "forests-0.npz is damaged" in told[0]
    assert "table.npz is missing" in told[1]


def test_a_release_of_recorded_runs_alone_passes(tmp_path: Path, capsys) -> None:
    write_release(tmp_path / "release", manifest_facts={"task": "digits"}, table=make_table("digits", 10))
    assert main(["verify", str(tmp_path / "release")]) == 0
    assert "Every file can be read." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("part", "content", "said"),
    [
        ("references", {"format": 9}, "this version of jahs reads format 1"),
        ("noise", {"format": 9}, "noise"),
    ],
    ids=["references", "noise"],
)
def test_what_has_the_right_bytes_must_be_readable_too(tmp_path: Path, capsys, part, content, said) -> None:
    folder = make_release(tmp_path / "release", **{part: content})
    assert main(["verify", str(folder)]) == 1
    assert said in capsys.readouterr().err


def test_the_name_of_a_task_has_any_case_but_a_folder_of_that_name_comes_first(tmp_path, capsys, monkeypatch) -> None:
    assert main(["verify", "CIFAR10_Mini", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["release"] == str(releases()["cifar10_mini"])
    monkeypatch.chdir(tmp_path)
    make_release(tmp_path / "Cifar10_Mini")
    assert main(["verify", "Cifar10_Mini", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["release"] == "Cifar10_Mini"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"requirements": [{}]}, "requirement 0, metric must be a text, got None"),
        ({"requirements": [{**MET, "cut": 3}]}, "requirement 0, cut must be a text, got 3"),
        ({"requirements": [MET, {**MET, "required": "0.9"}]}, "requirement 1, required must be a number, got '0.9'"),
        ({"requirements": [{**MET, "reached": []}]}, "requirement 0, reached must be a number or null, got []"),
        ({"requirements": [{**MET, "is_met": []}]}, "requirement 0, is_met must be true, false or null, got []"),
        ({"requirements": [None]}, "requirement 0 must be an object, got None"),
        ({"requirements": {}}, "requirements must be a list or null, got {}"),
        ({"metrics": [1]}, "metrics must be an object or null, got [1]"),
        ({"metrics": {"latency": None}}, "latency must be an object, got None"),
        ({"metrics": {"latency": {"test": {"cuts": 1}}}}, "latency, cuts must be an object or null, got 1"),
        ({"metrics": {"latency": {"test": {"cuts": {"all": {"model": {"r2": "high"}}}}}}}, "latency, all, model, r2"),
        ({"data": {"runs": None}}, "data, runs must be a number, got None"),
        ({"data": []}, "data must be an object or null, got []"),
    ],
    ids=range(13),
)
def test_scores_that_cannot_be_shown_are_found_by_verify_and_named_by_quality(tmp_path, capsys, content, said) -> None:
    folder = make_release(tmp_path / "release", quality={"format": 1, **content})
    for argv in (["verify", str(folder)], ["quality", "--release", str(folder)]):
        assert main(argv) == 1
        told = capsys.readouterr().err
        assert "quality.json: quality: " in told
        assert said in told


@pytest.mark.parametrize("content", [{}, {"data": None, "metrics": None, "requirements": None}], ids=str)
def test_scores_that_were_not_measured_may_be_missing_or_null(tmp_path, capsys, content) -> None:
    folder = make_release(tmp_path / "release", quality={"format": 1, **content})
    assert main(["verify", str(folder)]) == 0
    assert main(["quality", "--release", str(folder)]) == 0


@pytest.mark.parametrize("config", [5, {"N": 4}], ids=str)
def test_a_reference_config_that_is_invalid_is_found_by_verify(tmp_path, capsys, config) -> None:
    folder = make_release(tmp_path / "release", facts={"reference_config": config})
    assert main(["verify", str(folder)]) == 1
    assert "manifest.json: reference_config: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no/such/folder", "no/such/folder is not a folder; give a release's folder, or a task: digits"),
        (".", "is not a release"),
        ("digits", "there is no release for task 'digits'; give the folder of one: jahs verify FOLDER"),
    ],
    ids=["nothing", "folder", "task"],
)
def test_what_is_no_release_is_refused(capsys, monkeypatch, given: str, said: str) -> None:
    monkeypatch.setattr("jahs.release.find.data_folders", tuple)
    assert main(["verify", given]) == 2
    assert said in capsys.readouterr().err


def test_a_download_needs_a_home_only_where_no_other_folder_is_given(tmp_path: Path, capsys, monkeypatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    folders: list[Path] = []
    fetched = FetchedFile(path=tmp_path / "a.tar", n_bytes=1, sha256="0" * 64, is_new=True)
    monkeypatch.setattr("jahs.cli.releases.download_archives", lambda path, **_: folders.append(path) or [fetched])
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    words = ["download", "jahs-bench-201", "--what", "surrogates"]
    assert main([*words, "--dir", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(words) == 2
    assert capsys.readouterr().err == "jahs download: this user has no home; name a folder with --dir\n"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(words) == 0
    assert folders == [tmp_path, tmp_path / "cache" / "jahs" / "jahs-bench-201" / "1.1.0"]


def test_a_person_sees_the_scores_their_rows_and_what_was_required(run) -> None:
    shown = run("quality").splitlines()
    epochs = ["R2, all epochs", "tau, all epochs", "MAE, all epochs", "MAE, last epoch", "unit", "tau, last epoch"]
    head = ["metric", "test rows", *epochs, "noise ceiling"]
    assert head in [re.split("  +", line.strip()) for line in shown]
    assert any("A test row is one epoch of a test config" in line for line in shown)
    assert shown[0] == "CIFAR-10 (16 px): 300 configs, 1,360 runs, 16,320 rows"
    rows = [line.split() for line in shown]
    assert ["valid_acc", "60", "0.9123", "0.8", "1.25", "-", "%", "0.7", "-"] in rows
    assert ["latency", "-", "-", "-", "-", "-", "s", "-", "-"] in rows
    assert "  valid_acc tau / noise ceiling (last epoch): 0.760 / 0.800 = 0.950, required 0.92: reached" in shown
    missed = "  valid_acc R2 (all): 0.900, required 0.95: not reached; the noise ceiling is lower, too"
    assert missed in shown
    assert "  latency R2 (all): too few data, required 0.9: open (required from 2,000 configs on)" in shown


def test_machines_get_everything_that_was_measured(run_json) -> None:
    assert run_json("quality") == QUALITY


def test_a_release_that_measured_nothing_says_so(tmp_path: Path, capsys) -> None:
    folder = make_release(tmp_path / "release", task="digits")
    assert main(["quality", "--task", "digits", "--release", str(folder)]) == 2
    assert "has no quality.json" in capsys.readouterr().err


@pytest.mark.parametrize("caveat", ["Short training.", None])
def test_the_caveat_of_a_task_comes_before_its_scores(run, monkeypatch, caveat: str | None) -> None:
    described = dataclasses.replace(TASKS[TASK], caveat=caveat)
    monkeypatch.setattr("jahs.tasks.definitions.TASKS", {**TASKS, TASK: described})
    paragraphs = run("quality").split("\n\n")
    assert (paragraphs[1] == "Caveat: Short training.") == (caveat is not None)
    assert ("Caveat" in "".join(paragraphs)) == (caveat is not None)
