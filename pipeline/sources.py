"""Read the original images: idx files, CIFAR-10's archive, a folder of class folders, scikit-learn's digits.

Nothing is downloaded here (`pipeline.download` does that). Images are searched for in the folders of `search_folders`,
which the error for missing images lists.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, MissingData, MissingDependency, UnknownName, UnsafeFile
from pipeline.cifar import BATCHES, FIRST_BATCHES, check_published, read_batches

FASHION_FILES: Final = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_SYSTEM_FOLDERS: Final = {"fashion_mnist": ("/usr/share/datasets/fashion-mnist",)}
_SUBFOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "fashion_mnist": ("fashion_mnist", "fashion-mnist"),
    "cifar10": ("cifar10", "cifar-10"),
    "cifar10_first": ("cifar10", "cifar-10"),
    "colorectal_histology": ("colorectal_histology", "Kather_texture_2016_image_tiles_5000"),
}
_LARGEST_IDX: Final = 64 << 20  # bytes; the largest one published has 47 million
_TILES: Final = (".tif", ".tiff", ".png")
_HOW_TO_GET: Final = {
    "fashion_mnist": "install the Debian package dataset-fashion-mnist, or run "
    "`python -m pipeline.download fashion_mnist`, or put its four files there",
    "cifar10": "run `python -m pipeline.download cifar10`, or put cifar-10-binary.tar.gz or its content there",
    "cifar10_first": "run `python -m pipeline.download cifar10`, or put data_batch_1.bin and data_batch_2.bin of "
    "CIFAR-10, or cifar-10-binary.tar.gz, there",
    "colorectal_histology": "put Kather_texture_2016_image_tiles_5000 there, which has one folder of images for each "
    "of the 8 classes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All original images (n, channels, side, side) of uint8 with labels (n,) of int64.

    If the data set has its own test images, the first `n_development` are for training and validation.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    n_development: int


def cache_folder(data_set: str) -> Path:
    """Return the user's folder for a data set, where `pipeline.download` puts it; MissingData without a home."""
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as err:
        to_do = "set XDG_CACHE_HOME, or name a folder with --data-dir (pipeline.download: --dir)"
        raise MissingData(f"this user has no home, and so no cache; {to_do}") from err
    return Path(cache) / "jahs" / data_set.removesuffix("_first")


def search_folders(data_set: str, *, data_dir: Path | None = None) -> list[Path]:
    """Return the folders to search for a data set: `data_dir` if given, else the system's and the user's."""
    if data_dir is not None:
        return [data_dir, *(data_dir / name for name in _SUBFOLDERS.get(data_set, ()))]
    folders = [*map(Path, _SYSTEM_FOLDERS.get(data_set, ()))]
    with suppress(MissingData):  # a user without a home has no cache
        folders.append(cache_folder(data_set))
    return folders


def read_pool(data_set: str, *, data_dir: Path | None = None) -> Pool:
    """Read a data set's original images.

    Raises:
        UnknownName: no such data set.
        MissingData: its files were not found or cannot be read; names the searched folders and what to do.
        MissingDependency: reading it requires a package that is not installed.
        CorruptFile: a file does not have the content that its name promises.
        UnsafeFile: a file contains more than data, such as code.
    """
    if data_set not in DATA_SETS:
        raise UnknownName.of("data_set", data_set, DATA_SETS)
    if data_set == "digits":
        return _read_digits()
    folders = search_folders(data_set, data_dir=data_dir)
    for folder in folders:
        if (pool := _read_folder(data_set, folder)) is not None:
            return pool
    searched = ", ".join(map(str, folders)) or "the cache, since this user has no home (set XDG_CACHE_HOME)"
    where = f"{data_set}: no images in {searched}"
    raise MissingData(f"{where}; {_HOW_TO_GET[data_set]}. Commands of pipeline read another folder with --data-dir")


def _read_folder(data_set: str, folder: Path) -> Pool | None:
    try:
        return _FOLDER_READERS[data_set](folder) if folder.is_dir() else None
    except OSError as err:
        raise MissingData(f"{data_set}: {folder} cannot be read: {err}") from err


def _read_digits() -> Pool:
    package = find_spec("sklearn")  # its file is read, because importing it takes a second in every process
    if package is None or package.origin is None:
        raise MissingDependency("digits are read from scikit-learn; run `pip install scikit-learn`")
    path = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    try:
        table = np.loadtxt(path, delimiter=",")
    except OSError as err:
        raise MissingData(f"digits: {path}, a part of scikit-learn, cannot be read: {err}") from err
    pixels = np.rint(table[:, :-1] * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)  # the file has 0 to 16
    return Pool(images=pixels, labels=table[:, -1].astype(np.int64), n_development=len(pixels))


def _read_fashion(folder: Path) -> Pool | None:
    if (arrays := read_idx_files(folder)) is None:
        return None
    images, labels, n_development = arrays
    if images.shape[1:] != (28, 28) or labels.max(initial=0) > 9:
        raise CorruptFile(f"{folder}: images {images.shape} and labels {labels.shape} are not Fashion-MNIST")
    return Pool(images=images[:, None], labels=labels.astype(np.int64), n_development=n_development)


def read_idx_files(
    folder: Path, *, most: int = _LARGEST_IDX
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], int] | None:
    """Read the four files of MNIST, gzipped or not, of at most `most` bytes each; None if some are missing.

    Returns:
        All images and labels, and how many of the first ones are for training and validation.
    """
    paths = []
    for name in FASHION_FILES:
        candidates = (folder / name, folder / name.removesuffix(".gz"))
        paths += [path for path in candidates if path.is_file()][:1]
    if len(paths) < len(FASHION_FILES):
        return None
    arrays = [read_idx(path, most=most) for path in paths]
    for path, images, labels in zip(paths[::2], arrays[::2], arrays[1::2], strict=True):
        if images.shape[:1] != labels.shape or images.shape[1:] != arrays[0].shape[1:]:
            raise CorruptFile(f"{path}: images {images.shape} do not fit labels {labels.shape}, or the training images")
    images, labels = (np.concatenate(pair) for pair in (arrays[::2], arrays[1::2]))
    return images, labels, len(arrays[1])


def read_idx(path: Path, *, most: int) -> NDArray[np.uint8]:
    """Read one idx file of at most `most` unsigned bytes, gzipped if its name says so.

    Raises:
        CorruptFile: it is not such a file.
        UnsafeFile: it is larger.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as err:
        raise CorruptFile(f"{path} cannot be decompressed: {err}") from err
    if len(content) > most:
        raise UnsafeFile(f"{path} decompresses to more than {most} bytes, too many for this data set")
    n_axes = content[3] if len(content) > 4 else 0
    start = 4 + 4 * n_axes
    if content[:3] != b"\x00\x00\x08" or not 1 <= n_axes <= 4 or len(content) < start:
        raise CorruptFile(f"{path} is not an idx file of unsigned bytes")
    shape = tuple(np.frombuffer(content, ">u4", count=n_axes, offset=4).tolist())
    if math.prod(shape) != len(content) - start:
        raise CorruptFile(f"{path} announces {shape} but holds {len(content) - start} bytes")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def _read_cifar10(folder: Path, names: Sequence[str] = BATCHES) -> Pool | None:
    """Read the batches of these names."""
    if (batches := read_batches(folder, names)) is None:
        return None
    if "test_batch" not in names:
        check_published(batches, folder)
    rows = np.concatenate(list(batches.values()))
    if rows[:, 0].max() > 9:
        raise CorruptFile(f"{folder}: a label is {rows[:, 0].max()}, not in 0 to 9, so this is not CIFAR-10")
    return Pool(
        images=rows[:, 1:].reshape(-1, 3, 32, 32),
        labels=rows[:, 0].astype(np.int64),
        n_development=len(rows) - len(batches.get("test_batch", ())),
    )


def _read_class_folders(folder: Path) -> Pool | None:
    """Read a folder of class folders; a class's label is its place among the sorted names."""
    tiles = [paths for paths in class_folders(folder, _TILES).values() if paths]
    if len(tiles) < 2:
        return None
    images = read_tiles([path for paths in tiles for path in paths])
    labels = np.repeat(np.arange(len(tiles)), [len(paths) for paths in tiles])
    return Pool(images=images, labels=labels, n_development=len(labels))


def class_folders(folder: Path, endings: Sequence[str]) -> dict[Path, list[Path]]:
    """Return the images of each class folder, both sorted by name; hidden folders are left out."""
    subfolders = sorted(inner for inner in folder.iterdir() if inner.is_dir() and not inner.name.startswith("."))
    return {inner: sorted(path for path in inner.iterdir() if path.suffix.lower() in endings) for inner in subfolders}


def read_tiles(paths: Sequence[Path], *, modes: Sequence[str] = ("RGB",)) -> NDArray[np.uint8]:
    """Read square images of one size, in these modes of Pillow, as (n, channels, side, side).

    Raises:
        MissingDependency: Pillow is not installed.
        CorruptFile: an image cannot be read, or has another size or mode.
    """
    first = _read_tile(paths[0], modes)
    images = np.empty((len(paths), *first.shape), dtype=np.uint8)
    for position, path in enumerate(paths):
        tile = _read_tile(path, modes)
        if tile.shape != first.shape:
            what = "size" if tile.shape[1:] != first.shape[1:] else "number of channels"
            raise CorruptFile(
                f"{path} has {tile.shape[2]} x {tile.shape[1]} pixels; {paths[0]} has another {what}; make them equal"
            )
        images[position] = tile
    return images


def _read_tile(path: Path, modes: Sequence[str]) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as err:
        raise MissingDependency("tiles are read with Pillow; run `pip install pillow`") from err
    try:
        with Image.open(path, formats=("TIFF", "PNG", "JPEG")) as image:
            if image.mode not in modes or image.width != image.height:
                raise CorruptFile(
                    f"{path} is {image.mode}, {image.width} x {image.height}; images must be {' or '.join(modes)} and "
                    "square: convert it"
                )
            return np.atleast_3d(np.asarray(image)).transpose(2, 0, 1)
    except (OSError, SyntaxError, Image.DecompressionBombError) as err:
        raise CorruptFile(f"{path} is not a readable image: {err}") from err


_FOLDER_READERS: Final[Mapping[str, Callable[[Path], Pool | None]]] = {
    "fashion_mnist": _read_fashion,
    "cifar10": _read_cifar10,
    "cifar10_first": lambda folder: _read_cifar10(folder, tuple(FIRST_BATCHES)),
    "colorectal_histology": _read_class_folders,
}
DATA_SETS: Final = ("digits", *_FOLDER_READERS)
"""Every data set that can be read."""
