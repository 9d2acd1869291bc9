"""Tasks by name or file, and their protocol: everything that determines the measurements, as facts and a digest.

Device, processor and library build are not part of it: they are columns of the runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jahs.errors import CorruptFile, InvalidArgument, ProtocolMismatch, UnknownName
from jahs.files.hashing import digest_facts
from jahs.files.runs import read_protocol
from jahs.tasks.definitions import BUILT_IN, PROSE, RESOLUTIONS, TASKS, Task
from jahs.tasks.own import OPTIONAL, register, task_facts, task_of_protocol

AUGMENTATION_VERSION: Final = 1
"""Part of the protocol digest: raised whenever `pipeline.augment` gives other images for the same generator state."""

EPOCH_FIELDS: Final = ("train_acc", "valid_acc", "test_acc", "train_loss", "valid_loss", "test_loss", "runtime")
"""What a training measures after every epoch."""

REPRODUCED: Final = tuple(name for name in EPOCH_FIELDS if name != "runtime")
"""What a second training must reproduce."""

SGD: Final[Mapping[str, Any]] = {"momentum": 0.9, "nesterov": True}  # Any: arguments of torch.optim.SGD
"""Arguments of every training's optimiser, besides the config's rates."""

_ONE_PIXEL: Final = 4  # side in pixels that two halvings reduce to one pixel

_TRAINING: Final[Mapping[str, object]] = {
    **SGD,
    "schedule": "cosine per epoch, to zero after the task's last",
    "weight_decay": "all parameters",
    "clipping": None,
    "loss": "cross entropy",
}
"""Constants of `pipeline.train`, the same for every task."""

NASBENCH201: Final = dataclasses.replace(
    TASKS["cifar10_mini"],
    name="nasbench201",
    title="NAS-Bench-201 (CIFAR-10, 32 px)",
    side=32,
    n_train=15_200,
    epoch_images=6_400,
    learning_rate_factor=0.0625,
    learning_rate_power=0.4,
    keeps_decay=False,
    index_digest="dd37178412a46fa6",
)
"""The task that untrained cells of NAS-Bench-201 are scored on; frozen, because their scores carry its digest."""


def protocol_facts(task: Task) -> dict[str, object]:
    """Return the facts of a task's protocol; for a user's own task, they suffice to register it when they are read."""
    facts = _decisive_facts(task)
    is_own = task.name in TASKS and task.name not in BUILT_IN
    return facts | ({"task": task_facts(task)} if is_own else {})


def protocol_digest(task: Task) -> str:
    """Return the digest that every row of a run carries.

    Raises:
        ProtocolMismatch: the task has no index digest, so its measurements could not be distinguished from others.
    """
    return digest_facts(_decisive_facts(task))


def _decisive_facts(task: Task) -> dict[str, object]:
    """Return the facts that determine measurements."""
    if task.index_digest is None:
        raise ProtocolMismatch(
            f"task {task.name!r} has no index digest, so its images are not fixed: imported runs of it cannot be "
            "verified or trained again here, and a task of your own needs one before runs are recorded"
        )
    facts = {
        key: value
        for key, value in dataclasses.asdict(task).items()
        if key not in (*PROSE, "batch_size") and (key, value) not in OPTIONAL.items()
    }
    training = {"batch_size": task.batch_size, **_TRAINING}
    return {"task": facts, "training": training, "augmentation": AUGMENTATION_VERSION}


def shared_protocol(folder: Path, task: Task) -> str:
    """Return the digest that a folder of runs and a task share.

    Raises:
        ProtocolMismatch: they have different digests.
        MissingData, CorruptFile, UnknownFormat: it is not a folder of runs.
    """
    recorded, expected = read_protocol(folder).digest, protocol_digest(task)
    if recorded != expected:
        raise ProtocolMismatch(f"{folder} holds runs of protocol {recorded}, but {task.name} has {expected}")
    return expected


def recorded_task(facts: Mapping[str, Any]) -> Task:  # Any: JSON
    """Return the task of a recorded protocol, which may be an earlier one of a built-in task.

    Raises:
        CorruptFile: the facts name no task.
        UnknownName, InvalidArgument: the task is unknown or invalid.
    """
    if not isinstance(task := facts.get("task"), dict) or not isinstance(name := task.get("name"), str):
        raise CorruptFile("protocol.json names no task: its protocol must have task.name; restore it from a copy")
    return NASBENCH201 if name == NASBENCH201.name else task_of_protocol(facts)


def check_batches(task: Task) -> None:
    """Refuse a task whose epochs have a batch that cannot be normalised: one image, where the network has one pixel.

    Raises:
        InvalidArgument: such a task.
    """
    n_images, smallest = task.epoch_images or task.n_train, min(RESOLUTIONS)
    if 1 in {task.batch_size, n_images % task.batch_size} and task.image_side(smallest) == _ONE_PIXEL:
        raise InvalidArgument(
            f"task {task.name!r}: an epoch of {n_images} images in batches of {task.batch_size} has a batch of one "
            f"image, which cannot be normalised where the network has one pixel left (Resolution {smallest}); choose "
            "another batch size or another number of images"
        )


def trained_task(name: str) -> Task:
    """Return the task called `name`, or the one of a task file, whose name ends in .json.

    Raises:
        UnknownName: no task has this name; lists the tasks.
        InvalidArgument: its batches cannot be trained on.
    """
    known = {**TASKS, NASBENCH201.name: NASBENCH201}
    if not isinstance(name, str) or not (name.endswith(".json") or name in known):
        raise UnknownName.of("task", name, known)
    task = register(name) if name.endswith(".json") else known[name]
    check_batches(task)
    return task
