"""Compatibility with code written for `jahs_bench.Benchmark`: its spellings, names, units and random states."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, get_args

import numpy as np

from jahs.errors import UnknownName
from jahs.queries.oracles.oracle import Kind
from jahs.spaces.parameters import show
from jahs.spaces.seeds import read_seed
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import Metric
from jahs.tasks.own import register

RandomState = int | np.random.RandomState | np.random.Generator | None

_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


def read_task(given: object) -> str:
    """Return a task's name, given in any case or as a member of an enumeration with that value.

    Whether the task exists is known once its release has been looked for.
    """
    if isinstance(given, Task):
        return register(given).name
    name = given.value if isinstance(given, enum.Enum) else given
    return name.lower() if isinstance(name, str) else show(name)


def read_kind(given: object) -> Kind:
    """Return the kind of an oracle from its name, in upper or lower case, or from an enumeration member."""
    name = given.value if isinstance(given, enum.Enum) else given
    for kind in _KINDS:
        if isinstance(name, str) and name.lower() == kind:
            return kind
    raise UnknownName.of("kind", name if isinstance(name, str) else show(name), _KINDS)


def seed_of(random_state: RandomState) -> int | None:
    """Return the seed of a random state: a seed itself, or the next number of one of numpy's two kinds of generator."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return read_seed(random_state, name="random_state", or_else=", a numpy.random.RandomState or Generator, or None")


def with_published_names(values: Mapping[str, float], metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Return a query's answers under JAHS-Bench-201's names and in its units.

    Example:
        >>> with_published_names({"valid_acc": 91.5, "n_params": 1531546.0}, jahs.tasks.metrics.METRICS)
        {'valid-acc': 91.5, 'size_MB': 1.531546}
    """
    return {
        published: value / (1 / metric.published_scale)  # over a million: closer than times a millionth
        for name, value in values.items()
        if (published := (metric := metrics[name]).published_name) is not None
    }
