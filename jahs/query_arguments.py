"""Reads what a query is given besides configs and fidelities: names of metrics, and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from jahs.errors import InvalidArgument, UnknownName
from jahs.metrics import Metric, metric
from jahs.parameters import show

if TYPE_CHECKING:
    from jahs.oracles.oracle import Seeds

__all__ = ["read_metrics", "read_seed", "read_seeds"]

_MOST_SEEDS: Final = 2**63


def read_metrics(metrics: object, known: Mapping[str, Metric]) -> tuple[str, ...]:
    """Return our names of metrics that are given by ours or the published ones, each once.

    Raises:
        UnknownName: one that is not known; lists those that are.
        InvalidArgument: it is no list of names, or an empty one.
    """
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise InvalidArgument(f"metrics={show(metrics)} is not a list of names; for one metric give [name]")
    names = []
    for given in metrics:
        try:
            name = metric(given).name
        except UnknownName:
            name = ""
        if name not in known:
            raise UnknownName.of("metric", given if isinstance(given, str) else show(given), known)
        names.append(name)
    if not names:
        raise InvalidArgument(f"metrics is empty; there are {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def read_seed(seed: object) -> int | None:
    """Return a seed as a built-in integer.

    Raises:
        InvalidArgument: it is not an integer in 0..2**63-1, or None.
    """
    if seed is None:
        return None
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and 0 <= seed < _MOST_SEEDS:
        return int(seed)
    raise InvalidArgument(f"seed={show(seed)} is not an integer in 0..2**63-1, or None")


def read_seeds(seed: object, n_configs: int) -> Seeds:
    """Return one seed for all configs, an array of one for each, or None.

    Raises:
        InvalidArgument: a seed is not an integer in 0..2**63-1, or there are not as many as configs.
    """
    if not isinstance(seed, np.ndarray) or seed.ndim == 0:
        return read_seed(seed[()] if isinstance(seed, np.ndarray) else seed)
    if seed.ndim != 1 or seed.dtype.kind not in "iu" or len(seed) != n_configs:
        raise InvalidArgument(
            f"seed: {seed.dtype} of shape {seed.shape}; give one integer for each of {n_configs} configs"
        )
    is_bad = (seed < 0) | (seed >= _MOST_SEEDS)
    if is_bad.any():
        read_seed(seed[int(is_bad.argmax())])
    return seed.astype(np.int64)
