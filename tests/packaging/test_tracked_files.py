"""What is in the repository: no pickle under any name, nothing large, no file of one machine."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PICKLE_SUFFIXES = {".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth"}
LARGEST_BYTES = 32 * 2**20


def tracked_files() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing is tracked")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def is_pickle(data: bytes) -> bool:
    """Whether these bytes are a pickle, or an archive or array file that holds one."""
    if data[:1] == b"\x80" and data[1:2] in b"\x02\x03\x04\x05" and data[-1:] == b".":
        return True
    if data[:4] == b"PK\x03\x04":
        archive = zipfile.ZipFile(io.BytesIO(data))
        return any(Path(name).suffix in PICKLE_SUFFIXES or is_pickle(archive.read(name)) for name in archive.namelist())
    if data[:6] == b"\x93NUMPY":
        return b"'|O'" in data[:256]
    return False


def test_no_tracked_file_is_or_holds_a_pickle() -> None:
    suspects = [path for path in tracked_files() if path.suffix in PICKLE_SUFFIXES or is_pickle(path.read_bytes())]
    assert suspects == []


def test_no_tracked_file_is_large() -> None:
    assert [path for path in tracked_files() if path.stat().st_size > LARGEST_BYTES] == []


def test_a_pickle_is_found_under_any_name() -> None:
    objects = io.BytesIO()
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    numbers = io.BytesIO()
    np.savez(numbers, a=np.arange(3))
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("inner.npy", objects.getvalue())
    assert is_pickle(b"\x80\x04]\x94.")
    assert is_pickle(objects.getvalue())
    assert is_pickle(bundle.getvalue())
    assert not is_pickle(numbers.getvalue())
    assert not is_pickle(b"plain text.")
