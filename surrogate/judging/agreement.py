"""Agreement of predictions with measurements, and of two measurements with each other.

A score uses one run of each config, the one with the first seed. The noise ceiling is the same score between two seeds
of the repeated configs, averaged over the pairs of seeds: a second training as a prediction of the first. A model can
exceed it, because its predictions have no noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.tasks.metrics import ACCURACIES, METRICS
from splits.kinship import group_name
from surrogate.data.rows import Rows, group_numbers
from surrogate.models.model import Surrogate
from workshop.numbered import FIDELITY_GROUPS
from workshop.ranks import kendall_tau, kendall_tau_within
from workshop.resampling import bootstrap_estimates

Scores: TypeAlias = dict[str, float | int | None]
"""Scores by name; None where a score is not defined, such as Kendall's tau of constant values."""

SPARSE: Final = 0.001  # the sparse tau rounds predictions to this: 0.1 points of accuracy, or 0.1 % of a time
MAIN_CUTS: Final = ("all", "last epoch", "best tenth")
"""The cuts that models are compared by; metrics without epochs have no last epoch."""

_FEWEST: Final = 3
_TOP: Final = 0.75
_N_BINS: Final = 10
_N_RESAMPLES: Final = 200
_FEWEST_PAIRS: Final = 20
_Floats = NDArray[np.float64]


def score_surrogate(fitted: Surrogate, rows: Rows, repeats: Rows, *, seed: int = 0) -> dict[str, Any]:
    """Score a model: every cut, tau by epoch and within the groups, and a 90 % interval of tau at the last epoch.

    Args:
        rows: held-out rows, as `assemble_answered` gives them.
        repeats: rows that the ceilings come from, as `assemble_repeats` gives them.
    """
    predicted = fitted.predict(rows.X)
    is_last = last_and_first(rows)
    last = rows.take(is_last)
    return {  # Any: scores by cut, and some numbers beside them
        "cuts": score_rows(fitted.metric, rows, predicted, repeats),
        "tau_by_epoch": tau_by_epoch(fitted.metric, rows, predicted, repeats),
        "calibration": calibration(rows, predicted),
        "tau_within_groups": within_groups(last, predicted[is_last]),
        "tau_interval": tau_interval(last, predicted[is_last], seed=seed),
        "n_configs": rows.n_configs,
    }


def agreement(metric: str, measured: _Floats, predicted: _Floats) -> Scores:
    """Return R2, Kendall's tau, sparse tau, RMSE, MAE, bias and calibration slope of `predicted`.

    The bias is the mean of predicted minus measured. The calibration slope is from the
    regression of measurements on predictions; it is 1 if differences are predicted neither too large nor too small.
    """
    error = predicted - measured
    total = float(((measured - measured.mean()) ** 2).sum()) if len(measured) else 0.0
    spread = float(((predicted - predicted.mean()) ** 2).sum()) if len(predicted) else 0.0
    slope = float(((predicted - predicted.mean()) * measured).sum()) / spread if spread > 0 else math.nan
    scores = {
        "r2": 1 - float((error**2).sum()) / total if total > 0 else math.nan,
        "tau": kendall_tau(measured, predicted),
        "sparse_tau": kendall_tau(measured, _rounded(metric, predicted)),
        "rmse": math.sqrt(float((error**2).mean())) if len(error) else math.nan,
        "mae": float(np.abs(error).mean()) if len(error) else math.nan,
        "bias": float(error.mean()) if len(error) else math.nan,
        "calibration_slope": slope,
    }
    return {"n": len(measured), **{name: value if math.isfinite(value) else None for name, value in scores.items()}}


def top_tau(y: _Floats, predicted: _Floats) -> float:
    """Return Kendall's tau of the measurements of the top quarter and their predictions."""
    is_top = y >= np.quantile(y, _TOP)
    return kendall_tau(y[is_top], predicted[is_top])


def first_seed(rows: Rows) -> NDArray[np.bool_]:
    """Return which rows have the first seed of their config."""
    _, place = np.unique(rows.config_id, return_inverse=True)
    first = np.full(int(place.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, place, rows.seed)
    return np.asarray(rows.seed == first[place], dtype=np.bool_)


def last_and_first(rows: Rows) -> NDArray[np.bool_]:
    """Return which rows are of the last epoch, from the first seed of their config that reached it."""
    is_last = rows.epoch == rows.epoch.max(initial=0)
    is_last[is_last] = first_seed(rows.take(is_last))
    return np.asarray(is_last, dtype=np.bool_)


def ceiling(metric: str, rows: Rows, is_in: NDArray[np.bool_] | None = None) -> Scores:
    """Return the agreement between two seeds of the repeated configs among `rows`, averaged over the pairs of seeds.

    A pair of seeds is weighted by the number of rows that both have. `n` is the number of different (config, epoch)
    pairs used; scores are None if no two seeds share three of them.

    Args:
        rows: measurements of every seed.
        is_in: mask of the rows that may be the earlier of two trainings, for cuts that depend on the measurements. The
            later one is not restricted: that would hide regression to the mean.
    """
    key = np.column_stack([rows.config_id, rows.X[:, -1].astype(np.uint64)])
    _, place = np.unique(key, axis=0, return_inverse=True)
    place = place.reshape(-1)
    counted = np.zeros(len(rows), dtype=np.bool_)  # by place
    by_pair: list[tuple[int, Scores]] = []
    for a, b in combinations(np.unique(rows.seed).tolist(), 2):
        is_a, is_b = rows.seed == a, rows.seed == b
        if is_in is not None:
            is_a &= is_in
        shared, at_a, at_b = np.intersect1d(place[is_a], place[is_b], assume_unique=True, return_indices=True)
        if len(shared) >= _FEWEST:
            counted[shared] = True
            by_pair.append((len(shared), agreement(metric, rows.y[is_a][at_a], rows.y[is_b][at_b])))
    empty = agreement(metric, np.empty(0), np.empty(0))
    if not by_pair:
        return empty
    means: Scores = {"n": int(counted.sum())}
    for name in empty.keys() - {"n", "bias", "calibration_slope"}:
        values = [(n, value) for n, scores in by_pair if (value := scores[name]) is not None]
        weight = sum(n for n, _ in values)
        means[name] = math.fsum(n * value for n, value in values) / weight if values else None
    return dict(sorted(means.items()))


def score_rows(metric: str, rows: Rows, predicted: _Floats, repeats: Rows) -> dict[str, dict[str, Scores]]:
    """Score every cut of the rows: all, the last epoch, its best tenth, each epoch band and each fidelity group.

    Args:
        predicted: the model's answer for each row.
        repeats: rows whose repeated configs give the ceiling. No model is involved in it, so they may come from every
            part of the split.

    Returns:
        The scores of the "model" and the "ceiling" of each cut.
    """
    repeat_cuts, no_rows = dict(_cuts(metric, repeats)), np.zeros(len(repeats), np.bool_)
    return {
        name: {"model": scores, "ceiling": ceiling(metric, repeats, repeat_cuts.get(name, no_rows))}
        for name, scores in score_model(metric, rows, predicted).items()
    }


def score_model(metric: str, rows: Rows, predicted: _Floats) -> dict[str, Scores]:
    """Return the scores of a model in every cut, as `score_rows` without ceilings."""
    is_first = first_seed(rows)
    masks = {name: is_in & is_first for name, is_in in _cuts(metric, rows)}
    return {name: agreement(metric, rows.y[mask], predicted[mask]) for name, mask in masks.items()}


def calibration(rows: Rows, predicted: _Floats) -> list[Scores]:
    """Return mean predictions and measurements by decile of the prediction, first seeds; fewer bins for few rows.

    `spread` is the standard error of the difference; the epochs of a config count as one observation.
    """
    is_first = first_seed(rows)
    y, predicted, ids = rows.y[is_first], predicted[is_first], rows.config_id[is_first]
    order = np.argsort(predicted, kind="stable")
    bins: list[Scores] = []
    for at in np.array_split(order, max(1, min(_N_BINS, len(order) // _FEWEST))):
        error = predicted[at] - y[at]
        config = np.unique(ids[at], return_inverse=True)[1]
        sums = np.bincount(config, error - error.mean())
        n = len(sums)
        spread = math.sqrt(float((sums**2).sum()) * n / (n - 1)) / len(at) if n > 1 else None
        means = {"predicted": float(predicted[at].mean()), "measured": float(y[at].mean())}
        bins.append({"n": len(at), **means, "spread": spread})
    return bins


def tau_by_epoch(metric: str, rows: Rows, predicted: _Floats, repeats: Rows) -> list[Scores]:
    """Return Kendall's tau at every epoch, first seeds, beside its noise ceiling."""
    is_first = first_seed(rows)
    taus: list[Scores] = []
    for epoch in np.unique(rows.epoch).tolist():
        is_in = is_first & (rows.epoch == epoch)
        tau = kendall_tau(rows.y[is_in], predicted[is_in])
        bound = ceiling(metric, repeats.take(repeats.epoch == epoch))["tau"]
        taus.append({"epoch": epoch, "n": int(is_in.sum()), "tau": None if math.isnan(tau) else tau, "ceiling": bound})
    return taus


def within_groups(rows: Rows, predicted: _Floats) -> float | None:
    """Return Kendall's tau within fidelity groups, weighted by their pairs, of first seeds at one epoch.

    None if too few pairs share a group.
    """
    groups = group_numbers(rows.X)
    sizes = np.unique(groups, return_counts=True)[1]
    tau = kendall_tau_within(rows.y, predicted, groups)
    return None if math.isnan(tau) or (sizes * (sizes - 1) // 2).sum() < _FEWEST_PAIRS else tau


def tau_interval(rows: Rows, predicted: _Floats, *, seed: int) -> tuple[float, float] | None:
    """Return a 90 % bootstrap interval of Kendall's tau over rows, one of each config; None if it is not defined."""
    (tau,) = bootstrap_estimates(
        lambda at: kendall_tau(rows.y[at], predicted[at]), len(rows), level=0.9, n_resamples=_N_RESAMPLES, seed=seed
    )
    return None if math.isnan(tau.low) else (tau.low, tau.high)


def epoch_bands(max_epoch: int) -> list[tuple[int, int]]:
    """Return the first epoch, then quarters of the rest, as (first, last)."""
    edges = np.unique(np.rint(np.linspace(1, max_epoch, 5)).astype(int)).tolist()
    return [(1, 1), *((low + 1, high) for low, high in pairwise(edges))]


def best_tenth(metric: str, rows: Rows) -> NDArray[np.bool_]:
    """Return which rows reach the best tenth of the configs, whose threshold is set by first seeds."""
    y = rows.y if METRICS[metric].direction == "max" else -rows.y
    return np.asarray(y >= np.quantile(y[first_seed(rows)], 0.9), dtype=np.bool_)


def _cuts(metric: str, rows: Rows) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    yield "all", np.ones(len(rows), dtype=np.bool_)
    if not len(rows):
        return
    is_last = np.ones(len(rows), dtype=np.bool_)
    if METRICS[metric].by_epoch:
        last = int(rows.epoch.max())
        is_last = rows.epoch == last
        yield "last epoch", is_last
        for first, final in epoch_bands(last):
            yield f"epochs {first}-{final}", (rows.epoch >= first) & (rows.epoch <= final)
    is_best = np.zeros(len(rows), dtype=np.bool_)
    is_best[is_last] = best_tenth(metric, rows.take(is_last))
    yield "best tenth", is_best
    groups = group_numbers(rows.X)
    for group in np.unique(groups[is_last]).tolist():
        yield group_name(FIDELITY_GROUPS[group]), (groups == group) & is_last


def _rounded(metric: str, values: _Floats) -> _Floats:
    if metric in ACCURACIES:
        return np.rint(values / (100 * SPARSE)) * (100 * SPARSE)
    return np.rint(np.log(values) / SPARSE) if len(values) else values
