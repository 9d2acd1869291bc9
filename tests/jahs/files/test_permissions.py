"""Unreadable files and folders raise an error that names them; their contents are never skipped silently."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

LOCKED = """
import os, sys
from pathlib import Path
import jahs
from jahs.files.index import read_index
from jahs.files.runs import run_shards
from jahs.published import surrogates, table
from jahs.queries.oracles import opening
place = Path(sys.argv[1])
for name in sys.argv[2:]:
    (place / name).chmod(0)
if os.geteuid() == 0:
    os.setuid(65534)
for ask in (
    lambda: run_shards(place / "runs"),
    lambda: read_index(place / "runs"),
    lambda: jahs.Benchmark(kind="table", release=place / "runs"),
    lambda: opening._sha256_of_runs(place / "others"),
    lambda: jahs.Benchmark(kind="table", release=place / "closed"),
    lambda: surrogates.import_surrogates(place / "models", place / "out"),
    lambda: surrogates.import_surrogates(place / "models.tar", place / "out"),
):
    try:
        print(ask())
    except jahs.errors.MissingData as err:
        print(err)
"""
FOLDERS = ("runs/new", "closed", "models/cifar10/latency")
FILES = ("runs/index.json", "runs/protocol.json", "others/configs.parquet", "models.tar")


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_what_this_user_may_not_read_is_named_and_not_left_out():
    with TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        place = Path(name)
        place.chmod(0o755)
        for folder in FOLDERS:
            (place / folder).mkdir(parents=True)
        for file in FILES:
            (place / file).parent.mkdir(exist_ok=True)
            (place / file).write_bytes(b"")
        (place / "models" / "cifar10" / "model.pkl.gz").write_bytes(b"")
        command = [sys.executable, "-c", LOCKED, name, *FOLDERS, *FILES]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for folder in FOLDERS:
            (place / folder).chmod(0o755)
    named = ("runs/new", "runs/index.json", "runs/protocol.json", "others/configs.parquet", "closed")
    for line, path in zip(done.stdout.splitlines(), (*named, "models/cifar10/latency", "models.tar"), strict=True):
        assert line.startswith(f"{place / path}")
        assert "cannot be read (Permission denied); make it and its folder readable for this user, or name" in line


def test_a_folder_without_single_runs_is_read(tmp_path):
    from jahs.files.runs import run_shards

    for name in ("runs-0002.parquet", "runs-0001.parquet", "profile.parquet"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in run_shards(tmp_path)] == ["runs-0001.parquet", "runs-0002.parquet"]
