"""Candidate protocols of the laptop task, and how the collector finds them beside the tasks that are released.

A candidate is a task under another name: the same images, other numbers. Decision 9 compares them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from jahs.errors import UnknownName
from jahs.tasks import TASKS, Task

__all__ = ["CANDIDATES", "trained_task"]

_SHORT: Final = dataclasses.replace(
    TASKS["cifar10_mini"],
    n_train=8192,
    n_valid=3072,
    n_test=2048,
    max_epoch=12,
    index_digest="bdc9d125841eb331",
)
_SMALL: Final = dataclasses.replace(_SHORT, n_train=4096, index_digest="4c30fb256af39c5f")
_RATES: Final = 0.6  # power of the learning rate

CANDIDATES: Final[Mapping[str, Task]] = MappingProxyType(
    {
        name: dataclasses.replace(found, name=name)
        for name, found in {
            "batch-256": dataclasses.replace(_SHORT, batch_size=256),
            "batch-64": _SHORT,
            "batch-32": dataclasses.replace(_SHORT, batch_size=32),
            "batch-16-small": dataclasses.replace(_SMALL, batch_size=16),
            "batch-32-small": dataclasses.replace(_SMALL, batch_size=32, max_epoch=20),
            "batch-64-rates": dataclasses.replace(_SHORT, learning_rate_power=_RATES, learning_rate_factor=0.4),
            "batch-64-rates-low": dataclasses.replace(_SHORT, learning_rate_power=_RATES, learning_rate_factor=0.25),
            "batch-32-rates-low": dataclasses.replace(
                _SHORT, batch_size=32, learning_rate_power=_RATES, learning_rate_factor=0.2
            ),
            "batch-64-long": dataclasses.replace(_SHORT, max_epoch=24),
        }.items()
    }
)
"""Protocols that were tried; `cifar10_mini` is the one that was chosen."""


def trained_task(name: str) -> Task:
    """Return the task or the candidate called `name`.

    Raises:
        UnknownName: if there is neither; lists both.
    """
    known = {**TASKS, **CANDIDATES}
    if isinstance(name, str) and name in known:
        return known[name]
    raise UnknownName.of("task", name, known)
