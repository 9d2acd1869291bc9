"""Agreement of two orders of paired values: Kendall's tau, Spearman's correlation, and rank-biased overlap at the top.

Rank-biased overlap has two forms, Webber's and the zero-cost benchmark's. Both count the items that two orders share
down to each depth d, O_d, and weigh depth d with p^(d-1):

- Webber, Moffat and Zobel (2010) average the share O_d / d; here it is truncated at the end and divided by its maximum.
- The zero-cost benchmark (its equation 5) sums the raw count O_d and divides by the sum of its maxima d, so deep places
  weigh more: p^(d-1) d instead of p^(d-1).

The largest values come first. Ties are broken at random in either order, and an overlap is its expectation. Both forms
give 1 for equal orders, and NaN if a value is NaN. An overlap can only be compared with overlaps of the same form.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

_FEW: Final = 400  # up to so many items, comparing all pairs takes less time than scipy


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Return Kendall's tau-b; NaN where it is not defined: fewer than two pairs, all values equal, or a NaN.

    Example:
        >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 3)
        0.667
    """
    x, y = _paired(a, b)
    if len(x) < 2 or np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    if len(x) > _FEW:
        return float(scipy.stats.kendalltau(x, y, method="asymptotic").statistic)  # the p-value is not used
    above, higher = x[:, None] > x, y[:, None] > y
    n_above, n_higher = np.count_nonzero(above), np.count_nonzero(higher)
    if not n_above or not n_higher:
        return math.nan
    balance = np.count_nonzero(above & higher) - np.count_nonzero(above & higher.T)
    return float(min(1.0, max(-1.0, balance / np.sqrt(n_above) / np.sqrt(n_higher))))  # in scipy's order


def kendall_tau_within(a: ArrayLike, b: ArrayLike, groups: ArrayLike, *, fewest: int = 2) -> float:
    """Return the mean of Kendall's tau over groups, weighted with their numbers of pairs.

    Groups of fewer than `fewest`, and groups where tau is undefined, do not count; NaN if none is left.

    Example:
        >>> kendall_tau_within([1, 2, 3, 9, 8], [1, 3, 2, 5, 6], [0, 0, 0, 1, 1])
        0.0
    """
    x, y = _paired(a, b)
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    total, n_pairs = 0.0, 0
    for number in np.unique(group).tolist():
        members = np.flatnonzero(group == number)
        if len(members) >= fewest and not math.isnan(tau := kendall_tau(x[members], y[members])):
            n = len(members) * (len(members) - 1) // 2
            total, n_pairs = total + n * tau, n_pairs + n
    return total / n_pairs if n_pairs else math.nan


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Return Spearman's rank correlation; NaN as for `kendall_tau`.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 3)
        0.8
    """
    x, y = _paired(a, b)
    if np.isnan(x).any() or np.isnan(y).any() or min(len(np.unique(x)), len(np.unique(y))) < 2:
        return math.nan
    return float(np.asarray(np.corrcoef(scipy.stats.rankdata([x, y], axis=1)))[0, 1])  # spearmanr without its p-value


def webber_overlap(a: ArrayLike, b: ArrayLike, *, p: float) -> float:
    """Return Webber's overlap of two whole orders, truncated at their end and divided by its maximum.

    Example:
        >>> webber_overlap([4, 3, 2, 1], [3, 4, 2, 1], p=0.5)
        0.4666666666666667
    """
    shared, depths, weights = _shared(a, b, p)
    return float(weights @ (shared / depths) / weights.sum()) if len(shared) else math.nan


def benchmark_overlap(a: ArrayLike, b: ArrayLike, *, p: float) -> float:
    """Return the normalised overlap of the zero-cost benchmark (eq. 5): sum p^(d-1) O_d / sum p^(d-1) d.

    Example:
        >>> benchmark_overlap([4, 3, 2, 1], [3, 4, 2, 1], p=0.5)
        0.6923076923076923
    """
    shared, depths, weights = _shared(a, b, p)
    return float(weights @ shared / (weights @ depths)) if len(shared) else math.nan


def webber_weight(depth: int, p: float) -> float:
    """Return the share of Webber's weight that the first `depth` places have in infinite orders (their eq. 21)."""
    places = np.arange(1, depth, dtype=np.float64)
    tail = -math.log1p(-p) - float(np.sum(p**places / places))
    return 1 - p ** (depth - 1) + (1 - p) / p * depth * tail


def benchmark_weight(depth: int, p: float) -> float:
    """Return the zero-cost benchmark's weight of the first `depth` >= 2 places (eq. 4).

    Its sum goes to `depth`, Webber's to depth - 1, so it is smaller by (1 - p) p^(depth-1).
    """
    return webber_weight(depth, p) - (1 - p) * p ** (depth - 1)


@functools.cache
def choose_p(n: int, *, top_share: float, weight: float = 0.9) -> float:
    """Return the p with which the best `top_share` of n items has this share of Webber's weight.

    Example:
        >>> round(choose_p(100, top_share=0.1, weight=0.8556), 3)
        0.9
    """
    assert 0 < top_share <= 1
    assert 0 < weight < 1
    depth = max(1, round(top_share * n))
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if webber_weight(depth, middle) > weight else (low, middle)
    return middle


def _paired(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = (np.asarray(values, dtype=np.float64).ravel() for values in (a, b))
    assert len(x) == len(y), f"{len(x)} values are compared in pairs with {len(y)}"
    return x, y


def _shared(a: ArrayLike, b: ArrayLike, p: float) -> tuple[NDArray[np.float64], ...]:
    """Return the expected O_d, d and p^(d-1) for every depth; empty arrays if a value is NaN.

    A cut at a depth splits at most one tied group of each order. All items of the groups above it are included, and
    each item of the split group with a probability equal to the included share of the group.
    """
    assert 0 < p < 1
    x, y = _paired(a, b)
    n = 0 if np.isnan(x).any() or np.isnan(y).any() else len(x)
    depths = np.arange(1, n + 1, dtype=np.float64)

    def count(first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return at each depth how many items are counted, each from its first depth to before its end."""
        first, end = first[first < end], end[first < end]
        changes = np.bincount(first, minlength=n + 2) - np.bincount(end, minlength=n + 2)
        return np.cumsum(changes)[1 : n + 1].astype(np.float64)

    (above_a, end_a, share_a), (above_b, end_b, share_b) = (_spans(values[:n], depths) for values in (x, y))
    shared = count(np.maximum(end_a, end_b), np.full(n, n + 1))
    shared += share_a * count(np.maximum(above_a + 1, end_b), end_a)
    shared += share_b * count(np.maximum(above_b + 1, end_a), end_b)
    shared += share_a * share_b * count(np.maximum(above_a, above_b) + 1, np.minimum(end_a, end_b))
    return shared, depths, p ** (depths - 1)


def _spans(values: NDArray[np.float64], depths: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:  # Any: two kinds
    """Return how many items rank above each item's tied group, how many down to its end, and a share for each depth.

    The share is the fraction of the tied group at that depth which is among the first `depth` items.
    """
    _, group, sizes = np.unique(-values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    place = np.repeat(np.arange(len(sizes)), sizes)
    return (ends - sizes)[group], ends[group], (depths - (ends - sizes)[place]) / sizes[place]
