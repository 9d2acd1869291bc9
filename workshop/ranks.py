"""Agreement of two orders."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from jahs.errors import InvalidArgument
from jahs.spaces.masks import refuse_masked
from jahs.spaces.parameters import show


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Return Kendall's tau-b of paired values; NaN where it is not defined: fewer than two, or all equal, or a NaN.

    Raises:
        InvalidArgument: they are no numbers, or not of the same length.

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

    Raises:
        InvalidArgument: they are no numbers, or not of the same length.

    Example:
        >>> kendall_tau_within([1, 2, 3, 9, 8], [1, 3, 2, 5, 6], [0, 0, 0, 1, 1])
        0.0
    """
    x, y = paired(a, b)
    refuse_masked("groups", groups)
    known, of = np.unique(np.asarray(groups), return_inverse=True)
    if of.size != len(x):
        raise InvalidArgument(f"groups has {of.size} values, a and b have {len(x)}; each pair is in one group")
    total, n_pairs = 0.0, 0
    for members in (np.flatnonzero(of.ravel() == group) for group in range(len(known))):
        if len(members) >= fewest and not math.isnan(tau := kendall_tau(x[members], y[members])):
            n = len(members) * (len(members) - 1) // 2
            total, n_pairs = total + n * tau, n_pairs + n
    return total / n_pairs if n_pairs else math.nan


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Return Spearman's rank correlation of paired values; NaN and errors as `kendall_tau`.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 3)
        0.8
    """
    x, y = paired(a, b)
    if np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    if min(len(np.unique(x)), len(np.unique(y))) < 2:
        return math.nan
    return float(np.asarray(np.corrcoef(stats.rankdata([x, y], axis=1)))[0, 1])  # spearmanr without its p-value


def paired(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return paired values as floats.

    Raises:
        InvalidArgument: they are not numbers, are masked, or are not of the same length.
    """
    x, y = _numbers("a", a), _numbers("b", b)
    if len(x) != len(y):
        raise InvalidArgument(f"a has {len(x)} values, b has {len(y)}; they are compared in pairs")
    return x, y


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "biuf":
            raise TypeError(f"they are {array.dtype}")  # numpy would read the numbers in texts
        return array.astype(np.float64).ravel()
    except (TypeError, ValueError) as err:
        raise InvalidArgument(f"{name}={show(values)} are not numbers; give a list or an array of numbers") from err
