"""Paths of results are checked before long work."""

from __future__ import annotations

from pathlib import Path

import pytest

from jahs.errors import InvalidArgument
from workshop.folders import check_file, write_text


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
