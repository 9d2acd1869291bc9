"""CIFAR-10 as it is published: the binary or the python version, as an archive or unpacked; no pickle is executed.

The whole data set has six batches; a laptop task reads the first two, whose contents are checked by their MD5.

Both are read into rows of bytes, a label and then 3 x 32 x 32 pixels. A python batch is a pickle of a fixed shape,
which `jahs.published.pickles` reads as data.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile
from jahs.files.archives import checked_members, open_archive
from jahs.published.pickles import Limits, read_pickle

BATCHES: Final = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
FIRST_BATCHES: Final[Mapping[str, str]] = {
    "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
}
"""The two batches of the laptop task, with the MD5 of each file of the published binary version."""

N_PIXELS: Final = 3 * 32 * 32
_LARGEST_BATCH: Final = 64 << 20  # bytes; the published ones have 31 million

_LIMITS: Final = Limits(n_bytes=_LARGEST_BATCH, n_payload=_LARGEST_BATCH)

_Rows = NDArray[np.uint8]


def read_batches(folder: Path, names: Sequence[str] = BATCHES) -> dict[str, _Rows] | None:
    """Return batches (n, 1 + 3072) that a folder, its usual subfolder or an archive in it holds, or None.

    Raises:
        CorruptFile: they are there, but not as published.
        UnsafeFile: a batch or an archive asks for more than data.
    """
    for subfolder, ending, read in (
        ("cifar-10-batches-bin", ".bin", read_binary_batch),
        ("cifar-10-batches-py", "", read_python_batch),
    ):
        for inner in (folder, folder / subfolder):
            paths = {name: inner / f"{name}{ending}" for name in names}
            if all(path.is_file() for path in paths.values()):
                return {name: read(_content(path), str(path)) for name, path in paths.items()}
    for archive, ending, read in (
        ("cifar-10-binary.tar.gz", ".bin", read_binary_batch),
        ("cifar-10-python.tar.gz", "", read_python_batch),
    ):
        if (folder / archive).is_file():
            return _read_archive(folder / archive, ending, read, names)
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
        UnsafeFile: it names something else than numpy's arrays, or uses opcodes that no data needs.
    """
    match read_pickle(io.BytesIO(content), where=where, limits=_LIMITS):
        case {b"data": np.ndarray() as pixels, b"labels": [*labels]}:
            pass
        case _:
            raise CorruptFile(f"{where} does not hold a dict with an array 'data' and a list 'labels'")
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), N_PIXELS):
        raise CorruptFile(f"{where}: 'data' is not an array of bytes with one row of {N_PIXELS} for each label")
    if not all(type(label) is int and 0 <= label <= 9 for label in labels):
        raise CorruptFile(f"{where}: labels are not all in 0 to 9")
    rows = np.empty((len(labels), 1 + N_PIXELS), dtype=np.uint8)
    rows[:, 0] = labels
    rows[:, 1:] = pixels
    return rows


def check_published(batches: Mapping[str, _Rows], folder: Path) -> None:
    """Refuse batches that are not the published ones of `FIRST_BATCHES`, whichever version they were read from.

    Raises:
        CorruptFile: a batch has other contents; names every such batch.
    """
    found = {name: hashlib.md5(rows.tobytes(), usedforsecurity=False).hexdigest() for name, rows in batches.items()}
    if faults := [
        f"{folder}: {name} has {len(batches[name])} images and MD5 {md5} in the binary version, but "
        f"{FIRST_BATCHES[name]} was published"
        for name, md5 in found.items()
        if md5 != FIRST_BATCHES[name]
    ]:
        raise CorruptFile("\n".join([*faults, "fetch the files again: python -m pipeline.download cifar10"]))


def _read_archive(
    path: Path, ending: str, read: Callable[[bytes, str], _Rows], names: Sequence[str]
) -> dict[str, _Rows]:
    """Read the named batches of an archive in memory; nothing is unpacked to disk."""
    wanted = {f"{name}{ending}": name for name in names}
    batches: dict[str, _Rows] = {}
    with open_archive(path) as archive:
        for member in checked_members(archive, str(path)):
            name = wanted.get(PurePosixPath(member.name).name)
            if name is None:
                continue
            where = f"{path}: {member.name}"
            if name in batches:
                raise CorruptFile(f"{where} is there twice, in two folders; fetch the archive again")
            _check_size(member.size, where)
            file = archive.extractfile(member)
            batches[name] = read(b"" if file is None else file.read(), where)
    if missing := [name for name in names if name not in batches]:
        raise CorruptFile(f"{path} lacks {', '.join(missing)}")
    return {name: batches[name] for name in names}


def _content(path: Path) -> bytes:
    _check_size(path.stat().st_size, str(path))
    return path.read_bytes()


def _check_size(n_bytes: int, where: str) -> None:
    if n_bytes > _LARGEST_BATCH:
        raise CorruptFile(f"{where} has {n_bytes} bytes, too many for a batch of CIFAR-10")
