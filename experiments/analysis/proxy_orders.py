"""How well scores of untrained networks order configs: over all, within the top, and weighted towards the top.

A missing score ranks last. Equal scores share their ranks (Spearman, Kendall) or are ordered at random (overlap).
Intervals are 95 % bootstrap intervals over configs of the mean over seeds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.files.tables import Table
from workshop.ranks import benchmark_overlap, choose_p, kendall_tau, spearman, webber_overlap
from workshop.real_landscape import known

SHARES: Final = (0.01, 0.05, 0.1)
"""Shares of the best configs: correlations are computed within them, and they get 90 % of the weight of an overlap."""

MEASURES: Final = (
    "spearman",
    "kendall",
    *(f"{name}_top_{share:g}" for share in SHARES for name in ("spearman", "kendall")),
    *(f"{form}_{share:g}" for share in SHARES for form in ("webber", "benchmark")),
)
"""Rank correlations over all and within the true top; rank-biased overlap, Webber's and the benchmark's."""

PAPER: Final[Mapping[str, tuple[float, float]]] = {
    "parameters": (0.72, 0.31),
    "grad_norm": (0.59, 0.32),
    "fisher": (0.50, 0.19),
    "jacov": (0.73, 0.11),
    "snip": (0.59, 0.30),
    "grasp": (0.51, 0.26),
    "synflow": (0.73, 0.35),
    "ntk": (-0.25, -0.07),
    "zen": (0.35, 0.32),
    "zico": (0.75, 0.40),
    "meco": (0.88, 0.37),
    "swap": (0.78, 0.36),
}
"""Spearman's rho on NAS-Bench-201's CIFAR-10, over all cells and within the top 1 %, from the zero-cost benchmark."""

_N_RESAMPLES: Final = 200
_FEWEST: Final = 5


def seeds_of(scored: Table, name: str, ids: NDArray[np.uint64]) -> Floats:
    """Return one column of scores as (n_seeds, n_configs), NaN where a config was not scored with a seed."""
    seeds, row = np.unique(scored["seed"], return_inverse=True)
    found = np.full((max(len(seeds), 1), len(ids)), math.nan)
    place = np.searchsorted(ids, scored["config_id"])
    is_wanted = np.isin(scored["config_id"], ids)
    found[row[is_wanted], place[is_wanted]] = scored[name][is_wanted]
    return found


def with_references(scores: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return scores by proxy, `ntk` with its sign reversed, and a random order, whose overlaps are expectations."""
    ntk = scores["ntk"]
    return {**scores, "ntk, least first": -ntk, "random order": np.zeros((1, ntk.shape[1]))}


def last_where_missing(scores: Floats) -> Floats:
    """Return scores with missing ones below all others."""
    return np.where(np.isnan(scores), -np.inf, scores)


def summary(
    scores: Mapping[str, Floats], truth: Floats, *, n_resamples: int = _N_RESAMPLES
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return every measure of every score, for JSON: mean over seeds, its interval, standard deviation over seeds.

    Args:
        scores: (n_seeds, n_configs) by name.
        truth: (n_configs,) accuracies.
    """
    return {name: _measures(last_where_missing(values), truth, n_resamples) for name, values in scores.items()}


def places(values: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the place of each value from the lowest, 0 on; equal ones in random order."""
    found = np.empty(len(values), np.int64)
    found[np.lexsort((rng.random(len(values)), values))] = np.arange(len(values))
    return found


def _measures(scores: Floats, truth: Floats, n_resamples: int) -> dict[str, dict[str, float | None]]:
    rng = np.random.default_rng(0)  # draws resamples, and the order of equal scores in them
    n = len(truth)
    by_seed = [_measure(each, truth) for each in scores]
    resampled = []
    for _ in range(n_resamples if n >= _FEWEST else 0):
        drawn = rng.integers(0, n, n)
        copies = np.arange(n)  # the copies of a config stay together, in the same order on both sides
        order = places(truth, rng)[drawn] * n + copies
        several = [
            _measure(each[drawn], truth[drawn], (places(each, rng)[drawn] * n + copies, order)) for each in scores
        ]
        resampled.append([_mean([each[measure] for each in several]) for measure in MEASURES])
    return {
        measure: {
            "mean": known(_mean(values := [each[measure] for each in by_seed])),
            "sd": known(float(np.std(values, ddof=1))) if len(values) > 1 else None,
            **_interval(np.array([row[i] for row in resampled])),
        }
        for i, measure in enumerate(MEASURES)
    }


def _measure(
    scores: Floats, truth: Floats, untied: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
) -> dict[str, float]:
    """Return every measure of one seed; `untied` are the same orders without ties, for overlaps."""
    n = len(truth)
    if n < _FEWEST:
        return dict.fromkeys(MEASURES, math.nan)
    found = {"spearman": spearman(scores, truth), "kendall": kendall_tau(scores, truth)}
    for share in SHARES:
        best = np.argsort(-truth, kind="stable")[: round(share * n)]
        is_enough = len(best) >= _FEWEST
        found[f"spearman_top_{share:g}"] = spearman(scores[best], truth[best]) if is_enough else math.nan
        found[f"kendall_top_{share:g}"] = kendall_tau(scores[best], truth[best]) if is_enough else math.nan
        p = _weight(n, share)
        a, b = untied or (scores, truth)
        found[f"webber_{share:g}"] = webber_overlap(a, b, p=p)
        found[f"benchmark_{share:g}"] = benchmark_overlap(a, b, p=p)
    return found


@functools.lru_cache
def _weight(n: int, share: float) -> float:
    return choose_p(n, top_share=share)


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _interval(values: Floats) -> dict[str, Any]:  # Any: number or null
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, [0.025, 0.975]).tolist() if len(values) else (None, None)
    return {"low": low, "high": high}
