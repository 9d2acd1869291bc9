"""Rank correlations with 95 % bootstrap intervals over configs.

A resample is described by how often each config was drawn. Ranks and pairs follow from these counts, so all resamples
share the comparisons of one set of configs, and none of them has to be sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, number_text
from workshop.resampling import LEVEL, bootstrap_estimates, percentile_interval, rounded_interval_text

N_RESAMPLES: Final = 300

_Counts = NDArray[np.int64]


def tau_with_interval(low: Floats, high: Floats) -> Interval:
    """Return Kendall's tau-b with its interval; for a few thousand pairs of values, since all are compared at once."""
    n, rng = len(low), np.random.default_rng(0)
    drawn = [np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(N_RESAMPLES)]
    counts = np.array([np.ones(n), *drawn], dtype=np.float32)  # (1 + N_RESAMPLES, n), first all configs once

    def count_pairs(signs: NDArray[np.float32]) -> Floats:
        """Return the sum over all pairs of draws of a sign, (1 + N_RESAMPLES,)."""
        return np.asarray(((counts @ signs) * counts).sum(axis=1), dtype=np.float64)

    one, other = (np.sign(np.subtract.outer(values, values)).astype(np.float32) for values in (low, high))
    with np.errstate(invalid="ignore"):
        tau = count_pairs(one * other) / np.sqrt(count_pairs(one**2) * count_pairs(other**2))
    return percentile_interval(float(tau[0]), tau[1:])


def rho_among_best(low: Floats, high: Floats, sizes: Sequence[int]) -> list[Interval]:
    """Return Spearman's rho among the best `sizes` configs by `high`, each with its interval; NaN for a size of 0.

    The best configs are chosen anew in every resample.
    """
    score = _score_among_best(low, high, sizes)
    return bootstrap_estimates(score, len(low), level=LEVEL, n_resamples=N_RESAMPLES)


def _score_among_best(low: Floats, high: Floats, sizes: Sequence[int]) -> Callable[[_Counts], list[float]]:
    best_first = np.argsort(-high, kind="stable")
    places = [np.unique(values[best_first], return_inverse=True)[1] for values in (low, high)]

    def score(drawn: _Counts) -> list[float]:
        counts = np.bincount(drawn, minlength=len(low))
        before = np.cumsum(counts) - counts  # draws of better configs
        rhos = []
        for size in sizes:
            end = np.searchsorted(before, size)
            in_top = np.minimum(counts[:end], size - before[:end])
            rhos.append(_spearman(places[0][:end], places[1][:end], in_top))
        return rhos

    return score


def _spearman(one: _Counts, other: _Counts, counts: _Counts) -> float:
    """Return Spearman's rho of configs with these places of their values, each of which counts so many times."""
    x, y = (_centred_ranks(places, counts) for places in (one, other))
    with np.errstate(invalid="ignore"):
        return float((counts * x) @ y / np.sqrt(((counts * x) @ x) * ((counts * y) @ y)))


def _centred_ranks(places: _Counts, counts: _Counts) -> Floats:
    """Return the rank of each config minus the mean rank; equal values share the mean of their ranks."""
    of_place = np.bincount(places, weights=counts)
    ranks = np.cumsum(of_place) - (of_place + counts.sum()) / 2
    return np.asarray(ranks[places])


def correlation_text(found: Interval) -> str:
    """Return a correlation with its interval; without one if it is the same in all resamples, as with itself."""
    return number_text(found.value) if found.low == found.high else rounded_interval_text(found)
