"""Read a user's own images: a folder of class folders, an npz file, or a folder of idx files as in MNIST.

Their task names them by a digest of every pixel and label, so that other images are never taken for them.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, JahsError, MissingData, ProtocolMismatch, UnsafeFile, translating
from pipeline.sources import FASHION_FILES, Pool, cache_folder, class_folders, read_idx_files, read_tiles

_OWN: Final = "own_"
_ENDINGS: Final = (".png", ".tif", ".tiff", ".jpg", ".jpeg")
_MODES: Final = ("RGB", "L")
_MOST_BYTES: Final = 4 << 30  # of decompressed pixels, which are all held in memory
_SIDES: Final = (4, 1024)
_FORMS: Final = (
    "a folder with a folder of PNG, TIFF or JPEG images for each class, an npz file with the arrays images and labels, "
    f"or a folder with {', '.join(FASHION_FILES)}"
)


def is_own(data_set: str) -> bool:
    """Return whether a task's data set is a user's own images."""
    return data_set.startswith(_OWN)


def data_set_of(pool: Pool) -> str:
    """Return a task's name for these images: a digest of every pixel and label, their order and their test part."""
    digest = hashlib.blake2b(repr((pool.images.shape, pool.n_development)).encode(), digest_size=8)
    for array in (pool.images, pool.labels.astype("<i8")):
        digest.update(np.ascontiguousarray(array).data)
    return f"{_OWN}{digest.hexdigest()}"


def read_own_pool(data_set: str, *, data_dir: Path | None = None) -> Pool:
    """Read the images of a user's own task.

    Args:
        data_dir: the folder or file that holds them; None: the user's cache.

    Raises:
        MissingData: there are no images, or the user has no home and so no cache.
        ProtocolMismatch: the images are not those of the task.
    """
    path = data_dir or _cached_images(data_set)
    if not path.exists():
        cached = cache_folder(data_set)
        raise MissingData(
            f"{data_set}: no images in {path}; put the ones that the task was made from in the folder "
            f"{cached} or in the file {cached.name}.npz beside it, or name them in a command of the pipeline with "
            "--data-dir"
        )
    pool = read_own_images(path)
    if (name := data_set_of(pool)) != data_set:
        raise ProtocolMismatch(
            f"{path} holds the images {name}, but the task was made from {data_set}; give those with --data-dir, or "
            "make another task with `python -m pipeline.define`"
        )
    return pool


def _cached_images(data_set: str) -> Path:
    folder = cache_folder(data_set)
    return folder if folder.exists() else folder.with_suffix(".npz")


def read_own_images(path: Path) -> Pool:
    """Read images of one size with their labels; nothing is executed.

    Raises:
        MissingData: there is nothing that can be read.
        MissingDependency: class folders require Pillow, which is not installed.
        CorruptFile: a file is damaged, or images and labels do not make a data set; names it.
        UnsafeFile: a file would take more than 4 GB of memory.
    """
    with translating(OSError, into=lambda err: MissingData(f"{path} cannot be read: {err}; give {_FORMS}")):
        if path.is_dir():
            arrays = read_idx_files(path, most=_MOST_BYTES)
            return _read_class_folders(path) if arrays is None else _pool(path, *arrays)
        if path.suffix == ".npz":
            return _read_npz(path)
    raise MissingData(f"{path} holds no images; give {_FORMS}")


def _read_class_folders(folder: Path) -> Pool:
    classes = class_folders(folder, _ENDINGS)
    if not any(classes.values()):
        raise MissingData(f"{folder} holds no images; give {_FORMS}")
    if empty := [str(inner) for inner, paths in classes.items() if not paths]:
        raise CorruptFile(f"{', '.join(empty[:5])}: no images; delete the folder, or put images of its class there")
    images = read_tiles([path for paths in classes.values() for path in paths], modes=_MODES)
    labels = np.repeat(np.arange(len(classes)), [len(paths) for paths in classes.values()])
    return _pool(folder, images.transpose(0, 2, 3, 1), labels, len(labels))


def _read_npz(path: Path) -> Pool:
    try:
        with zipfile.ZipFile(path) as archive:
            if (n_bytes := sum(member.file_size for member in archive.infolist())) > _MOST_BYTES:
                raise UnsafeFile(f"{path} holds {n_bytes} bytes; at most {_MOST_BYTES} are read")
        with np.load(path, allow_pickle=False) as arrays:
            images, labels = (_array_of(arrays, name) for name in ("images", "labels"))
    except (JahsError, OSError):
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, MemoryError, RuntimeError) as err:
        raise CorruptFile(
            f"{path} is not an npz file with the arrays images and labels ({err}); write it with "
            "numpy.savez_compressed(file, images=images, labels=labels), uint8 images and integer labels"
        ) from err
    return _pool(path, images, labels, len(labels) if labels.ndim else 0)


def _array_of(arrays: Any, name: str) -> NDArray[Any]:  # Any: an open npz file; an array of any type
    if not isinstance(array := arrays[name], np.ndarray):  # numpy returns the bytes of other files
        raise ValueError(f"{name} is not in the format of numpy")
    return array


def _pool(where: Path, images: NDArray[Any], labels: NDArray[Any], n_development: int) -> Pool:
    """Check images (n, side, side) or (n, side, side, channels) and labels (n,), and return them as a pool."""
    faults = []
    shape = (*images.shape, 1) if images.ndim == 3 else images.shape
    if images.dtype != np.uint8:
        faults.append(f"images must be uint8, from 0 to 255, got {images.dtype}")
    if len(shape) != 4 or shape[1] != shape[2] or shape[3] not in {1, 3} or not _SIDES[0] <= shape[1] <= _SIDES[1]:
        faults.append(
            f"images must be (n, side, side) or (n, side, side, 3), square, {_SIDES[0]} to {_SIDES[1]} pixels wide, "
            f"got {images.shape}"
        )
    if labels.dtype.kind not in "iu" or labels.shape != images.shape[:1]:
        faults.append(f"labels must be one integer per image, got {labels.dtype} {labels.shape}")
    elif (classes := np.unique(labels)).tolist() != [*range(len(classes))] or len(classes) < 2:
        faults.append(
            f"labels must be 0, 1, 2 and so on, at least two and each with an image, got {classes[:5].tolist()}"
            f"{' ...' if len(classes) > 5 else ''} up to {classes.max(initial=0)}"
        )
    if faults:
        raise CorruptFile("\n".join(f"{where}: {fault}" for fault in faults))
    pixels = np.ascontiguousarray(images.reshape(shape).transpose(0, 3, 1, 2))
    return Pool(images=pixels, labels=labels.astype(np.int64), n_development=n_development)
