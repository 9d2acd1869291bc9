"""The task of a name, a task file or a recorded protocol."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from jahs.errors import UnknownName
from jahs.tasks.definitions import TASKS, Task
from jahs.tasks.own import register, task_of_protocol

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
"""The task that untrained cells of NAS-Bench-201 are scored on; frozen, because its digest is that of their scores."""


def recorded_task(facts: Mapping[str, Any]) -> Task:  # Any: JSON
    """Return the task of a recorded protocol, which may be an earlier one of a built-in task.

    Raises:
        UnknownName, InvalidArgument: the task is unknown or invalid.
    """
    return NASBENCH201 if facts["task"]["name"] == NASBENCH201.name else task_of_protocol(facts)


def trained_task(name: str) -> Task:
    """Return the task called `name`, or the one of a task file, whose name ends in .json.

    Raises:
        UnknownName: no task has this name; lists the tasks.
    """
    if isinstance(name, str) and name.endswith(".json"):
        return register(name)
    known = {**TASKS, NASBENCH201.name: NASBENCH201}
    if isinstance(name, str) and name in known:
        return known[name]
    raise UnknownName.of("task", name, known)
