"""Paths of results are checked before long work, and folders are locked."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from jahs.errors import InvalidArgument
from jahs.files.atomic import HAS_LOCKS
from workshop.folders import check_file, held_folder, write_text


def test_a_path_that_no_file_can_be_written_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (Path("new.json"), tmp_path / "new.json"):
        check_file(path)
    write_text(Path("new.json"), "")
    check_file(Path("new.json"))
    with pytest.raises(InvalidArgument, match="must be a file, got a folder"):
        check_file(tmp_path)
    for folder in ("no", "new.json"):
        with pytest.raises(InvalidArgument, match="its folder does not exist; make it first"):
            check_file(Path(folder) / "a.json")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InvalidArgument, match="cannot be written: no permission to write to"):
        check_file(Path("new.json"))


@pytest.mark.skipif(not HAS_LOCKS, reason="this system has no locks")
def test_a_held_folder_is_waited_for(tmp_path: Path) -> None:
    entered = threading.Event()

    def wait() -> None:
        with held_folder(tmp_path):
            entered.set()

    waiting = threading.Thread(target=wait)
    with held_folder(tmp_path):
        waiting.start()
        assert not entered.wait(0.2)
    waiting.join(10)
    assert entered.is_set()
    assert not list(tmp_path.iterdir())
