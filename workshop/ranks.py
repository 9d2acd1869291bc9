"""How well two orders agree."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from jahs.errors import InvalidArgument
from jahs.spaces.masks import refuse_masked
from jahs.spaces.parameters import is_integer, show

__all__ = ["kendall_tau", "kendall_tau_within", "persistence", "rank_biased_overlap", "spearman"]

_CHUNK: Final = 2**20  # numbers of a table that are in memory at a time
_DEEPEST: Final = 1_000_000  # places that are summed over, again and again


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Return Kendall's tau-b of paired values; NaN where it is not defined: fewer than two, or all equal, or a NaN.

    Raises:
        InvalidArgument: they are no numbers, or not of the same length.

    Example:
        >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 3)
        0.667
    """
    x, y = _paired(a, b)
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
    x, y = _paired(a, b)
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
    """Return Spearman's rank correlation of paired values, ties sharing their mean place; NaN as `kendall_tau`.

    Raises:
        InvalidArgument: they are no numbers, or not of the same length.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 3)
        0.8
    """
    x, y = _paired(a, b)
    if np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    if min(len(set(x.tolist())), len(set(y.tolist()))) < 2:
        return math.nan
    return float(stats.spearmanr(x, y).statistic)


def rank_biased_overlap(a: ArrayLike, b: ArrayLike, *, p: float) -> float:
    """Return how well two orders agree at the top, where it matters most: 1 for the same order, NaN with a NaN.

    It is the mean, over all depths, of the share of items that both orders have above that depth; depth d weighs
    p**(d - 1). The largest values come first. Ties are broken at random in either order, and this is the expectation.

    Args:
        a, b: paired values.
        p: in (0, 1), how slowly the weight falls; `persistence` finds it for a depth.

    Raises:
        InvalidArgument: they are no numbers or not of the same length, or p is out of range.

    Example:
        >>> rank_biased_overlap([4, 3, 2, 1], [3, 4, 2, 1], p=0.5)
        0.4666666666666667
    """
    x, y = _paired(a, b)
    if not _is_share(p):
        raise InvalidArgument(
            f"p={show(p)} is not a number in (0, 1); workshop.ranks.persistence finds one for a depth"
        )
    if not len(x) or np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    n = len(x)
    spans = [_span(values) for values in (x, y)]
    depths = np.arange(1, n + 1, dtype=np.float64)
    shared = np.empty(n)
    for first in range(0, n, step := max(1, _CHUNK // n)):
        depth = depths[first : first + step, None]
        # How likely each item stands among the first: its tied group fills places above..above + size.
        within = [np.clip((depth - above) / size, 0, 1) for above, size in spans]
        shared[first : first + step] = (within[0] * within[1]).sum(axis=1)
    weights = p ** (depths - 1)
    return float(weights @ (shared / depths) / weights.sum())


def persistence(depth: int, *, weight: float = 0.9) -> float:
    """Return the p with which the first `depth` places have this share of what `rank_biased_overlap` looks at.

    Raises:
        InvalidArgument: the depth is not an integer in 1..1000000, or the weight not a number in (0, 1).

    Example:
        >>> round(persistence(10, weight=0.8556), 3)
        0.9
    """
    is_depth = is_integer(depth) and 1 <= depth <= _DEEPEST
    if not is_depth or not _is_share(weight):
        allowed = f"an integer in 1..{_DEEPEST}, and a number in (0, 1), are allowed"
        raise InvalidArgument(f"depth={show(depth)}, weight={show(weight)}: {allowed}")
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _weight_of_first(depth, middle) > weight else (low, middle)
    return middle


def _is_share(value: object) -> bool:
    return isinstance(value, float | np.floating) and bool(0 < value < 1)


def _weight_of_first(depth: int, p: float) -> float:
    """The share of the weight that the first places have in endless orders (Webber, Moffat and Zobel, 2010, eq. 21)."""
    places = np.arange(1, depth, dtype=np.float64)
    rest = -math.log1p(-p) - float(np.sum(p**places / places))
    return 1 - p ** (depth - 1) + (1 - p) / p * depth * rest


def _paired(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def _span(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each item how many are larger, and how many are as large, itself included."""
    above = stats.rankdata(-values, method="min") - 1
    return above.astype(np.float64), stats.rankdata(-values, method="max") - above.astype(np.float64)
