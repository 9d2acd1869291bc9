"""Machine code that somebody else could have put into the cache is never run, however well its checksum fits."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from jahs.files.ownership import shared_fault
from jahs.models.forest import native_code
from jahs.models.forest.native_code import cache_file, native_kernels

pytest.importorskip("numba")
llvm = pytest.importorskip("llvmlite.binding")
FORGED = b"somebody else's code"
is_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list with an item per compilation; loaded code is compared, not run."""
    native_kernels()
    expected = native_code._read(cache_file(llvm))
    compilations: list[int] = []

    def load(_: object, code: bytes) -> None:
        assert code == expected

    monkeypatch.setattr(native_code, "_compile", lambda _: compilations.append(1) or expected)
    monkeypatch.setattr(native_code, "_load", load)
    return compilations


def forge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a forged file of the right name and checksum into a cache."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    monkeypatch.setenv("JAHS_CACHE_DIR", str(folder))
    path = cache_file(llvm)
    path.write_bytes(hashlib.sha256(FORGED).digest() + FORGED)
    path.chmod(0o644)
    return path


def count_refusals(caplog: pytest.LogCaptureFixture) -> int:
    native_kernels.__wrapped__()
    n_warnings = sum("is not run" in record.message for record in caplog.records if record.levelname == "WARNING")
    caplog.clear()
    return n_warnings


@is_root
@pytest.mark.parametrize("what", ["file", "folder", "above"])
def test_code_of_another_user_is_not_run(compiled, monkeypatch, tmp_path, caplog, what):
    path = forge(tmp_path / "above" / "folder", monkeypatch)
    os.chown({"file": path, "folder": path.parent, "above": path.parent.parent}[what], 12345, -1)
    assert (count_refusals(caplog), len(compiled)) == (1, 1)
    assert count_refusals(caplog) == (0 if what == "file" else 1), "a file is healed where the folder is ours"


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
@pytest.mark.parametrize("what", ["folder", "above"])
def test_code_where_others_may_write_is_not_run(compiled, monkeypatch, tmp_path, caplog, mode, what):
    path = forge(tmp_path / "above" / "folder", monkeypatch)
    (path.parent if what == "folder" else path.parent.parent).chmod(mode)
    if what == "above" and mode == 0o1777 and os.getuid() == 0:
        pytest.skip("root's sticky folder, as /tmp: nobody can move what we own in it")
    monkeypatch.setattr("jahs.files.ownership._is_own_group", lambda _: False)
    assert (count_refusals(caplog), len(compiled)) == (1, 1)
    assert path.read_bytes().endswith(FORGED), "nothing is written where others may write"


def test_a_file_that_others_may_write_is_not_run_and_is_replaced(compiled, monkeypatch, tmp_path, caplog):
    path = forge(tmp_path / "folder", monkeypatch)
    path.chmod(0o666)
    assert (count_refusals(caplog), len(compiled)) == (1, 1)
    assert (count_refusals(caplog), len(compiled)) == (0, 1)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_link_is_not_followed(compiled, monkeypatch, tmp_path, caplog):
    path = forge(tmp_path / "folder", monkeypatch)
    path.rename(tmp_path / "saved")
    path.symlink_to(tmp_path / "saved")
    assert (count_refusals(caplog), len(compiled)) == (1, 1)


def test_the_folders_that_we_make_are_ours_alone_whatever_the_umask(compiled, monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("JAHS_CACHE_DIR", str(tmp_path / "new" / "folder"))
    umask = os.umask(0)
    try:
        native_kernels.__wrapped__()
    finally:
        os.umask(umask)
    assert shared_fault(tmp_path / "new" / "folder") is None
    assert (count_refusals(caplog), len(compiled)) == (0, 1)
