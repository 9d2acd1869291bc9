"""Where the published files are: in an archive, in the folder it was unpacked to, or in the folder of one metric."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import BinaryIO, Final

from jahs.errors import CorruptFile, MissingData
from jahs.files.archives import checked_members, open_archive

__all__ = ["PUBLISHED_TASKS", "PublishedFile", "open_files"]

PUBLISHED_TASKS: Final = ("cifar10", "colorectal_histology", "fashion_mnist")
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """One file, in an archive or not.

    Attributes:
        folder: its parts' names, from the archive's or the given folder's top.
        name: its own name.
        where: what to call it in messages.
        open: opens it for reading bytes.
    """

    folder: tuple[str, ...]
    name: str
    where: str
    open: Callable[[], BinaryIO]

    @property
    def task(self) -> str | None:
        """The task that its path names, the innermost one."""
        return next((part for part in reversed(self.folder) if part in PUBLISHED_TASKS), None)

    def sha256(self) -> str:
        """The sha256 of its bytes."""
        sha = hashlib.sha256()
        with self.open() as file:
            while chunk := file.read(_CHUNK):
                sha.update(chunk)
        return sha.hexdigest()


@contextmanager
def open_files(path: Path, names: Sequence[str]) -> Iterator[list[PublishedFile]]:
    """Yield the files of these names that an archive or a folder holds, at any depth, sorted.

    Raises:
        MissingData: there is nothing at `path`.
        UnsafeFile: the archive has members that no such archive has.
        CorruptFile: it cannot be read.
    """
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.name in names and p.is_file()]
        yield [
            PublishedFile(
                folder=(*_last_parts(path), *p.relative_to(path).parts[:-1]),
                name=p.name,
                where=str(p),
                open=partial(_open_path, p),
            )
            for p in sorted(found)
        ]
        return
    if not path.exists():
        raise MissingData(f"{path} does not exist; see: jahs download jahs-bench-201")
    with open_archive(path) as archive:
        members = {PurePosixPath(member.name): member for member in checked_members(archive, str(path))}
        yield [
            PublishedFile(
                folder=name.parts[:-1],
                name=name.name,
                where=f"{path}: {name}",
                open=partial(_open_member, archive, member),
            )
            for name, member in sorted(members.items())
            if name.name in names
        ]


def _last_parts(path: PurePath) -> tuple[str, ...]:
    """The last two names of a given folder, since it may be that of one task or of one metric."""
    return Path(path).resolve().parts[-2:]


def _open_path(path: Path) -> BinaryIO:
    return path.open("rb")


def _open_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    file = archive.extractfile(member)
    if file is None:
        raise CorruptFile(f"{archive.name!s}: {member.name} is no file")
    return file  # type: ignore[return-value]  # IO[bytes], which is all that is used of it
