"""The tasks: images, their number and side, and epochs. A task is a protocol, frozen once its data are collected.

Over 300 lines: each task has its caveat beside it.

Laptop tasks (`digits`, `fashion_mnist_mini`) are measured by this project. The other three follow JAHS-Bench-201;
where its authors do not state a number (the validation sizes of the two ICGen tasks), ours is named in the comment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np

from jahs.errors import InvalidArgument, UnknownName
from jahs.spaces.parameters import is_integer, is_number, show

RESOLUTIONS: Final = (0.25, 0.5, 1.0)
PROSE: Final = ("title", "citation", "caveat")
"""Descriptive fields of a task: they may change, so no protocol digest covers them."""
_SMALLEST_SIDE: Final = 4

_MOST: Final = {"side": 1024, "max_epoch": 2**15 - 1}
"""Largest values: of images that are read, and of the epochs in a table of runs."""
_MOST_OF_ANY: Final = 10**9
_LONGEST: Final = 10_000


def _is_count(value: object) -> bool:
    return is_integer(value) and bool(0 <= value <= _MOST_OF_ANY)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable()


def _is_shares(value: object) -> bool:
    return isinstance(value, tuple | list) and all(is_number(each) and 0 <= each <= 1 for each in value)


_TYPES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {  # Any: whatever a user gives
    "str": (_is_text, "a printable text"),
    "int": (_is_count, "an integer from 0 to a billion"),
    "float": (lambda value: is_number(value) and value > 0, "a finite number above 0"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "Literal": (lambda value: isinstance(value, str) and value in ("small", "large"), '"small" or "large"'),
    "tuple": (_is_shares, "a list of numbers from 0 to 1, one per channel"),
}
"""A check of the type and a description of the legal values, by the first word of a field's annotation."""

_ENTRIES: Final = """\
The JAHS authors. JAHS: joint architecture and hyperparameter search on a laptop. Release: {release}.

Bansal, Stoll, Janowski, Zela, Hutter (2022). JAHS-Bench-201: A Foundation For Research On Joint Architecture And \
Hyperparameter Search. Advances in Neural Information Processing Systems 35, Datasets and Benchmarks Track.

Dong, Yang (2020). NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search. International \
Conference on Learning Representations.

{images}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A protocol: data set, image side, split sizes and epochs.

    Attributes:
        name: identifier, as queries name it.
        title: name for people.
        data_set: name of the images (`pipeline.data` finds them); `own_` and a digest for a user's own.
        side: image side at Resolution 1.0; the network halves it twice.
        n_channels, n_classes: channels and classes of the images.
        n_train, n_valid, n_test: split sizes, disjoint.
        epoch_images: training images of one epoch, drawn anew without replacement for each epoch; None: all of them.
        max_epoch: epochs of a full run; the cosine schedule ends there.
        batch_size: images in one training step.
        learning_rate_factor, learning_rate_power: training uses factor * LearningRate ** power; the config keeps its
            published value. A power below 1 makes short training as tolerant of the rate as long training is.
        keeps_decay: whether a step shrinks the weights by the config's LearningRate * WeightDecay, as without a factor
            or a power; otherwise by the trained rate * WeightDecay.
        random_crop: whether training shifts images by random crops; it mirrors them in any case.
        operators: version of the network's arithmetic (`pipeline.operators`); versions differ by rounding.
        crop: "small" crops the image as it is trained on; "large" crops at full side before resizing (CIFAR-10).
        pad: black pixels added on each side of the original images before they are resized.
        has_own_test: whether testing uses the data set's own test images; otherwise they are drawn from all.
        max_translation: pixels by which TrivialAugment's strongest translation moves an image at Resolution 1.0,
            or None where it scales with the image.
        mean, std: per channel, of pixels in [0, 1]; None: computed from the training images.
        index_digest: digest of the split's indices once the protocol is frozen; None while it is not.
        citation: reference for the images.
        caveat: a paragraph that a user must read before using the task's numbers, or None.
    """

    name: str
    title: str
    data_set: str
    side: int
    n_channels: int
    n_classes: int
    n_train: int
    n_valid: int
    n_test: int
    max_epoch: int
    epoch_images: int | None = None
    batch_size: int = 256
    learning_rate_factor: float = 1.0
    learning_rate_power: float = 1.0
    keeps_decay: bool = False
    random_crop: bool = True
    operators: int = 2
    crop: Literal["small", "large"] = "small"
    pad: int = 0
    has_own_test: bool = False
    max_translation: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    index_digest: str | None = None
    citation: str
    caveat: str | None = None

    def __post_init__(self) -> None:
        """Refuse wrong types, and a network that would run out of pixels or images; numpy's numbers become Python's."""
        wrong = type_faults({each.name: getattr(self, each.name) for each in fields(self)})
        faults = list(wrong.values())
        side = 4 * _SMALLEST_SIDE if "side" in wrong else self.side
        smallest = int(side * min(RESOLUTIONS))
        if smallest < _SMALLEST_SIDE or side % (4 * _SMALLEST_SIDE):
            faults.append(
                f"side={show(self.side)}: Resolution {min(RESOLUTIONS)} gives images of {smallest} pixels; the side "
                f"must be a multiple of {4 * _SMALLEST_SIDE}, so that the smallest image has at least {_SMALLEST_SIDE}"
            )
        faults += [
            f"{key}={show(value)}: must be at least 1"
            for key in ("n_channels", "n_classes", "n_train", "n_valid", "n_test", "max_epoch", "batch_size")
            if key not in wrong and (value := getattr(self, key)) < 1
        ]
        faults += [
            f"{key}={show(value)}: must be at least 1 and at most {most}"
            for key, most in _MOST.items()
            if key not in wrong and (value := getattr(self, key)) > most
        ]
        n_images = None if wrong.keys() & {"epoch_images", "n_train"} else self.epoch_images
        if n_images is not None and not 1 <= n_images <= self.n_train:
            faults.append(f"epoch_images={show(n_images)}: must be from 1 to n_train={self.n_train}, or none")
        if faults:
            raise InvalidArgument("\n".join(f"task {show(self.name)}: {fault}" for fault in faults))
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, tuple | list):
                object.__setattr__(self, each.name, tuple(map(float, value)))
            elif isinstance(value, np.generic):
                object.__setattr__(self, each.name, value.item())

    @property
    def chance_error(self) -> float:
        """Error of guessing the class, in percent."""
        return 100.0 * (1 - 1 / self.n_classes)

    def trained_rate(self, rate: float) -> float:
        """Return the initial learning rate of training for a config's `LearningRate`."""
        return float(self.learning_rate_factor * rate**self.learning_rate_power)

    def trained_decay(self, rate: float, decay: float) -> float:
        """Return the weight decay of training for a config's `LearningRate` and `WeightDecay`."""
        return decay * (rate / self.trained_rate(rate) if self.keeps_decay else 1.0)

    def image_side(self, resolution: float) -> int:
        """Return the image side in pixels for a config of this Resolution."""
        return int(self.side * resolution)


def type_faults(facts: Mapping[str, object]) -> dict[str, str]:
    """Return a fault for each of these fields of a task that has the wrong type, by name."""
    faults = {}
    for each in fields(Task):
        kind, _, optional = str(each.type).partition(" | ")
        is_valid, expected = _TYPES[kind.partition("[")[0]]
        value = facts.get(each.name)
        if each.name in facts and not (optional and value is None) and not is_valid(value):
            faults[each.name] = f"{each.name} must be {expected}, got {show(value)}"
    return faults


_FASHION = (
    "Xiao, Rasul, Vollgraf (2017). Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms. "
    "arXiv:1708.07747"
)
_CIFAR = "Krizhevsky (2009). Learning Multiple Layers of Features from Tiny Images."
_SHORT_TRAINING = (
    "Short training. A run of `fashion_mnist_mini` takes 384 SGD steps; JAHS-Bench-201 takes 19,600 on CIFAR-10. The "
    "task ranks configs as CIFAR-10 does after about 3 of its 200 epochs: Spearman's rho of validation accuracy is "
    "0.61 with epoch 200, 0.68 with epoch 20 and 0.85 with epoch 3; between two tasks of JAHS-Bench-201, it is 0.86 "
    "to 0.88. Raising Resolution from 0.25 to 1 gains 1.1 points instead of 19.3. The learning rate alone explains 30 "
    "% of the variance of ranks instead of 3 %, and its interaction with weight decay 1.4 % instead of 6.5 %. "
    "TrivialAugment loses 1.65 points instead of gaining 0.87. Good NAS-Bench-201 cells are not found: rho in the "
    "better half is 0.11 instead of 0.60. Do not expect rankings of configs or optimizers to carry over to full "
    "training. `python -m surrogate.landscape_check fashion_mnist_mini --landscape CIFAR10 --cells CSV` prints these "
    "figures (3,000 uniform configs, 1,000 cells, seed 0; CIFAR10 is the authors' pre-release surrogate), except the "
    "rho between two tasks."
)

_WELL_RANKED = (
    "`fashion_mnist_mini` ranks configs well over the whole space (Spearman's rho with CIFAR-10 of JAHS-Bench-201: "
    "0.89), less well at full size (0.81) and among good cells: with NAS-Bench-201's accuracy after 200 epochs, rho is "
    "0.59 on 23 random cells (95 % interval 0.16 to 0.85) and 0.41 in the better half. Trainings take 2,700 SGD steps "
    "instead of 19,600, so deep networks are undertrained. There is no final test set, so errors among the best "
    "configs are not known. Details: `docs/data/fashion_mnist_mini.md`."
)

_BADLY_RANKED = (
    "`cifar10_mini` ranks cells badly at full size: with NAS-Bench-201's accuracy after 200 epochs, Spearman's rho is "
    "0.37 on 60 random cells (95 % interval 0.08 to 0.61) and 0.15 in the better half. Over the whole space, it ranks "
    "configs nearly as CIFAR-10 of JAHS-Bench-201 does (rho 0.85), at full size less so (0.75). Trainings take 2,700 "
    "SGD steps instead of 19,600, so deep networks are undertrained. Details: `docs/data/cifar10_mini.md`."
)


def _task(name: str, title: str, images: tuple[int, int, int], counts: tuple[int, int, int], **more: Any) -> Task:
    """Return a task on images of (side, channels, classes), split into (train, valid, test)."""
    side, n_channels, n_classes = images
    n_train, n_valid, n_test = counts
    fields = {"data_set": name, "max_epoch": 200, **more}  # 200 epochs, as in JAHS-Bench-201
    return Task(
        name=name, title=title, side=side, n_channels=n_channels, n_classes=n_classes,
        n_train=n_train, n_valid=n_valid, n_test=n_test, **fields,
    )  # fmt: skip


def _laptop_task(name: str, title: str, n_channels: int, **more: Any) -> Task:
    """Return a task that a laptop trains, with the protocol that ranks configs as long training does (decision 11)."""
    return _task(
        name,
        title,
        (16, n_channels, 10),
        (15_200, 3200, 1600),
        max_epoch=27,
        batch_size=64,
        epoch_images=6400,
        keeps_decay=True,
        learning_rate_factor=0.0625,
        learning_rate_power=0.4,
        random_crop=False,
        **more,
    )


_ALL = (
    _task(
        "digits",
        "Digits (16 px)",
        (16, 1, 10),
        (1024, 256, 256),
        max_epoch=12,
        index_digest="4e1f81e15601f151",
        citation="Alpaydin, Kaynak (1998). Optical Recognition of Handwritten Digits. UCI Machine Learning Repository.",
    ),
    _laptop_task(
        "fashion_mnist_mini",
        "Fashion-MNIST (16 px)",
        1,
        data_set="fashion_mnist",
        has_own_test=True,
        index_digest="255392ed99402c4c",
        citation=_FASHION,
        caveat=_WELL_RANKED,
    ),
    _laptop_task(
        "cifar10_mini",
        "CIFAR-10 (16 px)",
        3,
        data_set="cifar10_first",
        index_digest="dd37178412a46fa6",
        citation=_CIFAR,
        caveat=_BADLY_RANKED,
    ),
    _task(
        "cifar10",
        "CIFAR-10",
        (32, 3, 10),
        (25_000, 25_000, 10_000),
        crop="large",
        has_own_test=True,
        max_translation=10,
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        citation=_CIFAR,
    ),
    _task(
        "colorectal_histology",
        "Colorectal Histology",
        (32, 3, 8),
        (4_008, 496, 496),  # the validation size is ours: as many per class as for testing
        max_translation=10,
        citation="Kather et al. (2016). Multi-class texture analysis in colorectal cancer histology. Sci. Rep. 6.",
    ),
    _task(
        "fashion_mnist",
        "Fashion-MNIST",
        (32, 1, 10),
        (56_000, 7_000, 7_000),  # the validation size is ours: as many per class as for testing
        pad=2,
        max_translation=10,
        citation=_FASHION,
    ),
)

EARLIER: Final[Mapping[str, Task]] = MappingProxyType(
    {
        "ec4b573f56e5dcc8": _task(
            "fashion_mnist_mini",
            "Fashion-MNIST (16 px)",
            (16, 1, 10),
            (8192, 3072, 2048),
            data_set="fashion_mnist",
            max_epoch=12,
            operators=1,
            index_digest="24c9a820911c7860",
            has_own_test=True,
            citation=_FASHION,
            caveat=_SHORT_TRAINING,
        )
    }
)
"""Earlier protocols of built-in tasks, by their digest: releases and records of them stay readable."""

DEFAULT_TASK: Final = "cifar10_mini"
"""The task that is used if no task is named."""

BUILT_IN: Final = frozenset(t.name for t in _ALL)
"""Names of the tasks that come with the package."""

KNOWN: Final = {t.name: t for t in _ALL}
"""Every task of this process by name; only `jahs.tasks.own` adds to it."""

TASKS: Final[Mapping[str, Task]] = MappingProxyType(KNOWN)
"""Every task by name: the built-in ones, and those that were registered in this process."""


def caveats_of(tasks: Iterable[Task]) -> tuple[str, ...]:
    """Return the distinct caveats of tasks."""
    return tuple(dict.fromkeys(t.caveat for t in tasks if t.caveat))


def task(name: str) -> Task:
    """Return the task called `name`.

    Raises:
        UnknownName: the task does not exist; lists those that do.

    Example:
        >>> task("cifar10").max_epoch
        200
    """
    if isinstance(name, str) and name in TASKS:
        return TASKS[name]
    raise UnknownName.of("task", name, TASKS)


def citation(task: Task, facts: Mapping[str, Any], sha256: str | None = None) -> str:  # Any: JSON
    """Return the references of a task, one per paragraph: the benchmark and release, the space, the cell, the images.

    Args:
        facts: those of the release.
        sha256: the sha256 of the release's manifest; its first 16 digits are cited.
    """
    release = f"{task.name}, {facts.get('version', 'no release')}{f' (sha256 {sha256[:16]})' if sha256 else ''}"
    return _ENTRIES.format(release=release, images=task.citation)
