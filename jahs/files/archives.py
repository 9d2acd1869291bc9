"""Tar archives read in place: every member is checked before one is used, and nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from jahs.errors import CorruptFile, JahsError, UnsafeFile, reading, translating

MOST_MEMBERS: Final = 10_000
LARGEST_MEMBER: Final = 1 << 36
_FREE: Final = 32 << 20  # bytes that are allowed in addition to the ratio
_RATIO: Final = 200  # decompressed by compressed bytes
_MOST_HEADERS: Final = 4 << 20  # bytes of long names and pax headers, which tarfile reads whole and keeps
_HEADERS: Final = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
_BROKEN: Final = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)


@contextmanager
def open_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """Yield a tar archive, compressed or not, open for reading; MissingData, UnsafeFile or CorruptFile name it."""
    with reading(path, or_else="name another file"), _reading_headers(str(path)):
        archive = tarfile.open(path, tarinfo=_bounded_headers(str(path)))  # noqa: SIM115  # closed below
    try:
        with archive:
            yield archive
    except _BROKEN as err:
        raise CorruptFile(f"{path} is not a readable archive: {err}; fetch it again") from err


def checked_members(archive: tarfile.TarFile, where: str) -> list[tarfile.TarInfo]:
    """Return the files of an archive after a check of all its members.

    Raises:
        UnsafeFile: a member is a link or a device, would be unpacked outside the folder, occurs twice, or is larger
            than any file of such an archive; lists the first ones. Or the headers are larger than in any such archive,
            or a compressed file decompresses to more than 200 times its size.
        CorruptFile: the archive is cut off, or its headers make no sense.
    """
    members, faults, names = [], [], set()
    limit = _FREE + _RATIO * Path(str(archive.name)).stat().st_size
    with _reading_headers(where):
        for member in archive:
            name = PurePosixPath(member.name)
            is_beyond = member.offset_data + member.size > limit
            fault = _fault(member) or ("occurs twice" if name in names else None)
            if fault is None and is_beyond:
                fault = f"ends after byte {limit}; no data is that repetitive"
            if fault is not None:
                faults.append(f"{where}: member {member.name[:200]!r} {fault}")
            if member.size < 0 or is_beyond:
                break  # nothing after this is read
            names.add(name)
            members.append(member)
            if len(members) > MOST_MEMBERS:
                faults.append(f"{where} has more than {MOST_MEMBERS} members")
                break
        if faults:
            raise UnsafeFile("\n".join(faults[:10]))
        _check_end(archive, where)
    return [member for member in members if member.isreg()]


def _reading_headers(where: str) -> AbstractContextManager[None]:
    """Raise CorruptFile, naming the archive, for every error of tarfile about its headers."""

    def unreadable(err: Exception) -> JahsError:
        why = str(err).partition("\n")[0].rstrip(":") or type(err).__name__  # tarfile adds a line for each compression
        return CorruptFile(f"{where} is not a readable archive: {why}; fetch it again")

    return translating(*_BROKEN, ArithmeticError, ValueError, MemoryError, RecursionError, into=unreadable)


def _bounded_headers(where: str) -> type[tarfile.TarInfo]:
    """Return the class of an archive's members, which refuses long headers before they are read.

    It also refuses sparse files, whose lists of pieces may be endless.
    """
    n_bytes = 0

    class Member(tarfile.TarInfo):
        # Every version of Python calls this for every header; `frombuf` is bypassed since 3.14.
        def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
            nonlocal n_bytes
            if self.type in _HEADERS:
                n_bytes += self.size if self.size >= 0 else _MOST_HEADERS + 1  # below 0, all that follows is read
            if n_bytes > _MOST_HEADERS:
                raise UnsafeFile(f"{where}: headers claim {n_bytes} bytes; {_MOST_HEADERS} are allowed")
            if self.type == tarfile.GNUTYPE_SPARSE:
                raise _sparse(where)
            return super()._proc_member(archive)  # type: ignore[misc, no-any-return]  # the stubs lack it

        def _proc_gnusparse_10(self, *_: object) -> None:  # tarfile's own reader of pax's lists of pieces
            raise _sparse(where)

    return Member


def _sparse(where: str) -> UnsafeFile:
    return UnsafeFile(f"{where}: a member is neither a plain file nor a folder, but a sparse file")


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
    """Refuse an archive that was cut off after one of its members; tarfile would accept it as complete."""
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise CorruptFile(f"{where} is cut off or damaged: its end is not at byte {archive.offset}; fetch it again")
