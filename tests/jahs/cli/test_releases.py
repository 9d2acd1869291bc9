"""`jahs verify` and `jahs quality`."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest

from jahs.cli import main
from jahs.release import write_release
from jahs.tasks.definitions import TASKS
from tests.jahs.cli.conftest import QUALITY, TASK
from tests.releases import make_release, make_table


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
    if part == "noise":
        pytest.importorskip("jahs.models.noise")
    folder = make_release(tmp_path / "release", **{part: content})
    assert main(["verify", str(folder)]) == 1
    assert said in capsys.readouterr().err


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


def test_a_person_sees_the_scores_and_what_was_required(run) -> None:
    shown = run("quality").splitlines()
    assert shown[0] == "Fashion-MNIST (16 px): 300 configs, 1,360 runs, 16,320 rows"
    rows = [line.split() for line in shown]
    assert ["valid_acc", "60", "0.9123", "0.8", "1.25", "%", "0.7", "-"] in rows
    assert ["latency", "-", "-", "-", "-", "s", "-", "-"] in rows
    assert "  valid_acc tau (last epoch): 0.760 of a ceiling of 0.800 = 0.950, 0.92 is required: met" in shown
    assert "  valid_acc r2 (all): 0.900 (its ceiling is 0.930), 0.95 is required: not met" in shown
    assert "  latency r2 (all): nothing to judge by, 0.9 is required: open, not due yet" in shown


def test_a_person_is_told_over_which_rows_a_score_is(run) -> None:
    shown = run("quality")
    head = ["metric", "test rows", "R2", "tau", "mean error", "unit", "tau at the end", "of two seeds"]
    assert head in [re.split("  +", line.strip()) for line in shown.splitlines()]
    assert "A test row is one epoch of a test config" in shown
    assert "R2, tau and the mean error are\n  over all test rows. The last two are over the last epoch" in shown


def test_machines_get_everything_that_was_measured(run_json) -> None:
    assert run_json("quality") == QUALITY


def test_a_release_that_measured_nothing_says_so(tmp_path: Path, capsys) -> None:
    folder = make_release(tmp_path / "release", task="digits")
    assert main(["quality", "--task", "digits", "--release", str(folder)]) == 2
    assert "has no quality.json" in capsys.readouterr().err


@pytest.mark.parametrize("caveat", ["Short training.", None])
def test_the_caveat_of_a_task_comes_before_its_scores(run, monkeypatch, caveat: str | None) -> None:
    monkeypatch.setattr(
        "jahs.tasks.definitions.TASKS", {**TASKS, TASK: dataclasses.replace(TASKS[TASK], caveat=caveat)}
    )
    paragraphs = run("quality").split("\n\n")
    assert (paragraphs[1] == "Caveat: Short training.") == (caveat is not None)
    assert ("Caveat" in "".join(paragraphs)) == (caveat is not None)
