"""Bootstrap intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument


def bootstrap_interval(
    score: Callable[[NDArray[np.int64]], ArrayLike], n: int, *, level: float, n_resamples: int, seed: int = 0
) -> NDArray[Any]:  # Any: floats of the score's shape, with one more axis in front
    """Return the lower and the upper end of the interval of a score over resampled rows.

    Args:
        score: returns the score of the rows at some positions; NaN if it is undefined.
        level: share of the resampled scores inside the interval; NaN scores are left out.
        n_resamples: number of draws of `n` rows with replacement.

    Raises:
        InvalidArgument: `n_resamples` is below 1.
    """
    if n_resamples < 1:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 1")
    rng = np.random.default_rng(seed)
    scores = np.array([score(rng.integers(n, size=n)) for _ in range(n_resamples)], dtype=np.float64)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)  # then the interval is NaN, too
        return np.asarray(np.nanquantile(scores, np.round([(1 - level) / 2, (1 + level) / 2], 6), axis=0))


def bootstrap_agreement(
    measure: Callable[[NDArray[np.float64], NDArray[np.float64]], float],
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    *,
    n_resamples: int,
) -> Interval:
    """Return a measure of paired values, such as `workshop.ranks.spearman`, with its 95 % interval over pairs."""
    (interval,) = bootstrap_estimates(lambda at: measure(a[at], b[at]), len(a), level=0.95, n_resamples=n_resamples)
    return interval


def bootstrap_estimates(
    score: Callable[[NDArray[np.int64]], ArrayLike], n: int, *, level: float, n_resamples: int, seed: int = 0
) -> list[Interval]:
    """Return one or several scores of all rows, each with its `bootstrap_interval`."""
    values = np.ravel(score(np.arange(n)))
    ends = bootstrap_interval(score, n, level=level, n_resamples=n_resamples, seed=seed).reshape(2, -1)
    return [
        Interval(value=value, low=low, high=high)
        for value, low, high in zip(values.tolist(), *ends.tolist(), strict=True)
    ]
