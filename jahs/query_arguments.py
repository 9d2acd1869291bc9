"""Reads what a query is given besides configs and fidelities: names of metrics, and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jahs.errors import InvalidArgument, UnknownName
from jahs.masks import refuse_masked
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


def read_seed(seed: object, *, allowed: str = "None") -> int | None:
    """Return a seed as a built-in integer; `allowed` is what else may be given, for the message.

    Raises:
        InvalidArgument: it is not an integer in 0..2**63-1, or None.
    """
    if seed is None:
        return None
    if isinstance(seed, np.ndarray) and seed.ndim == 0:
        seed = seed[()]
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and 0 <= seed < _MOST_SEEDS:
        return int(seed)
    raise InvalidArgument(f"seed={show(seed)} is not an integer in 0..2**63-1, or {allowed}")


def read_seeds(seed: object, n_configs: int) -> Seeds:
    """Return one seed for all configs, an array of one for each, or None.

    One for each is an array, a list, or anything else that numpy takes for an array (a Series).

    Raises:
        InvalidArgument: a seed is not an integer in 0..2**63-1, or there are not as many as configs.
    """
    if isinstance(seed, Sequence) and not isinstance(seed, str | bytes):
        if any(one is None for one in seed):
            raise InvalidArgument(f"seed={show(seed)} holds None; leave the seed out for the mean of every config")
        each = np.array([read_seed(one) for one in seed], dtype=np.int64)  # numpy would take [1, True] for integers
    elif hasattr(seed, "__array__") and np.ndim(seed):
        refuse_masked("seed", seed)
        each = np.asarray(seed)
    else:
        return read_seed(seed, allowed=f"None, or an array of one for each of {n_configs} configs")
    if each.ndim != 1 or each.dtype.kind not in "iu" or len(each) != n_configs:
        given = f"{each.dtype} of shape {each.shape}"
        raise InvalidArgument(f"seed: {given}; give an integer, or an array of one for each of {n_configs} configs")
    is_bad = (each < 0) | (each >= _MOST_SEEDS)
    if is_bad.any():
        read_seed(each[int(is_bad.argmax())])
    return each.astype(np.int64)
