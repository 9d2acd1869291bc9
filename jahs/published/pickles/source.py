"""The bytes of a pickle, decompressed and counted while they are read; a claimed length never allocates memory ahead.

Whatever the limits, an opcode that copies earlier content is charged for each byte of the copy (`copy`).
"""

from __future__ import annotations

import gzip
import io
import struct
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, UnsafeFile

if TYPE_CHECKING:
    from typing_extensions import Buffer  # only type checkers see it

_CHUNK: Final = 1 << 20
_FREE: Final = 32 << 20  # bytes before the ratio is checked
_FREE_COPIES: Final = 16 << 20  # bytes that may be copied in any case
_COPIES: Final = 4  # further copied bytes per byte read
_GZIP: Final = b"\x1f\x8b"
_LONGEST_LINE: Final = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of reading one file: a file that exceeds one is refused, a claimed length before memory is allocated."""

    n_bytes: int = 1 << 30  # size of the whole file once decompressed
    n_payload: int = 256 << 20  # bytes of one text, byte string or array that are held in memory
    n_steps: int = 500_000  # opcodes; an empty container counts as several, an item of a repetitive column as none
    depth: int = 100  # open marks
    ratio: float = 200.0  # decompressed by compressed bytes, after the first 32 MB
    scratch: Path | None = None  # folder for longer arrays, as files that vanish with them; None: they are refused


class Source:
    """Reads a file that is plain or compressed with gzip, and refuses one that exceeds the limits."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        self.limits = limits
        self._n_steps = self._n_copied = 0
        raw = _Raw(file)
        packed = io.BufferedReader(raw, _CHUNK)
        is_gzip = packed.peek(2)[:2] == _GZIP
        plain = gzip.GzipFile(fileobj=packed) if is_gzip else packed
        self._counted = _Counted(plain, raw if is_gzip else None, limits)
        self._reader = io.BufferedReader(self._counted, 1 << 16)

    @property
    def position(self) -> int:
        """Bytes read so far, once decompressed; at most a buffer's length ahead of the bytes used."""
        return self._counted.n_bytes

    def spend(self, n_steps: int) -> None:
        """Count steps, including the steps of a nested pickle."""
        self._n_steps += n_steps
        if self._n_steps > self.limits.n_steps:
            raise UnsafeFile(f"it takes more than {self.limits.n_steps} steps, which are allowed")

    def opcode(self) -> int:
        """Return the next opcode, and count it as a step."""
        self.spend(1)
        if not (code := self._reader.read(1)):
            raise EOFError
        return code[0]

    def copy(self, n_bytes: int) -> None:
        """Count bytes that an opcode is about to copy: two bytes of a pickle suffice to copy a memoised object."""
        self._n_copied += n_bytes
        if self._n_copied > _FREE_COPIES + _COPIES * self.position:
            raise UnsafeFile(f"it copies {self._n_copied} bytes after {self.position}; no data is that repetitive")

    def read(self, n_bytes: int) -> bytes:
        """Return `n_bytes` bytes, read in pieces; EOFError if the file is shorter."""
        self._check_claim(n_bytes, self.limits.n_payload)
        if n_bytes <= _CHUNK:
            return self._take(n_bytes)
        return b"".join(self._take(min(n_bytes - start, _CHUNK)) for start in range(0, n_bytes, _CHUNK))

    def number(self, form: struct.Struct) -> int:
        """Return the integer that comes next."""
        return int(form.unpack(self._take(form.size))[0])

    def readline(self, *, longest: int = _LONGEST_LINE) -> bytes:
        """Return the bytes up to the next line feed, and the line feed."""
        parts: list[bytes] = []
        n_left = longest + 1
        while n_left and not (parts and parts[-1].endswith(b"\n")):
            parts.append(self._reader.readline(min(n_left, _CHUNK)))
            n_left -= len(parts[-1])
            if not parts[-1]:
                raise EOFError
        if not parts[-1].endswith(b"\n"):
            raise UnsafeFile(f"it has a line of more than {longest} bytes")
        return b"".join(parts)

    def text(self) -> bytes:
        """Return a line of any length that a payload may have, without the line feed."""
        return self.readline(longest=self.limits.n_payload)[:-1]

    def array_bytes(self, n_bytes: int) -> NDArray[np.uint8]:
        """Return `n_bytes` bytes as an array; in a scratch file if they exceed memory and one is allowed."""
        if n_bytes <= self.limits.n_payload or self.limits.scratch is None:
            return np.frombuffer(self.read(n_bytes), np.uint8)
        self._check_claim(n_bytes, self.limits.n_bytes)
        with tempfile.TemporaryFile(dir=self.limits.scratch) as file:
            n_left = n_bytes
            while n_left:
                n_left -= file.write(self._take(min(n_left, _CHUNK)))
            file.flush()
            return np.asarray(np.memmap(file, np.uint8, mode="r+", shape=(n_bytes,)))

    def peek(self) -> bytes:
        """Return some of the next bytes without taking them."""
        return self._reader.peek(1)

    def skip(self, n_bytes: int) -> None:
        """Take bytes that `peek` showed."""
        self._reader.read(n_bytes)

    def check_frame(self, n_bytes: int) -> None:
        """Refuse a frame that is longer than the file may be."""
        self._check_claim(n_bytes, self.limits.n_bytes)

    def finish(self) -> None:
        """Make sure that nothing follows; a compressed file's checksum is compared on the way."""
        if self._reader.read(1):
            raise CorruptFile("more bytes follow the end of the pickle")

    def _take(self, n_bytes: int) -> bytes:
        data = self._reader.read(n_bytes)
        if len(data) != n_bytes:
            raise EOFError
        return data

    def _check_claim(self, n_bytes: int, most: int) -> None:
        if n_bytes > most:
            raise UnsafeFile(f"it claims {n_bytes} bytes in one piece; {most} are allowed")


class _Raw(io.RawIOBase):
    """A binary file of any kind as the raw end of a buffered reader, left open when the reader goes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        data = self._file.read(len(view))
        view[: len(data)] = data
        self.n_bytes += len(data)
        return len(data)


class _Counted(_Raw):
    """Decompressed bytes, counted against the compressed ones."""

    def __init__(self, plain: BinaryIO | gzip.GzipFile, packed: _Raw | None, limits: Limits) -> None:
        super().__init__(plain)  # type: ignore[arg-type]  # GzipFile reads as every binary file does
        self._packed = packed
        self.limits = limits

    def readinto(self, buffer: Buffer) -> int:
        try:
            n_bytes = super().readinto(buffer)
        except (gzip.BadGzipFile, zlib.error) as err:
            raise CorruptFile(f"it cannot be decompressed: {err}") from err
        if self.n_bytes > self.limits.n_bytes:
            raise UnsafeFile(f"it holds more than {self.limits.n_bytes} bytes, which are allowed")
        if self._packed is not None and self.n_bytes > _FREE:
            n_packed = self._packed.n_bytes
            if self.n_bytes > self.limits.ratio * n_packed:
                raise UnsafeFile(f"{n_packed} bytes hold {self.n_bytes} or more; no data is that repetitive")
        return n_bytes
