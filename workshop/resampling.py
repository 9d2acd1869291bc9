"""Bootstrap intervals, and how far repeated measurements of a config are apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument


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
    """Return one or several scores of all rows, each with its interval over resampled rows.

    Args:
        score: returns the scores of the rows at some positions; NaN if one is undefined.
        level: share of the resampled scores inside the interval; NaN scores are left out.
        n_resamples: number of draws of `n` rows with replacement.

    Raises:
        InvalidArgument: `n_resamples` is below 1.
    """
    if n_resamples < 1:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 1")
    rng = np.random.default_rng(seed)
    resampled = np.array([np.ravel(score(rng.integers(n, size=n))) for _ in range(n_resamples)], dtype=np.float64)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)  # then the interval is NaN, too
        ends = np.nanquantile(resampled, np.round([(1 - level) / 2, (1 + level) / 2], 6), axis=0)
    scores = np.ravel(score(np.arange(n))).tolist()
    return [Interval(value=value, low=low, high=high) for value, low, high in zip(scores, *ends.tolist(), strict=True)]


def within_configs(
    config_id: NDArray[np.uint64], y: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Return how far values of the same config are apart, one entry for each config, in order of the ids.

    Returns:
        The row of its first value, its mean, its number of values minus 1, and its sum of squared deviations.
    """
    _, first, place, counts = np.unique(config_id, return_index=True, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=y) / np.maximum(counts, 1)
    squares = np.bincount(place, weights=(y - means[place]) ** 2).astype(np.float64)  # integers of no rows
    return first, means, counts - 1, squares
