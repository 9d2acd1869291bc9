"""Candidate protocols of the laptop task, and how the collector finds them beside the tasks that are released.

A candidate is a task under another name: the same images, other numbers. docs/decisions/0011 compares them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from jahs.errors import UnknownName
from jahs.tasks.definitions import TASKS, Task
from jahs.tasks.own import register, task_recorded_as

__all__ = ["CANDIDATES", "NASBENCH201", "recorded_task", "trained_task"]

_LONG: Final = dataclasses.replace(
    TASKS["cifar10_mini"], learning_rate_factor=1.0, learning_rate_power=1.0, random_crop=True
)
_SHORT: Final = dataclasses.replace(
    _LONG, n_train=8192, n_valid=3072, n_test=2048, max_epoch=12, index_digest="bdc9d125841eb331"
)
_SMALL: Final = dataclasses.replace(_SHORT, n_train=4096, index_digest="4c30fb256af39c5f")

_CHANGES: Final[Mapping[str, tuple[Task, Mapping[str, Any]]]] = {  # Any: fields of a Task
    "batch-64": (_SHORT, {}),
    "batch-32": (_SHORT, {"batch_size": 32}),
    "batch-16-small": (_SMALL, {"batch_size": 16}),
    "batch-32-small": (_SMALL, {"batch_size": 32, "max_epoch": 20}),
    "batch-32-rates": (_SHORT, {"batch_size": 32, "learning_rate_factor": 0.2, "learning_rate_power": 0.6}),
    "batch-64-rates": (_SHORT, {"learning_rate_factor": 0.25, "learning_rate_power": 0.6}),
    "batch-64-rates-high": (_SHORT, {"learning_rate_factor": 0.398, "learning_rate_power": 0.6}),
    "long-24": (_SHORT, {"max_epoch": 24}),
    "long-27": (_LONG, {}),
    "long-27-rates": (_LONG, {"learning_rate_factor": 0.25, "learning_rate_power": 0.6}),
    "long-27-no-crops": (_LONG, {"random_crop": False}),
}

CANDIDATES: Final[Mapping[str, Task]] = MappingProxyType(
    {name: dataclasses.replace(base, **changes, name=name) for name, (base, changes) in _CHANGES.items()}
)
"""Protocols that were tried; `cifar10_mini` is the one that was chosen."""

NASBENCH201: Final = dataclasses.replace(
    TASKS["cifar10_mini"], name="nasbench201", title="NAS-Bench-201 (CIFAR-10, 32 px)", side=32
)
"""What cells of NAS-Bench-201 are scored on, untrained: the images of the laptop task, at full size."""


def recorded_task(facts: Mapping[str, Any]) -> Task:  # Any: JSON
    """Return the task of a recorded protocol: a candidate, or any that jahs knows.

    Raises:
        UnknownName, InvalidArgument: it is neither, or an invalid one.
    """
    recorded = facts["task"]
    return _unreleased().get(recorded["name"]) or task_recorded_as(recorded)


def trained_task(name: str) -> Task:
    """Return the task or the candidate called `name`, or the one of a task file, whose name ends in .json.

    Raises:
        UnknownName: if there is neither; lists both.
        JahsError: of a task file, see `jahs.tasks.register`.
    """
    if isinstance(name, str) and name.endswith(".json"):
        return register(name)
    known = {**TASKS, **_unreleased()}
    if isinstance(name, str) and name in known:
        return known[name]
    raise UnknownName.of("task", name, known)


def _unreleased() -> dict[str, Task]:
    return {**CANDIDATES, NASBENCH201.name: NASBENCH201}
