"""Read CIFAR-10 as it is published: the binary version, as an archive or unpacked.

The whole data set has six batches; a laptop task reads the first two, whose contents are checked by their MD5. Batches
are rows of bytes, a label and then 3 x 32 x 32 pixels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile
from jahs.files.archives import checked_members, open_archive

BATCHES: Final = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
FIRST_BATCHES: Final[Mapping[str, str]] = {
    "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
}
"""The two batches of the laptop task, with the MD5 of each file."""

_ARCHIVE: Final = "cifar-10-binary.tar.gz"
_FOLDER: Final = "cifar-10-batches-bin"
_WIDTH: Final = 1 + 3 * 32 * 32
_LARGEST_BATCH: Final = 64 << 20  # bytes; the published ones have 31 million

_Rows = NDArray[np.uint8]


def read_batches(folder: Path, names: Sequence[str] = BATCHES) -> dict[str, _Rows] | None:
    """Return batches (n, 1 + 3072) that a folder, its usual subfolder or the archive in it holds, or None.

    Raises:
        CorruptFile: they are there, but not as published.
        UnsafeFile: the archive asks for more than data.
    """
    for inner in (folder, folder / _FOLDER):
        paths = {name: inner / f"{name}.bin" for name in names}
        if all(path.is_file() for path in paths.values()):
            for path in paths.values():
                _check_size(path.stat().st_size, str(path))
            return {name: _rows(path.read_bytes(), str(path)) for name, path in paths.items()}
    return _read_archive(folder / _ARCHIVE, names) if (folder / _ARCHIVE).is_file() else None


def check_published(batches: Mapping[str, _Rows], folder: Path) -> None:
    """Refuse batches that are not the published ones of `FIRST_BATCHES`.

    Raises:
        CorruptFile: a batch has other contents; names every such batch.
    """
    digests = {name: hashlib.md5(rows.tobytes(), usedforsecurity=False).hexdigest() for name, rows in batches.items()}
    if faults := [
        f"{folder}: {name} has {len(batches[name])} images and MD5 {md5}, but {FIRST_BATCHES[name]} was published"
        for name, md5 in digests.items()
        if md5 != FIRST_BATCHES[name]
    ]:
        raise CorruptFile("\n".join([*faults, "fetch the files again: python -m pipeline.download cifar10"]))


def _read_archive(path: Path, names: Sequence[str]) -> dict[str, _Rows]:
    """Read the named batches of an archive in memory; nothing is unpacked to disk."""
    batch_names = {f"{name}.bin": name for name in names}
    batches: dict[str, _Rows] = {}
    with open_archive(path) as archive:
        for member in checked_members(archive, str(path)):
            name = batch_names.get(PurePosixPath(member.name).name)
            if name is None:
                continue
            where = f"{path}: {member.name}"
            if name in batches:
                raise CorruptFile(f"{where} occurs twice, in two folders; fetch the archive again")
            _check_size(member.size, where)
            file = archive.extractfile(member)
            batches[name] = _rows(b"" if file is None else file.read(), where)
    if missing := [name for name in names if name not in batches]:
        raise CorruptFile(f"{path} lacks {', '.join(missing)}")
    return {name: batches[name] for name in names}


def _rows(content: bytes, where: str) -> _Rows:
    if not content or len(content) % _WIDTH:
        raise CorruptFile(f"{where}: {len(content)} bytes are not whole rows of {_WIDTH}")
    return np.frombuffer(content, np.uint8).reshape(-1, _WIDTH)


def _check_size(n_bytes: int, where: str) -> None:
    if n_bytes > _LARGEST_BATCH:
        raise CorruptFile(f"{where} has {n_bytes} bytes, too many for a batch of CIFAR-10")
