"""Tar archives read in place: every member is checked before one is used, and nothing is unpacked by its own say."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from jahs.errors import CorruptFile, MissingData, UnsafeFile

__all__ = ["MOST_MEMBERS", "checked_members", "open_archive"]

MOST_MEMBERS: Final = 10_000
LARGEST_MEMBER: Final = 1 << 36


@contextmanager
def open_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """Yield a tar archive, compressed or not, open for reading; what is wrong with it becomes an error that names it.

    Raises:
        MissingData: there is no such file.
        CorruptFile: it is not an archive, or is cut off.
    """
    try:
        with tarfile.open(path) as archive:
            yield archive
    except FileNotFoundError as err:
        raise MissingData(f"{path}: no such file") from err
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as err:
        raise CorruptFile(f"{path} is not a readable archive: {err}") from err


def checked_members(archive: tarfile.TarFile, where: str) -> list[tarfile.TarInfo]:
    """Return the files of an archive, after a look at all of its members.

    Raises:
        UnsafeFile: a member is a link or a device, would land outside of the folder it is unpacked in, or is larger
            than any file of such an archive; lists the first ones.
        CorruptFile: the archive is cut off.
    """
    members, faults = [], []
    for member in archive:
        if fault := _fault(member):
            faults.append(f"{where}: member {member.name[:200]!r} {fault}")
        members.append(member)
        if len(members) > MOST_MEMBERS:
            faults.append(f"{where} has more than {MOST_MEMBERS} members")
            break
    if faults:
        raise UnsafeFile("\n".join(faults[:10]))
    _check_end(archive, where)
    return [member for member in members if member.isreg()]


def _fault(member: tarfile.TarInfo) -> str | None:
    name = PurePosixPath(member.name)
    if member.issym() or member.islnk():
        return f"is a link to {member.linkname[:200]!r}"
    if member.issparse() or not (member.isreg() or member.isdir()):
        return "is neither a plain file nor a folder"
    if name.is_absolute() or ".." in name.parts or "\\" in member.name or ":" in member.name or "\0" in member.name:
        return "would land outside of its folder"
    if not 0 <= member.size <= LARGEST_MEMBER:
        return f"claims {member.size} bytes; {LARGEST_MEMBER} are allowed"
    return None


def _check_end(archive: tarfile.TarFile, where: str) -> None:
    """An archive that was cut off, or is damaged, behind one of its members looks whole to tarfile."""
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise CorruptFile(f"{where} is cut off or damaged: its end is not at byte {archive.offset}; fetch it again")
