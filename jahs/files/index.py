"""The index of a folder: the sha256 of each of its files, so that a file that was damaged or edited is noticed.

    FOLDER/index.json   {"digest": digest of "files", "files": {name: [sha256, ...]}, "format": 1}

A name has several states only while its file is being replaced, or if that was interrupted: the sha256 before and
after, or null for no file. The states are written before the file, so a crash at any moment leaves a folder that its
index describes. A folder without an index was written by an earlier version, and is read unchecked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from jahs.errors import CorruptFile, MissingData, UnknownFormat, reading
from jahs.files.atomic import out_of_space, write_beside
from jahs.files.hashing import digest_facts, sha256_file

INDEX: Final = "index.json"
INDEX_FORMAT: Final = 1

Files: TypeAlias = Mapping[str, tuple[str | None, ...]]
"""The states that each file of a folder may have."""


def read_index(folder: Path) -> Files | None:
    """Return the files that the index of a folder lists; None without an index.

    Raises CorruptFile if a byte of it has changed, UnknownFormat if another version wrote it, MissingData if it cannot
    be read.
    """
    path = folder / INDEX
    with reading(path):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except NotADirectoryError as err:
            raise MissingData(f"{folder} is a file, not a folder") from err
    try:
        content = json.loads(data)
        version, files = content["format"], content["files"]
        if version == INDEX_FORMAT and data == _text(files).encode():
            return {name: tuple(states) for name, states in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise CorruptFile(f"{path} cannot be read: {err!r}; restore it from a copy") from err
    if version != INDEX_FORMAT and content.get("digest") == digest_facts({"files": files}):
        raise UnknownFormat(f"{path}: format {version!r}; this version reads format {INDEX_FORMAT}")
    raise CorruptFile(f"{path} was damaged or edited after it was written; restore it from a copy")


def write_index(folder: Path, files: Files) -> None:
    """Write the index of a folder, whole or not at all; OutOfSpace leaves it as it was."""
    path = folder / INDEX
    with out_of_space(path), write_beside(path) as beside:
        beside.write_text(_text(files))


def _text(files: Mapping[str, Any]) -> str:  # Any: JSON
    files = {name: list(states) for name, states in files.items()}
    content = {"digest": digest_facts({"files": files}), "files": files, "format": INDEX_FORMAT}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def state_of(path: Path) -> str | None:
    """Return the sha256 of a file, or None if it does not exist."""
    try:
        return sha256_file(path)
    except FileNotFoundError:
        return None


def index_faults(folder: Path, files: Files, unlisted: Iterable[str]) -> list[str]:
    """Return the faults of the `files` that an index lists, and of the names in `unlisted` that it lacks."""
    faults = [f"{name} is not in {INDEX}: it was added by other means" for name in unlisted if name not in files]
    for name, states in sorted(files.items()):
        if (sha256 := state_of(folder / name)) not in states:
            what = "is missing" if sha256 is None else "was damaged or edited: its sha256 differs from the index"
            faults.append(f"{name} {what}")
    return faults
