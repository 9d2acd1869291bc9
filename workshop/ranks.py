"""Agreement of two orders of paired values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Return Kendall's tau-b; NaN where it is not defined: fewer than two pairs, all values equal, or a NaN.

    Example:
        >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 3)
        0.667
    """
    x, y = paired(a, b)
    if len(x) < 2 or np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    return float(stats.kendalltau(x, y).statistic)


def kendall_tau_within(a: ArrayLike, b: ArrayLike, groups: ArrayLike, *, fewest: int = 2) -> float:
    """Return the mean of Kendall's tau over groups, weighted with their numbers of pairs.

    Groups of fewer than `fewest`, and those where tau is not defined, do not count; NaN where none is left.

    Example:
        >>> kendall_tau_within([1, 2, 3, 9, 8], [1, 3, 2, 5, 6], [0, 0, 0, 1, 1])
        0.0
    """
    x, y = paired(a, b)
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
    x, y = paired(a, b)
    if np.isnan(x).any() or np.isnan(y).any() or min(len(np.unique(x)), len(np.unique(y))) < 2:
        return math.nan
    return float(np.asarray(np.corrcoef(stats.rankdata([x, y], axis=1)))[0, 1])  # spearmanr without its p-value


def paired(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return paired values as floats."""
    x, y = (np.asarray(values, dtype=np.float64).ravel() for values in (a, b))
    assert len(x) == len(y), f"{len(x)} values are compared in pairs with {len(y)}"
    return x, y
