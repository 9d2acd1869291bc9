"""Images of a task: read, split once, resized once, and held as uint8 tensors.

A data set is a `Pool` of original images (`pipeline.sources`); an `ImageSplit` names stratified, disjoint parts of it;
an `ImageSet` holds the parts at the side of one Resolution. The digest of the split's indices is part of the task.
torch is imported where tensors are made: it takes seconds to load, and a process that only checks images needs none.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, ProtocolMismatch
from jahs.files.hashing import digest_bytes
from jahs.schema import SPLIT_PARTS
from jahs.tasks.definitions import RESOLUTIONS, Task
from pipeline.own_images import is_own, read_own_pool
from pipeline.sources import Pool, read_pool

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_SPLIT_KEY: Final = 3_501_623_856
_IMAGES_AT_ONCE: Final = 256  # bounds the memory of floats and counts, whatever the size of an image

_Channels: TypeAlias = tuple[float, ...]  # a number for each channel


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSplit:
    """The images of each part, as sorted positions in a pool; not a split of configs (`splits.split`)."""

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def digest(self) -> str:
        """The digest of the positions, which a task records."""
        parts = (getattr(self, part).astype("<i8").tobytes() for part in SPLIT_PARTS)
        return digest_bytes(b"|".join(parts))


@dataclass(frozen=True, slots=True)
class Part:
    """Images (n, channels, side, side) of uint8 and their labels (n,) of int64."""

    images: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> Part:
        """Return the same images on `device`."""
        return Part(self.images.to(device), self.labels.to(device))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSet:
    """The three parts of a task for one Resolution.

    Attributes:
        train: at `side`; for a task with `crop="large"` at the task's full side, to be cropped and then resized to
            `side` with `resize_batch`.
        valid, test: always at `side`.
        side: side in pixels of the images that the network sees.
        mean, std: mean and standard deviation of the original training images, per channel, for pixels in [0, 1].
        index_digest: digest of the split that the parts were taken by.
    """

    train: Part
    valid: Part
    test: Part
    side: int
    mean: _Channels
    std: _Channels
    index_digest: str

    def to(self, device: torch.device) -> ImageSet:
        """Return the same images on `device`."""
        return dataclasses.replace(self, **{part: getattr(self, part).to(device) for part in SPLIT_PARTS})


def check_images(task: Task, *, data_dir: Path | None = None) -> None:
    """Read a task's images, and raise what `load_images` would raise."""
    _read(task, data_dir)


def load_images(
    task: Task,
    *,
    data_dir: Path | None = None,
    resolutions: Sequence[float] = RESOLUTIONS,
) -> dict[float, ImageSet]:
    """Return a task's images for each Resolution.

    Args:
        data_dir: the folder to look in, in place of the system's and the user's (`pipeline.sources`); for a user's
            own images, the folder or the file that holds them.

    Raises:
        MissingData: the images were not found; names the searched folders and what to do.
        MissingDependency: reading them requires a package that is not installed.
        CorruptFile: a file is damaged, or the images are not those of the task.
        UnsafeFile: a file contains more than data, such as code.
        ProtocolMismatch: the images or their split are not those that the task was frozen with.
    """
    pool, split, mean, std = _read(task, data_dir)

    @functools.cache
    def take(part: str, side: int) -> Part:
        return _take(pool, getattr(split, part), side, task.pad)

    sets: dict[float, ImageSet] = {}
    for resolution in resolutions:
        side = task.image_side(resolution)
        sets[resolution] = ImageSet(
            train=take("train", task.side if task.crop == "large" else side),
            valid=take("valid", side),
            test=take("test", side),
            side=side,
            mean=mean,
            std=std,
            index_digest=split.digest,
        )
    return sets


def _read(task: Task, data_dir: Path | None) -> tuple[Pool, ImageSplit, _Channels, _Channels]:
    """Return a task's images, their split, and the mean and deviation of its training images."""
    read = read_own_pool if is_own(task.data_set) else read_pool
    pool = read(task.data_set, data_dir=data_dir)
    _check_pool(pool, task)
    split = draw_split(pool, task)
    if task.index_digest is not None and split.digest != task.index_digest:
        raise ProtocolMismatch(
            f"task {task.name!r}: the split has the digest {split.digest}, but the task was frozen with "
            f"{task.index_digest}; the files or the sizes are not those that were measured"
        )
    mean, std = task.mean, task.std
    if mean is None or std is None:
        mean, std = _pixel_statistics(pool.images, split.train)
    return pool, split, mean, std


def draw_split(pool: Pool, task: Task) -> ImageSplit:
    """Draw a task's parts from a pool: stratified by class, disjoint, the same on every platform.

    Training and validation images of CIFAR-10 are drawn, too, so they differ from the split of NAS-Bench-201.

    Raises:
        CorruptFile: the pool has too few images for the task.
    """
    n_images = len(pool.labels)
    ranks = np.random.Philox(key=_SPLIT_KEY).random_raw(n_images)  # raw bits: the stream that numpy never changes
    shuffled = np.argsort(ranks, kind="stable")
    if task.has_own_test:
        test = _stratified(shuffled[shuffled >= pool.n_development], pool.labels, task.n_test)
        rest = shuffled[shuffled < pool.n_development]
    else:
        test = _stratified(shuffled, pool.labels, task.n_test)
        rest = shuffled[~np.isin(shuffled, test)]
    valid = _stratified(rest, pool.labels, task.n_valid)
    train = _stratified(rest[~np.isin(rest, valid)], pool.labels, task.n_train)
    return ImageSplit(train=train, valid=valid, test=test)


def resize_batch(images: Tensor, side: int) -> Tensor:
    """Return uint8 images (n, channels, any, any) at `side`: bilinear, antialiased, within one level of Pillow."""
    if images.shape[-2:] == (side, side):
        return images
    import torch
    from torch.nn import functional

    resized = functional.interpolate(images.float(), (side, side), mode="bilinear", antialias=True, align_corners=False)
    return resized.round_().clamp_(0, 255).to(torch.uint8)


def _check_pool(pool: Pool, task: Task) -> None:
    """Refuse images that are not those of the task."""
    n_channels, n_classes = pool.images.shape[1], len(np.unique(pool.labels))
    if (n_channels, n_classes) != (task.n_channels, task.n_classes):
        raise CorruptFile(
            f"task {task.name!r}: the images have {n_channels} channels and {n_classes} classes, not "
            f"{task.n_channels} and {task.n_classes}; the data set is not complete or another one"
        )


def _take(pool: Pool, index: NDArray[np.int64], side: int, pad: int) -> Part:
    """Return some images at `side`, after adding `pad` black pixels around them."""
    import torch
    from torch.nn import functional

    pieces = [
        resize_batch(functional.pad(torch.from_numpy(pool.images[piece]), [pad] * 4), side)
        for piece in np.split(index, range(_IMAGES_AT_ONCE, len(index), _IMAGES_AT_ONCE))
    ]
    return Part(torch.cat(pieces), torch.from_numpy(pool.labels[index]))


def _stratified(shuffled: NDArray[np.int64], labels: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Take the first `n` of `shuffled`, sorted; each class by its share to within one, ties to the smaller label."""
    n_all = len(shuffled)
    if n > n_all:
        raise CorruptFile(f"{n} images are needed, but the pool has only {n_all} left; the data set is incomplete")
    classes, counts = np.unique(labels[shuffled], return_counts=True)
    quotas, remainders = np.divmod(n * counts, n_all)
    quotas[np.argsort(-remainders, kind="stable")[: n - quotas.sum()]] += 1
    parts = [shuffled[labels[shuffled] == label][:quota] for label, quota in zip(classes, quotas, strict=True)]
    return np.sort(np.concatenate(parts))


def _pixel_statistics(images: NDArray[np.uint8], index: NDArray[np.int64]) -> tuple[_Channels, _Channels]:
    """Return mean and deviation per channel of pixels in [0, 1], to four digits, from exact counts of the values."""
    counts = np.zeros((images.shape[1], 256), dtype=np.int64)
    for piece in np.split(index, range(_IMAGES_AT_ONCE, len(index), _IMAGES_AT_ONCE)):
        for channel in range(len(counts)):
            counts[channel] += np.bincount(images[piece, channel].ravel(), minlength=256)
    shares = counts / counts.sum(axis=1, keepdims=True)
    values = np.arange(256) / 255
    mean = shares @ values
    std = np.sqrt(shares @ values**2 - mean**2)
    if not std.min() >= 1e-4:
        raise CorruptFile(f"the training images are empty: their pixels deviate by {std.round(6).tolist()} per channel")
    return tuple(round(float(m), 4) for m in mean), tuple(round(float(s), 4) for s in std)
