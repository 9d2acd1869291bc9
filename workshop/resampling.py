"""Bootstrap intervals and their text, and how far repeated measurements of a config are apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.comparison.summaries import Interval, digits_for, number_text
from jahs.errors import InvalidArgument

LEVEL: Final = 0.95
"""The share of resampled statistics inside an interval."""

N_RESAMPLES: Final = 2000
_MOST_DIGITS: Final = 3


def percentile_interval(value: float, resampled: NDArray[np.float64]) -> Interval:
    """Return the central 95 % of resampled statistics; NaN if any of them is."""
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value=value, low=float(low), high=float(high))


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


def interval_text(found: Interval, digits: int = 2, *, sign: str = "") -> str:
    """Return an estimate with its interval if it has one, or a dash without an estimate.

    Example:
        >>> interval_text(Interval(value=0.5, low=0.25, high=0.875))
        '0.50 (0.25 to 0.88)'
    """
    value, low, high = (number_text(number, digits, sign=sign) for number in (found.value, found.low, found.high))
    return value if "–" in {value, low, high} else f"{value} ({low} to {high})"


def rounded_interval_text(found: Interval) -> str:
    """Return an estimate with its 95 % interval and the decimals that it allows, three at most.

    Example:
        >>> rounded_interval_text(Interval(value=0.4962, low=0.4512, high=0.5412))
        '0.496 (0.451 to 0.541)'
    """
    error = (found.high - found.low) / 4  # approximately the standard error
    return interval_text(found, min(digits_for(error), _MOST_DIGITS))


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
