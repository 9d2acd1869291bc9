"""How well two orders agree."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.errors import InvalidArgument

__all__ = ["kendall_tau"]


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Return Kendall's tau-b of paired values; NaN where it is not defined: fewer than two, or all equal, or a NaN.

    Takes time n log(n)^2 and memory n.

    Raises:
        InvalidArgument: they are not of the same length.

    Example:
        >>> kendall_tau([1, 2, 3, 4], [1, 3, 2, 4])
        0.6666666666666666
    """
    x, y = np.asarray(a, dtype=np.float64).ravel(), np.asarray(b, dtype=np.float64).ravel()
    if len(x) != len(y):
        raise InvalidArgument(f"a has {len(x)} values, b has {len(y)}; they are compared in pairs")
    if np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    of_x, of_y = _ranks(x), _ranks(y)
    n_pairs = len(x) * (len(x) - 1) // 2
    ties_x, ties_y = _n_ties(of_x), _n_ties(of_y)
    if n_pairs in (ties_x, ties_y):
        return math.nan
    both = _ranks(of_x * (int(of_y.max()) + 1) + of_y)
    n_discordant = _n_inversions(of_y[np.argsort(both, kind="stable")])
    n_apart = n_pairs - ties_x - ties_y + _n_ties(both)  # pairs that are tied in neither
    return (n_apart - 2 * n_discordant) / math.sqrt((n_pairs - ties_x) * (n_pairs - ties_y))


def _ranks(values: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each value among the distinct ones."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _n_ties(ranks: NDArray[np.int64]) -> int:
    counts = np.bincount(ranks)
    return int((counts * (counts - 1) // 2).sum())


def _n_inversions(ranks: NDArray[np.int64]) -> int:
    """Pairs of which the first is larger, counted bit by bit: where two ranks first differ, which one has the bit?"""
    found = 0
    for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
        prefix, has_bit = ranks >> (bit + 1), (ranks >> bit) & 1
        before = np.cumsum(has_bit) - has_bit
        starts = np.flatnonzero(np.append(True, prefix[1:] != prefix[:-1]))
        before -= np.repeat(before[starts], np.diff(np.append(starts, len(ranks))))
        found += int(before[has_bit == 0].sum())
        ranks = ranks[np.argsort(ranks >> bit, kind="stable")]
    return found
