"""CIFAR-10 as it is published: the binary or the python version, as an archive or unpacked; no pickle is executed.

Both are read into rows of bytes, a label and then 3 x 32 x 32 pixels. A python batch is a pickle of a fixed shape:
`read_python_batch` walks its opcodes and builds nothing but lists, tuples, dicts, numbers and bytes.
"""

from __future__ import annotations

import pickletools
import tarfile
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, UnsafeFile

__all__ = ["BATCHES", "N_PIXELS", "read_batches", "read_binary_batch", "read_python_batch"]

BATCHES: Final = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
N_PIXELS: Final = 3 * 32 * 32
_LARGEST_BATCH: Final = 64 << 20  # bytes; the published ones have 31 million

_NAMES: Final = ("numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype")
_NUMBERS: Final = ("BININT", "BININT1", "BININT2")
_STRINGS: Final = ("BINSTRING", "SHORT_BINSTRING")
_CONSTANTS: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_EMPTY: Final = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict}

_Rows = NDArray[np.uint8]


def read_batches(folder: Path) -> dict[str, _Rows] | None:
    """Return the six batches (n, 1 + 3072) that a folder, its usual subfolder or an archive in it holds, or None.

    Raises:
        CorruptFile: they are there, but not as published.
        UnsafeFile: a batch asks for more than data.
    """
    for subfolder, ending, read in (
        ("cifar-10-batches-bin", ".bin", read_binary_batch),
        ("cifar-10-batches-py", "", read_python_batch),
    ):
        for inner in (folder, folder / subfolder):
            paths = {name: inner / f"{name}{ending}" for name in BATCHES}
            if all(path.is_file() for path in paths.values()):
                return {name: read(path.read_bytes(), str(path)) for name, path in paths.items()}
    for archive, ending, read in (
        ("cifar-10-binary.tar.gz", ".bin", read_binary_batch),
        ("cifar-10-python.tar.gz", "", read_python_batch),
    ):
        if (folder / archive).is_file():
            return _read_archive(folder / archive, ending, read)
    return None


def read_binary_batch(content: bytes, where: str) -> _Rows:
    """Read one batch of the binary version.

    Raises:
        CorruptFile: it is not whole rows.
    """
    width = 1 + N_PIXELS
    if not content or len(content) % width:
        raise CorruptFile(f"{where}: {len(content)} bytes are not whole rows of {width}")
    return np.frombuffer(content, np.uint8).reshape(-1, width)


def read_python_batch(content: bytes, where: str) -> _Rows:
    """Read one batch of the python version without executing it.

    Raises:
        CorruptFile: it is not a pickle of such a batch.
        UnsafeFile: it names something else than numpy's arrays, or uses opcodes that no such batch uses.
    """
    match _walk(content, where):
        case {b"data": _Built(_Called(_Named("numpy.core.multiarray _reconstruct"), _), state), b"labels": [*labels]}:
            pass
        case _:
            raise CorruptFile(f"{where} does not hold a dict with an array 'data' and a list 'labels'")
    match state:
        case (
            1,
            (int(n_images), 3072),
            _Built(_Called(_Named("numpy dtype"), (b"u1", *_)), _),
            False,
            bytes(pixels),
        ) if len(pixels) == n_images * N_PIXELS == len(labels) * N_PIXELS:
            pass
        case _:
            raise CorruptFile(f"{where}: 'data' is not an array of bytes with one row of {N_PIXELS} for each label")
    if not all(type(label) is int and 0 <= label <= 9 for label in labels):
        raise CorruptFile(f"{where}: labels are not all in 0 to 9")
    rows = np.empty((n_images, 1 + N_PIXELS), dtype=np.uint8)
    rows[:, 0] = labels
    rows[:, 1:] = np.frombuffer(pixels, np.uint8).reshape(n_images, N_PIXELS)
    return rows


def _read_archive(path: Path, ending: str, read: Callable[[bytes, str], _Rows]) -> dict[str, _Rows]:
    """Read the batches of an archive in memory; nothing is unpacked to disk."""
    names = {f"{name}{ending}": name for name in BATCHES}
    batches: dict[str, _Rows] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = names.get(Path(member.name).name)
                if name is None or not member.isfile():
                    continue
                where = f"{path}: {member.name}"
                if member.size > _LARGEST_BATCH:
                    raise CorruptFile(f"{where} has {member.size} bytes, too many for a batch of CIFAR-10")
                file = archive.extractfile(member)
                batches[name] = read(b"" if file is None else file.read(), where)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as err:
        raise CorruptFile(f"{path} is not a readable archive: {err}") from err
    if missing := [name for name in BATCHES if name not in batches]:
        raise CorruptFile(f"{path} lacks {', '.join(missing)}")
    return {name: batches[name] for name in BATCHES}


@dataclass(frozen=True, slots=True)
class _Named:
    """Stands for what a pickle names; nothing is imported."""

    name: str


@dataclass(frozen=True, slots=True)
class _Called:
    """Stands for a call that a pickle asks for; nothing is called."""

    what: _Named
    arguments: object


@dataclass(frozen=True, slots=True)
class _Built:
    """Stands for an object with the state that a pickle gives it."""

    what: _Called
    state: object


def _walk(content: bytes, where: str) -> object:
    """Return what a pickle describes, with stand-ins for everything that is not plain data."""
    walker = _Walker()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in text; such opcodes are refused anyway
            for opcode, argument, _ in pickletools.genops(content):
                walker.step(opcode.name, argument)
        (result,) = walker.stack
    except UnsafeFile as err:
        raise UnsafeFile(f"{where}: {err}; nothing of it was executed") from err
    except (ValueError, TypeError, IndexError, KeyError) as err:
        raise CorruptFile(f"{where} is not a pickle of a CIFAR-10 batch: {err}") from err
    return result


class _Walker:
    """The stack, marks and memo of a pickle machine that knows the opcodes of Python 2's protocol 2 for plain data."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}

    def step(self, name: str, argument: object) -> None:
        """Follow one opcode."""
        stack = self.stack
        if name in _NUMBERS:
            stack.append(argument)
        elif name in _STRINGS:
            stack.append(str(argument).encode("latin-1"))
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            self.marks.append(len(stack))
        elif name == "TUPLE" or name in _TUPLES:
            stack.append(tuple(self._pop_to_mark() if name == "TUPLE" else self._pop(_TUPLES[name])))
        elif name in ("APPEND", "APPENDS"):
            self._extend(self._pop(1) if name == "APPEND" else self._pop_to_mark())
        elif name in ("SETITEM", "SETITEMS"):
            self._update(self._pop(2) if name == "SETITEM" else self._pop_to_mark())
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[int(str(argument))] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[int(str(argument))])
        elif name in ("GLOBAL", "REDUCE", "BUILD"):
            self._stand_in(name, argument)
        elif name not in ("PROTO", "STOP"):
            raise UnsafeFile(f"the opcode {name} is not one that a batch of CIFAR-10 uses")

    def _stand_in(self, name: str, argument: object) -> None:
        """Put a stand-in where unpickling would import, call or set."""
        if name == "GLOBAL":
            if argument not in _NAMES:
                raise UnsafeFile(f"it asks for {argument!r}, which is not one of {', '.join(_NAMES)}")
            self.stack.append(_Named(str(argument)))
            return
        what, argument = self._pop(2)
        if name == "REDUCE" and isinstance(what, _Named):
            self.stack.append(_Called(what, argument))
        elif name == "BUILD" and isinstance(what, _Called):
            self.stack.append(_Built(what, argument))
        else:
            raise ValueError(f"{name} on a {type(what).__name__}")

    def _extend(self, items: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise TypeError(f"items are appended to a {type(target).__name__}")
        target.extend(items)

    def _update(self, items: list[object]) -> None:
        target, keys = self.stack[-1], items[::2]
        if not isinstance(target, dict) or not all(isinstance(key, bytes) for key in keys):
            raise TypeError("items are set that are no strings of a dict")
        target.update(zip(keys, items[1::2], strict=True))

    def _pop(self, n_items: int) -> list[object]:
        """Take the last items off the stack; never past a mark."""
        start = len(self.stack) - n_items
        if start < (self.marks[-1] if self.marks else 0):
            raise ValueError("the stack is too short")
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _pop_to_mark(self) -> list[object]:
        items = self._pop(len(self.stack) - self.marks[-1])
        self.marks.pop()
        return items
