"""Mean, standard error, median and quartiles over seeds, and bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from experiments.analysis.logs import Floats
from jahs.errors import InvalidArgument

__all__ = ["LEVEL", "N_RESAMPLES", "Interval", "Summary", "bootstrap_interval", "percentile_interval", "summarize"]

LEVEL: Final = 0.95
N_RESAMPLES: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """Statistics over the first axis. NaN wherever any seed has no value yet: a mean over fewer seeds would mislead.

    Attributes:
        n: how many seeds.
        mean, se: and its standard error, with n - 1 degrees of freedom; NaN for a single seed.
        median, q25, q75: and quartiles.
    """

    n: int
    mean: Floats
    se: Floats
    median: Floats
    q25: Floats
    q75: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with a bootstrap interval."""

    value: float
    low: float
    high: float


def summarize(values: Floats) -> Summary:
    """Summarise (n_seeds, ...) over the seeds."""
    n = len(values)
    if not n:
        raise InvalidArgument("values: there are no seeds to summarise")
    with np.errstate(invalid="ignore"):
        q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
        se = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1:], np.nan)
    return Summary(n=n, mean=values.mean(axis=0), se=se, median=median, q25=q25, q75=q75)


def bootstrap_interval(
    values: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    level: float = LEVEL,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile interval of a statistic over seeds.

    Args:
        values: (n_seeds, ...); whole seeds are resampled.
        statistic: from (n_resamples, n_seeds, ...) to (n_resamples,).
        level: share of resampled statistics inside.
        n_resamples: how many resamples.
        seed: of the resampling.
    """
    if not len(values):
        raise InvalidArgument("values: there are no seeds to resample")
    picks = np.random.default_rng(seed).integers(0, len(values), size=(n_resamples, len(values)))
    return percentile_interval(float(statistic(values[None])[0]), statistic(values[picks]), level=level)


def percentile_interval(value: float, resampled: Floats, *, level: float = LEVEL) -> Interval:
    """The middle `level` of what was resampled; NaN if any of it is."""
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value=value, low=float(low), high=float(high))
