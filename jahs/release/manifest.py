"""A release's manifest, and reading the files that it lists.

A manifest has the size and sha256 of every other file. It is not trusted to be small or to stay inside the folder:
names must be plain, sizes are bounded, and links are not followed.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final, TypeVar

from jahs.errors import CorruptFile, MissingData, UnknownFormat, reading
from jahs.files.strict_json import parse_json

RELEASE_FORMAT: Final = 1
"""Version of the folder; a reader refuses any other."""

MANIFEST: Final = "manifest.json"
MAX_JSON: Final = 2**25
_MAX_FILES: Final = 1000
_MAX_SIZE: Final = 2**34
_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_-]*(/[a-z0-9_][a-z0-9_-]*)?\.(json|npz|npy)")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_Data = TypeVar("_Data", bytes, mmap.mmap)
_RESTORE: Final = "restore the file, or the whole release (an embedded one: reinstall jahs)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The facts of a release, and its files."""

    folder: Path
    task: str
    files: Mapping[str, tuple[int, str]]  # (size in bytes, sha256) of every other file, by name
    facts: Mapping[str, Any]  # version, source, protocol, seed, versions, commit, command; Any: JSON
    sha256: str  # sha256 of the manifest itself, which covers the whole release

    def read(self, name: str) -> bytes:
        """Return the bytes of a file: exactly the hashed bytes are parsed.

        MissingData if it cannot be read; CorruptFile if its size or its sha256 differs, or it is a link.
        """
        with self._open(name) as file:
            return self._checked(name, file.read(self.files[name][0] + 1))

    def map(self, name: str) -> mmap.mmap:
        """Return a file as `read` does, mapped into memory: exactly the hashed pages are parsed.

        Replacing the file changes nothing; overwriting it in place does.
        """
        with self._open(name) as file:
            if os.fstat(file.fileno()).st_size != self.files[name][0] or not self.files[name][0]:
                self._checked(name, file.read(self.files[name][0] + 1))
                raise CorruptFile(f"{self.folder / name} is empty; {_RESTORE}")
            return self._checked(name, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def _checked(self, name: str, data: _Data) -> _Data:
        path, (size, sha256) = self.folder / name, self.files[name]
        if len(data) != size:
            n_bytes = path.stat().st_size if len(data) > size else len(data)
            raise CorruptFile(f"{path} has {n_bytes} bytes, not the {size} that {MANIFEST} says; {_RESTORE}")
        if hashlib.sha256(data).hexdigest() != sha256:
            raise CorruptFile(f"{path} is damaged: its sha256 is not the one that {MANIFEST} says; {_RESTORE}")
        return data

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        path = self.folder / name
        if name not in self.files:
            raise MissingData(f"{path}: the release has no {name}; its files are {', '.join(sorted(self.files))}")
        with _naming(path):
            if any(part.is_symlink() for part in (path, path.parent) if part != self.folder):
                raise CorruptFile(f"{path} is a link, not a file; {_RESTORE}")
            if not stat.S_ISREG(mode_of(path)):
                raise MissingData(f"{path} is missing, which {MANIFEST} lists; {_RESTORE}")
            with path.open("rb", buffering=0) as file:
                yield file

    def check(self, name: str) -> None:
        """Check a file, however large, without keeping it; raises as `read`."""
        if self.files.get(name, (1, ""))[0]:
            self.map(name).close()
        else:
            self.read(name)

    def strangers(self) -> list[str]:
        """Return the files, folders and links that are in the folder but not in the release."""
        known = {MANIFEST, *self.files, *(folder for name in self.files if (folder := name.rpartition("/")[0]))}
        with _naming(self.folder):
            paths = {path.relative_to(self.folder).as_posix(): path for path in sorted(self.folder.rglob("*"))}
        return [name for name, path in paths.items() if name not in known or path.is_symlink()]

    def read_json(self, name: str) -> Any:  # Any: JSON
        """Return the content of a JSON file of the release, after the check of `read`."""
        path = self.folder / name
        if (size := self.files.get(name, (0, ""))[0]) > MAX_JSON:
            raise CorruptFile(f"{path} has {size} bytes; at most {MAX_JSON} are read")
        return _parsed(path, self.read(name))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a release.

    Raises:
        MissingData: the folder is not a release, or this user may not read it.
        CorruptFile, UnknownFormat: the manifest is invalid, or of another format version.
    """
    path = folder / MANIFEST
    with _naming(path):
        if path.is_symlink():
            raise CorruptFile(f"{path} is a link, not a file; {_RESTORE}")
        if not stat.S_ISREG(mode_of(path)):
            raise MissingData(f"{folder} is not a release: it has no {MANIFEST}; see jahs.releases()")
        if (size := path.stat().st_size) > MAX_JSON:
            raise CorruptFile(f"{path} has {size} bytes; at most {MAX_JSON} are read")
        data = path.read_bytes()
    content = _parsed(path, data)
    if not isinstance(content, dict):
        raise CorruptFile(f"{path} is not a manifest: it is not a JSON object; {_RESTORE}")
    version = content.pop("format", None)
    if type(version) is not int or version != RELEASE_FORMAT:
        raise UnknownFormat(
            f"{path}: release format {version!r}; this version of jahs reads format {RELEASE_FORMAT}: install the jahs "
            "that wrote it, or a newer one"
        )
    task, files = content.pop("task", None), content.pop("files", None)
    if not isinstance(task, str) or not isinstance(files, dict) or len(files) > _MAX_FILES:
        raise CorruptFile(f"{path}: needs a task and up to {_MAX_FILES} files; {_RESTORE}")
    return Manifest(
        folder=folder,
        task=task,
        files=MappingProxyType({name: _entry(path, name, entry) for name, entry in files.items()}),
        facts=MappingProxyType(content),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def mode_of(path: Path) -> int:
    """Return the mode of a path, 0 if nothing is there; OSError without permission to look.

    Python 3.14's `is_file` does not raise then.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: no path has such a character
        return 0


def _naming(path: Path) -> AbstractContextManager[None]:
    return reading(path, or_else="name another release as release=")


def _entry(path: Path, name: str, entry: Any) -> tuple[int, str]:  # Any: JSON
    if not _NAME.fullmatch(name):
        raise CorruptFile(f"{path}: {name[:80]!r} is not a valid name of a release's file; {_RESTORE}")
    size, sha256 = (entry.get("size"), entry.get("sha256")) if isinstance(entry, dict) else (None, None)
    if type(size) is not int or not 0 <= size <= _MAX_SIZE:
        raise CorruptFile(f"{path}: {name}: size={size!r} is not a number of bytes in 0..{_MAX_SIZE}; {_RESTORE}")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise CorruptFile(f"{path}: {name}: its sha256 is not 64 hex digits; {_RESTORE}")
    return size, sha256


def _parsed(path: Path, data: bytes) -> Any:  # Any: JSON
    """Return the content of a JSON file; CorruptFile if it is invalid."""
    try:
        return parse_json(data)
    except ValueError as err:
        raise CorruptFile(f"{path} cannot be read as JSON ({err}); {_RESTORE}") from err


def to_json(content: object) -> bytes:
    """Return the bytes of a JSON file: the same for the same content; ValueError or TypeError if it is not JSON."""
    return (json.dumps(content, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n").encode()
