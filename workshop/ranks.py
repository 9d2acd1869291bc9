"""How well two rankings of the same items agree; each measure takes paired values, arrays or lists of numbers."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

__all__ = ["kendall_tau", "kendall_tau_within", "persistence", "rank_biased_overlap", "spearman"]

_CHUNK: Final = 2**20  # numbers of a table that are in memory at a time


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Return Kendall's tau-b; NaN for fewer than two values, with a NaN, or if all values of one side are equal.

    Example:
        >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 3)
        0.667
    """
    x, y = _paired(a, b)
    if len(x) < 2 or np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    return float(stats.kendalltau(x, y).statistic)


def kendall_tau_within(a: ArrayLike, b: ArrayLike, groups: ArrayLike, *, fewest: int = 2) -> float:
    """Return the mean of Kendall's tau over groups, weighted by their numbers of pairs.

    Groups of fewer than `fewest`, and those where tau is NaN, do not count; NaN where none is left.

    Example:
        >>> kendall_tau_within([1, 2, 3, 9, 8], [1, 3, 2, 5, 6], [0, 0, 0, 1, 1])
        0.0
    """
    x, y = _paired(a, b)
    known, of = np.unique(np.asarray(groups), return_inverse=True)
    if of.size != len(x):
        raise ValueError(f"groups has {of.size} values, a and b have {len(x)}")
    total, n_pairs = 0.0, 0
    for members in (np.flatnonzero(of.ravel() == group) for group in range(len(known))):
        if len(members) >= fewest and not math.isnan(tau := kendall_tau(x[members], y[members])):
            n = len(members) * (len(members) - 1) // 2
            total, n_pairs = total + n * tau, n_pairs + n
    return total / n_pairs if n_pairs else math.nan


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Return Spearman's rank correlation; ties share their mean rank, and NaN is returned as by `kendall_tau`.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 3)
        0.8
    """
    x, y = _paired(a, b)
    if np.isnan(x).any() or np.isnan(y).any() or min(len(np.unique(x)), len(np.unique(y))) < 2:
        return math.nan
    return float(stats.spearmanr(x, y).statistic)


def rank_biased_overlap(a: ArrayLike, b: ArrayLike, *, p: float) -> float:
    """Return how well two rankings agree at the top: 1 for equal rankings; NaN with a NaN or without values.

    It is the mean over all depths of the share of items that both rankings have above that depth; depth d weighs
    p**(d - 1), with p in (0, 1). The largest values rank first. Ties are broken at random; this is the expectation.

    Example:
        >>> rank_biased_overlap([4, 3, 2, 1], [3, 4, 2, 1], p=0.5)
        0.4666666666666667
    """
    x, y = _paired(a, b)
    if not len(x) or np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    n = len(x)
    spans = [_span(values) for values in (x, y)]
    depths = np.arange(1, n + 1, dtype=np.float64)
    shared = np.empty(n)
    for first in range(0, n, step := max(1, _CHUNK // n)):
        depth = depths[first : first + step, None]
        # The probability that an item is among the first `depth`: its tied group has ranks above..above + size.
        within = [np.clip((depth - above) / size, 0, 1) for above, size in spans]
        shared[first : first + step] = (within[0] * within[1]).sum(axis=1)
    weights = p ** (depths - 1)
    return float(weights @ (shared / depths) / weights.sum())


def persistence(depth: int, *, weight: float = 0.9) -> float:
    """Return the p with which the first `depth` ranks have this share of the weight of `rank_biased_overlap`.

    Example:
        >>> round(persistence(10, weight=0.8556), 3)
        0.9
    """
    return float(optimize.brentq(lambda p: _weight_of_first(depth, p) - weight, 1e-15, 1 - 1e-15, xtol=1e-15))


def _weight_of_first(depth: int, p: float) -> float:
    """Return the weight of the first ranks of endless rankings (Webber, Moffat and Zobel, 2010, eq. 21)."""
    ranks = np.arange(1, depth, dtype=np.float64)
    rest = -math.log1p(-p) - float(np.sum(p**ranks / ranks))
    return 1 - p ** (depth - 1) + (1 - p) / p * depth * rest


def _paired(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = (np.asarray(values, dtype=np.float64).ravel() for values in (a, b))
    if len(x) != len(y):
        raise ValueError(f"a has {len(x)} values, b has {len(y)}")
    return x, y


def _span(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each item how many are larger, and how many are equal, itself included."""
    above = stats.rankdata(-values, method="min") - 1
    return above.astype(np.float64), stats.rankdata(-values, method="max") - above.astype(np.float64)
