"""Forests on disk: one npz, or a folder of npy that is mapped into memory instead of read. No pickle, in or out.

The npz suits a release of some MB. The folder is for forests of many millions of nodes: opening it reads each page once
to check the forest, and the pages stay in the file, not in the memory of the process.
"""

from __future__ import annotations

import io
import mmap
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidArgument, UnknownFormat, translating
from jahs.files.atomic import out_of_space, write_beside
from jahs.models.forest.flat import ARRAY_DTYPES, Forest

FORMAT_VERSION = 1
ARRAYS = tuple(ARRAY_DTYPES)
# Format version and number of features.
HEADER = "header"
# Maximum size of one array in an npz, since a small file may claim a large one.
MAX_BYTES = 2**28
# What a damaged file raises: a wrong offset in a zip is a ValueError, a header of an array anything.
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, RuntimeError),
    *(OverflowError, SyntaxError, TypeError),
)
# Set whatever the umask: everyone may read a release.
_FOR_ALL = 0o644

Array: TypeAlias = "NDArray[np.generic]"


def save_forest(forest: Forest, path: Path) -> None:
    """Write an npz at `path`, whole or not at all; a forest too large for it is for `save_mapped_forest`."""
    arrays = _arrays(forest)
    if max(array.nbytes for array in arrays.values()) > MAX_BYTES:
        raise InvalidArgument(f"{path}: {forest.n_nodes} nodes are too many for an npz; use save_mapped_forest")
    with write_beside(path) as beside, beside.open("wb") as file:
        beside.chmod(_FOR_ALL)
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # takes arrays by name


def parse_forest(path: Path, data: bytes) -> Forest:
    """Return the forest that the bytes of `save_forest` hold; CorruptFile or UnknownFormat name `path`."""
    with reading_npz(path, data, "a forest") as archive:
        arrays = {name: read_member(archive, f"{name}.npy") for name in (HEADER, *ARRAYS)}
    return _forest(path, arrays)


@contextmanager
def reading_npz(path: Path, data: bytes, what: str) -> Iterator[zipfile.ZipFile]:
    """Yield the archive of arrays in these bytes; CorruptFile, naming `path`, if they are invalid."""
    with _reading(path, what), zipfile.ZipFile(io.BytesIO(data)) as archive:
        yield archive


def save_mapped_forest(forest: Forest, folder: Path) -> None:
    """Write a folder of npy files, for `map_forest`; the header comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = _arrays(forest)
    for name in (*ARRAYS, HEADER):
        path = folder / f"{name}.npy"
        with out_of_space(path), write_beside(path) as beside, beside.open("wb") as file:
            beside.chmod(_FOR_ALL)
            # Not as a file: numpy would write to its descriptor, and an error of a full disk would have no number.
            npy.write_array(SimpleNamespace(write=file.write), arrays[name], allow_pickle=False)


def map_forest(folder: Path, mapped: Callable[[Path], mmap.mmap]) -> Forest:
    """Map and check the folder of `save_mapped_forest`; `mapped` maps one of its files, and may check it."""
    arrays: dict[str, Array] = {}
    for name in (HEADER, *ARRAYS):
        path = folder / f"{name}.npy"
        with _reading(path, "an array"):
            arrays[name] = _row(name, mapped(path))
    return _forest(folder, arrays)


def _reading(path: Path, what: str) -> AbstractContextManager[None]:
    return translating(
        *_UNREADABLE, into=lambda err: CorruptFile(f"{path}: cannot be read as {what} ({err}); restore the file")
    )


def _arrays(forest: Forest) -> dict[str, Array]:
    header = np.array([FORMAT_VERSION, forest.n_features], np.int64)
    return {HEADER: header, **{name: getattr(forest, name) for name in ARRAYS}}


def _forest(path: Path, arrays: Mapping[str, Array]) -> Forest:
    header = arrays[HEADER]
    if header.dtype != np.int64 or header.ndim != 1 or not header.size:
        raise CorruptFile(f"{path}: {HEADER} is {header.dtype} of shape {header.shape}; restore the file")
    if header[0] != FORMAT_VERSION or header.size != 2:
        raise UnknownFormat(f"{path}: forest format {header[0]}; this version of jahs reads format {FORMAT_VERSION}")
    try:
        # The constructor checks each array's dtype and content.
        return Forest(n_features=int(header[1]), **{name: arrays[name] for name in ARRAYS})  # type: ignore[arg-type]
    except CorruptFile as err:
        raise CorruptFile(f"{path}: {err}\nrestore the file") from err


def read_member(archive: zipfile.ZipFile, name: str) -> Array:
    """Return one array; its size is checked in the archive's directory before memory is allocated."""
    info = archive.getinfo(name)
    if info.file_size > MAX_BYTES + 4096:  # its header included
        raise ValueError(f"{name} claims {info.file_size} bytes")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed in a way that numpy does not write")
    return _row(name, archive.read(name))  # which compares the CRC


def _row(name: str, data: bytes | mmap.mmap) -> Array:
    """Return the row of numbers in the bytes of an npy file, without a copy."""
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    if npy.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is of another npy version")
    shape, fortran_order, dtype = npy.read_array_header_1_0(file)
    if dtype.hasobject or fortran_order or len(shape) != 1 or file.tell() + shape[0] * dtype.itemsize != len(data):
        raise ValueError(f"{name} does not hold the row of numbers that it announces")
    return np.frombuffer(data, dtype, offset=file.tell())
