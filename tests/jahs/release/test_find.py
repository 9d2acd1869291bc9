"""Where releases are looked for, and what happens where a folder that somebody named is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import jahs
from jahs.errors import CorruptFile, InvalidArgument, MissingData, UnknownName
from jahs.files.runs import RUNS_FORMAT
from jahs.release import find_release, releases
from jahs.release.find import DATA_DIR, default_task, full_path
from jahs.tasks.definitions import DEFAULT_TASK
from tests.releases import make_release


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release, in a folder that holds it by its task."""
    return make_release(tmp_path_factory.mktemp("data") / "digits")


def test_a_relative_data_folder_stays_what_it_was(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder.parent.parent)
    monkeypatch.setenv(DATA_DIR, folder.parent.name)
    bench = jahs.Benchmark("digits", engine="numpy")
    config = bench.sample(seed=0)
    (tmp_path / folder.parent.name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_release("digits") == bench.release == folder
    assert bench.query(config) == jahs.Benchmark("digits", engine="numpy").query(config)


def test_a_tilde_is_the_home(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent.parent))
    monkeypatch.setenv(DATA_DIR, f"~/{folder.parent.name}")
    assert releases()["digits"] == find_release("digits", f"~/{folder.parent.name}/digits") == folder
    with pytest.raises(MissingData, match="~nobody-of-this-name/data: there is no such user; write the path in full"):
        full_path("~nobody-of-this-name/data")


@pytest.mark.parametrize("name", ["typo", "file", "file/below"])
def test_a_data_folder_that_is_none_is_refused_and_not_passed_over(tmp_path, monkeypatch, name):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(DATA_DIR, str(tmp_path / name))
    for ask in (releases, lambda: find_release("digits"), jahs.Benchmark):
        with pytest.raises(MissingData, match=rf"JAHS_DATA_DIR=.*{name} is not a folder; set it to .* or unset it"):
            ask()


def test_a_named_release_is_found_whatever_the_variable_says(folder, tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_DIR, str(tmp_path / "typo"))
    assert find_release("digits", folder) == folder


def test_where_no_task_is_named_it_is_that_of_the_named_release(folder, tmp_path):
    assert jahs.Benchmark(release=folder).task.name == default_task(folder) == "digits"
    assert default_task(None) == default_task(folder.parent) == default_task(tmp_path) == DEFAULT_TASK
    (tmp_path / "manifest.json").write_text("{")
    assert default_task(tmp_path) == DEFAULT_TASK  # opening it says what is wrong


def test_where_no_task_is_named_it_is_that_of_the_named_runs(tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    facts = {"task": {"name": "digits"}, "training": {"batch_size": 256}}
    (runs / "protocol.json").write_text(json.dumps({"format": RUNS_FORMAT, "digest": "0" * 16, "protocol": facts}))
    assert default_task(runs) == "digits"
    (runs / "protocol.json").write_text(json.dumps({"format": RUNS_FORMAT, "digest": "0" * 16, "protocol": []}))
    assert default_task(runs) == DEFAULT_TASK


@pytest.mark.parametrize("given", [5, b"folder", ["folder"]], ids=str)
def test_what_is_no_path_is_refused(given):
    with pytest.raises(InvalidArgument, match=r"is not a path; give a str or a pathlib\.Path"):
        jahs.Benchmark("digits", release=given)
    with pytest.raises(InvalidArgument, match="is neither a task nor the path of a task file"):
        jahs.tasks.register(given)


def test_a_data_folder_without_the_task_leaves_it_to_the_package(tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_DIR, raising=False)
    own = releases()
    monkeypatch.setenv(DATA_DIR, str(tmp_path))
    assert releases() == own


NO_RELEASE = "is not a release, because it is not a folder; name a release's folder, or one that"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [("typo", MissingData, NO_RELEASE), ("nul\0", InvalidArgument, "holds a character that no path has")],
)
def test_a_release_that_is_not_there_is_told_with_what_to_name(tmp_path, given, error, message):
    with pytest.raises(error, match=message):
        find_release("digits", tmp_path / given)
    with pytest.raises(error, match=message):
        find_release("leaves", tmp_path / given)
    with pytest.raises(error, match=message):
        jahs.Benchmark(release=tmp_path / given)
    with pytest.raises(
        UnknownName, match=r"'leaves' does not exist; .* is not a release that defines it, since it has"
    ):
        find_release("leaves", tmp_path)


def test_a_save_dir_of_jahs_bench_need_not_be_there_and_may_hold_other_files(folder, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv(DATA_DIR, str(folder.parent))
    (tmp_path / "archives").mkdir()
    for save_dir in (tmp_path / "not-yet", tmp_path / "archives"):
        assert find_release("digits", save_dir=save_dir) == folder
        assert f"save_dir={save_dir} holds no release of digits" in caplog.text
    copy = Path(shutil.copytree(folder, tmp_path / "archives" / "digits"))
    assert find_release("digits", save_dir=tmp_path / "archives") == copy
    (tmp_path / "file").write_text("")
    with pytest.raises(
        MissingData, match=r"save_dir=.*file is not a folder; name one that holds a release, or leave it"
    ):
        find_release("digits", save_dir=tmp_path / "file")


def test_a_save_dir_that_is_a_release_of_another_task_is_passed_over(folder, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv(DATA_DIR, str(folder.parent))
    save_dir = make_release(tmp_path / "save", task="cifar10_mini")
    assert find_release("cifar10_mini", save_dir=save_dir) == save_dir
    assert not caplog.text
    assert jahs.Benchmark("digits", save_dir=save_dir, engine="numpy").release == folder
    assert f"save_dir={save_dir} holds no release of digits" in caplog.text
    below = Path(shutil.copytree(folder, save_dir / "digits"))
    assert find_release("digits", save_dir=save_dir) == below


def test_a_save_dir_with_a_damaged_manifest_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_DIR, str(folder.parent))
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(CorruptFile, match=r"manifest\.json cannot be read as JSON"):
        find_release("digits", save_dir=tmp_path)


LOCKED = """
import os, sys
from pathlib import Path
import jahs
from jahs.release import find_release
above, data = Path(sys.argv[1]), Path(sys.argv[1]) / "data"
above.chmod(0)
if os.geteuid() == 0:
    os.setuid(65534)
os.environ["JAHS_DATA_DIR"] = str(above if sys.argv[2] == "above" else data)
for ask in (
    jahs.releases,
    lambda: find_release("digits", data),
    lambda: find_release("digits", save_dir=data),
):
    try:
        print(ask())
    except jahs.errors.MissingData as err:
        print(err)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
@pytest.mark.parametrize("named", ["above", "below"])
def test_a_folder_that_this_user_may_not_read_is_refused(folder, named):
    with TemporaryDirectory() as place:  # pytest's own folders are closed to other users
        Path(place).chmod(0o755)
        shutil.copytree(folder, Path(place) / "locked" / "data" / "digits")
        command = [sys.executable, "-c", LOCKED, str(Path(place) / "locked"), named]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        (Path(place) / "locked").chmod(0o755)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    to_do = "make it and its folder readable for this user, or name another folder"
    for line in lines:
        assert f"cannot be read (Permission denied); {to_do}" in line
