"""How well scores of untrained networks order configs: over all, within the top, and weighted towards the top.

A missing score ranks last. Equal scores share their ranks (Spearman, Kendall) or are ordered at random (overlap).
Intervals are 95 % bootstrap intervals over configs of the mean over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.files.tables import Table, take
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


class PublishedFigures(NamedTuple):
    """What the zero-cost benchmark reports on NAS-Bench-201's CIFAR-10."""

    rho: float  # Spearman's rho over all cells (its figure 1)
    rho_top: float  # Spearman's rho within the top 1 % (its figure 2)
    overlap: float  # the normalised RBO (its figure 3), taken as percent; the p is not given


PAPER: Final[Mapping[str, PublishedFigures]] = {
    "parameters": PublishedFigures(0.72, 0.31, 0.00),
    "grad_norm": PublishedFigures(0.59, 0.32, 3.19),
    "fisher": PublishedFigures(0.50, 0.19, 3.03),
    "jacov": PublishedFigures(0.73, 0.11, 2.98),
    "snip": PublishedFigures(0.59, 0.30, 3.09),
    "grasp": PublishedFigures(0.51, 0.26, 2.84),
    "synflow": PublishedFigures(0.73, 0.35, 0.25),
    "ntk": PublishedFigures(-0.25, -0.07, 3.27),
    "zen": PublishedFigures(0.35, 0.32, 3.00),
    "zico": PublishedFigures(0.75, 0.40, 3.01),
    "meco": PublishedFigures(0.88, 0.37, 3.05),
    "swap": PublishedFigures(0.78, 0.36, 2.83),
}

_N_RESAMPLES: Final = 200
_FEWEST: Final = 5


def seeds_of(scored: Table, name: str, ids: NDArray[np.uint64]) -> Floats:
    """Return one column of scores as (n_seeds, n_configs), of the seeds with which all of these configs were scored.

    The table of scores and the ids of the configs are sorted by config.
    """
    scored = take(scored, np.isin(scored["config_id"], ids))
    by_seed = (scored["seed"] == seed for seed in np.unique(scored["seed"]))
    scores = [scored[name][is_seed] for is_seed in by_seed if is_seed.sum() == len(ids)]
    return np.array(scores or [np.full(len(ids), math.nan)], np.float64)


def with_references(scores: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return scores by proxy, `ntk` with its sign reversed, and a random order, whose overlaps are expectations."""
    ntk = scores["ntk"]
    return {**scores, "ntk, least first": -ntk, "random order": np.zeros((1, ntk.shape[1]))}


def last_where_missing(scores: Floats) -> Floats:
    """Return scores with missing ones below all others."""
    return np.where(np.isnan(scores), -np.inf, scores)


class ProxyAgreement(NamedTuple):
    """Agreement of scores with accuracies, for JSON."""

    # Every measure of every score: mean over seeds, its interval, standard deviation over seeds.
    found: dict[str, dict[str, dict[str, float | None]]]
    # For each overlap, how the proxies' order by it differs from their order by Spearman's rho.
    orders: list[dict[str, Any]]  # Any: JSON


def summary(scores: Mapping[str, Floats], truth: Floats, *, n_resamples: int = _N_RESAMPLES) -> ProxyAgreement:
    """Return the agreement of scores, (n_seeds, n_configs) by name, with accuracies, (n_configs,)."""
    measures, resampled = {}, {}
    for name, values in scores.items():
        measures[name], resampled[name] = _measures(last_where_missing(values), truth, n_resamples)
    names = [name for name in measures if name in PAPER or name == "naswot"]
    if not names:
        return ProxyAgreement(measures, [])
    means = [[measures[name][measure]["mean"] for measure in MEASURES] for name in names]
    values = np.array([[mean, *resampled[name]] for mean, name in zip(means, names, strict=True)], np.float64)
    orders = []
    for form, share in product(("webber", "benchmark"), SHARES):
        overlaps = values[..., MEASURES.index(f"{form}_{share:g}")]
        if (comparison := _orders(names, values[..., 0], overlaps)) is not None:
            orders.append({"form": form, "share": share, **comparison})
    return ProxyAgreement(measures, orders)


def _orders(names: Sequence[str], rho: Floats, overlap: Floats) -> dict[str, Any] | None:  # Any: JSON
    """Compare the orders of proxies by rho and by an overlap, (n_proxies, 1 + n_resamples): configs, then resamples.

    `again` is the mean tau between the orders by the overlap on one resample of the configs and on the next, `crossed`
    the one between the order by rho and the order by the overlap on the next. `apart` is the share of resamples on
    which the former is larger. None if all values are missing.
    """
    is_known = np.isfinite(rho[:, 0]) & np.isfinite(overlap[:, 0])
    if not is_known.any():
        return None
    rho, overlap = rho[is_known], overlap[is_known]
    taus = np.array([kendall_tau(*both) for both in zip(rho.T, overlap.T, strict=True)])
    again = np.array([kendall_tau(*both) for both in pairwise(overlap.T[1:])])
    crossed = np.array([kendall_tau(*both) for both in zip(rho.T[1:-1], overlap.T[2:], strict=True)])
    shares = {"again": again, "crossed": crossed, "apart": again > crossed}
    known_names = [name for name, is_in in zip(names, is_known.tolist(), strict=True) if is_in]
    return {
        "tau": known(float(taus[0])),
        **_interval(taus[1:]),
        **{name: known(values.mean()) if len(values) else None for name, values in shares.items()},
        "best_by_rho": known_names[int(np.argmax(rho[:, 0]))],
        "best_by_overlap": known_names[int(np.argmax(overlap[:, 0]))],
    }


def places(values: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the place of each value from the lowest, 0 on; equal ones in random order."""
    return np.argsort(np.lexsort((rng.random(len(values)), values)))


def _measures(
    scores: Floats, truth: Floats, n_resamples: int
) -> tuple[dict[str, dict[str, float | None]], list[Floats]]:
    """Return the measures of a score, and those on every resample; scores of as many seeds have the same resamples."""
    rng = np.random.default_rng(0)  # draws resamples, and the order of equal scores in them
    n = len(truth)
    resampled = []
    for _ in range(n_resamples if n >= _FEWEST else 0):
        drawn = rng.integers(0, n, n)
        copies = np.arange(n)  # the copies of a config stay together, in the same order on both sides
        order = places(truth, rng)[drawn] * n + copies
        by_seed = [_measure(row[drawn], truth[drawn], (places(row, rng)[drawn] * n + copies, order)) for row in scores]
        resampled.append(np.mean(by_seed, axis=0))
    found = np.array([_measure(row, truth) for row in scores])
    sds = np.std(found, axis=0, ddof=1) if len(found) > 1 else np.full(len(MEASURES), math.nan)
    intervals = [_interval(values) for values in np.reshape(resampled, (-1, len(MEASURES))).T]
    measures = {
        measure: {"mean": known(mean), "sd": known(sd), **interval}
        for measure, mean, sd, interval in zip(MEASURES, np.mean(found, axis=0), sds, intervals, strict=True)
    }
    return measures, resampled


def _measure(
    scores: Floats, truth: Floats, untied: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
) -> list[float]:
    """Return `MEASURES` of one seed; `untied` are the same orders without ties, for overlaps."""
    n = len(truth)
    if n < _FEWEST:
        return [math.nan] * len(MEASURES)
    measures = [spearman(scores, truth), kendall_tau(scores, truth)]
    for share in SHARES:
        best = np.argsort(-truth, kind="stable")[: round(share * n)]
        is_enough = len(best) >= _FEWEST
        measures += [of(scores[best], truth[best]) if is_enough else math.nan for of in (spearman, kendall_tau)]
    for share in SHARES:
        p = choose_p(n, top_share=share)
        measures += [overlap(*(untied or (scores, truth)), p=p) for overlap in (webber_overlap, benchmark_overlap)]
    return measures


def _interval(values: Floats) -> dict[str, Any]:  # Any: number or null
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, [0.025, 0.975]).tolist() if len(values) else (None, None)
    return {"low": low, "high": high}
