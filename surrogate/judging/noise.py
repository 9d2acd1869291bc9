"""The model of the noise between trainings, and the coverage of its intervals on repeats that it has not seen.

- "seed": an interval around the mean of a config's earlier trainings, which must hold the next one; widened for the
  error of that mean. This is the noise that a query with a seed draws.
- "outcome": an interval around the prediction (`NoiseModel.interval`), which must hold one training; it includes the
  error of the surrogate.

The 90 % interval of a coverage counts every config as one observation, since rows of a config are correlated.

A noise model that is right on average can still draw too much where optimisers end, and too little where configs fail.
So its standard deviations are compared with measured ones by region of the last epoch: all repeated configs, those at
full size, those predicted best and worst.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, InvalidTable
from jahs.files.tables import Table
from jahs.models.noise import Kind, NoiseModel
from jahs.models.noise.chance import quantile
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES
from splits.split import Split
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Facts, is_full_size, unmeasured, unselected_repeats
from surrogate.judging.predicted import (
    NOISY,
    PredictedRows,
    choose_configs,
    fold_predictions,
    outcome_deviations,
    repeated_configs,
    seed_deviations,
)
from surrogate.judging.spread_fit import Deviations, fit_correlation, fit_spreads, fit_time_spread, reach
from surrogate.models.model import Surrogate
from workshop.ranks import kendall_tau
from workshop.resampling import bootstrap_estimates, within_configs

REGIONS: Final = ("all", "full size", "best tenth", "worst third")  # of repeated configs; the last two by prediction
_FEWEST: Final = 5
_MOST_FOLDS: Final = 10
_N_FOLDS: Final = 5  # for the cross-validated coverage
_LEVEL: Final = 0.9
_FEWEST_IN_REGION: Final = 3
_N_RESAMPLES: Final = 1000
_Floats = NDArray[np.float64]


def noise_of(
    measured: Measurements, split: Split, fitted: Mapping[str, Surrogate], *, seed: int, workers: int
) -> tuple[Facts | None, Facts]:
    """Return a noise model fitted to the train and valid parts, and facts about it; None and the reason if impossible.

    The facts are the coverage of its 90 % intervals on held-out repeats (by cross-validation, and on the test part if
    it has repeats), and its standard deviations compared with measured ones. Predictions come from models trained
    like `fitted`.
    """
    if missing := sorted(set(NOISY) & unmeasured(measured, split).keys()):
        return None, {"reason": f"there are no measurements of {', '.join(missing)}"}
    timed = np.unique(measured.timed_runs["config_id"])  # no metric has fewer configs
    n_configs = int(np.isin(split.parts_of(timed), (0, 1)).sum())
    try:
        n_folds = min(_MOST_FOLDS, n_configs)
        folded, test = fold_predictions(measured, split, fitted, n_folds=n_folds, seed=seed, workers=workers)
        model = fit_noise(folded, measured.task)
    except (InvalidTable, InvalidArgument) as err:
        return None, {"reason": str(err)}
    facts: Facts = {"counts": dict(model.counts)}
    facts["realism"] = realism(model, folded, among=unselected_repeats(measured))
    facts["seed_sd"] = seed_spreads(model, folded)
    try:
        facts["folds"] = cross_validated_coverage(folded, measured.task)
    except InvalidTable as err:
        facts["folds"], facts["not_held_out"] = [], str(err)
    facts["test"] = coverage(model, test) if len(repeated_configs(test)) else []
    return model.to_dict(), facts


def fit_noise(predicted: Mapping[str, PredictedRows], of_task: Task) -> NoiseModel:
    """Fit the spreads of repeats and of outcomes, and their correlation.

    Args:
        predicted: out-of-fold predictions of every metric of `NOISY`.

    Raises:
        InvalidTable: fewer than five configs have repeats.
    """
    between = {metric: seed_deviations(metric, predicted[metric]) for metric in NOISY}
    around = {metric: outcome_deviations(metric, predicted[metric]) for metric in NOISY}
    n_repeated = min(len(np.unique(between[metric].config_id)) for metric in ACCURACIES)
    if n_repeated < _FEWEST:
        raise InvalidTable(
            f"{n_repeated} configs were trained with more than one seed; noise needs {_FEWEST}; collect more"
        )
    seeds, outcomes = (fit_spreads({metric: of[metric] for metric in ACCURACIES}, of_task) for of in (between, around))
    return NoiseModel(
        task=of_task.name,
        max_epoch=of_task.max_epoch,
        accuracies={name: {"seed": seeds[name], "outcome": outcomes[name]} for name in ACCURACIES},
        runtime={"seed": fit_time_spread(between["runtime"]), "outcome": fit_time_spread(around["runtime"])},
        correlation=fit_correlation({name: between[name] for name in ACCURACIES}, seeds, of_task.max_epoch),
        counts={
            "configs": len(np.unique(around["valid_acc"].config_id)),
            "repeated_configs": n_repeated,
            "timed_repeated_configs": len(np.unique(between["runtime"].config_id)),
        },
    )


def cross_validated_coverage(predicted: Mapping[str, PredictedRows], of_task: Task) -> list[Facts]:
    """Measure `coverage` with every config held out once; five configs with repeats must remain."""
    repeated = repeated_configs(predicted)
    others = np.setdiff1d(np.unique(predicted["valid_acc"].rows.config_id), repeated)
    found = []
    for number in range(_N_FOLDS):
        held_out = np.concatenate([repeated[number::_N_FOLDS], others[number::_N_FOLDS]])
        model = fit_noise(choose_configs(predicted, held_out, is_in=False), of_task)
        here = choose_configs(predicted, held_out, is_in=True)
        found.append({metric: held(model, metric, here[metric]) for metric in NOISY})
    return summary(found)


def coverage(model: NoiseModel, predicted: Mapping[str, PredictedRows]) -> list[Facts]:
    """Return the coverage of a model's 90 % intervals on configs that it has not seen, as `summary`."""
    return summary([{metric: held(model, metric, predicted[metric]) for metric in NOISY}])


def realism(
    model: NoiseModel, predicted: Mapping[str, PredictedRows], *, among: NDArray[np.uint64] | None = None
) -> list[Facts]:
    """Compare two trainings of the repeated configs at the last epoch, as measured and as drawn around predictions.

    `among` has the ids of the configs that are compared by accuracy; None: all.
    Tau and mean absolute difference are averages over pairs of seeds, weighted by the configs that have both.
    """
    found = []
    for metric in NOISY:
        rows, mean = predicted[metric].rows, predicted[metric].mean
        is_last = (rows.epoch == model.max_epoch) & np.isin(rows.config_id, repeated_configs(predicted))
        if among is not None and metric in ACCURACIES:
            is_last &= np.isin(rows.config_id, among)
        pairs: list[tuple[int, tuple[float, ...]]] = []
        compared: set[int] = set()
        for seeds in combinations(np.unique(rows.seed[is_last]).tolist(), 2):
            of_a, of_b = (np.flatnonzero(is_last & (rows.seed == seed)) for seed in seeds)
            ids, at_a, at_b = np.intersect1d(rows.config_id[of_a], rows.config_id[of_b], return_indices=True)
            if len(ids) < 2:
                continue
            a, b = of_a[at_a], of_b[at_b]
            drawn = [model.draw({metric: mean[a]}, rows.X[a], ids, seed)[metric] for seed in seeds]
            both = ((rows.y[a], rows.y[b]), (drawn[0], drawn[1]))
            apart = [np.log(one / two) if metric == "runtime" else one - two for one, two in both]
            found_here = (*(kendall_tau(*two) for two in both), *(float(np.abs(each).mean()) for each in apart))
            pairs.append((len(ids), found_here))
            compared.update(ids.tolist())
        if not pairs:
            continue
        weights, values = np.array([n for n, _ in pairs]), np.array([each for _, each in pairs])
        means = np.average(values, axis=0, weights=weights).tolist()
        names = ("measured_tau", "drawn_tau", "measured_difference", "drawn_difference")
        found.append({"metric": metric, "n_configs": len(compared), **dict(zip(names, means, strict=True))})
    return found


def seed_spreads(model: NoiseModel, predicted: Mapping[str, PredictedRows]) -> list[Facts]:
    """Return measured and drawn standard deviations of each accuracy and region at the last epoch, in points.

    They are pooled over configs, each weighted by its degrees of freedom: its number of trainings minus 1. `ratio` is
    drawn over measured, with its 95 % bootstrap interval over configs. Regions with few repeated configs, or whose
    trainings do not differ, are left out.
    """
    found = []
    for metric in ACCURACIES:
        rows, mean = predicted[metric].rows, predicted[metric].mean
        is_last = rows.epoch == model.max_epoch
        X, y, p = rows.X[is_last], rows.y[is_last], mean[is_last]
        first, _, freedom, squares = within_configs(rows.config_id[is_last], y)
        drawn = model.deviations([metric], p[first][None], X[first])[0] ** 2 * freedom
        is_repeated = freedom > 0
        table = np.column_stack([freedom, squares, drawn])[is_repeated]
        for region, is_in in _regions(p[first][is_repeated], X[first][is_repeated]):
            if is_in.sum() >= _FEWEST_IN_REGION and table[is_in, 1].any():
                found.append({"metric": metric, "region": region, **_compared(table[is_in])})
    return found


def _regions(predicted: _Floats, X: NDArray[np.float32]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    if not len(predicted):
        return
    is_best, is_worst = predicted >= np.quantile(predicted, 0.9), predicted <= np.quantile(predicted, 1 / 3)
    yield from zip(REGIONS, (np.ones(len(predicted), np.bool_), is_full_size(X), is_best, is_worst), strict=True)


def _compared(table: _Floats) -> Facts:
    """Compare one region; `table` has degrees of freedom and sums of squares, measured and drawn, by config."""

    def ratio(at: NDArray[np.int64]) -> float:
        _, measured, drawn = table[at].sum(axis=0)
        return float(np.sqrt(drawn / measured)) if measured else np.nan

    freedom, measured, drawn = table.sum(axis=0)
    (found,) = bootstrap_estimates(ratio, len(table), level=0.95, n_resamples=_N_RESAMPLES)
    return {
        "n_configs": len(table),
        "freedom": int(freedom),
        "measured": float(np.sqrt(measured / freedom)),
        "drawn": float(np.sqrt(drawn / freedom)),
        "ratio": found.value,
        "low": found.low,
        "high": found.high,
    }


def held(model: NoiseModel, metric: str, predicted: PredictedRows) -> dict[Kind, Table]:
    """Return, for both kinds, the config of each row, whether it is inside its 90 % interval, and the interval's width.

    A first training has no "seed" interval.
    """
    low, high = model.interval({metric: predicted.mean}, predicted.rows.X, level=_LEVEL, of="outcome")[metric]
    y, around = predicted.rows.y, outcome_deviations(metric, predicted)
    order = np.lexsort((predicted.rows.seed, predicted.rows.epoch, predicted.rows.config_id))
    between = seed_deviations(metric, predicted)
    if metric == "runtime":
        limit = np.full(len(between.size), model.runtime["seed"].spread * reach(model.runtime["seed"], _LEVEL))
    else:
        spread = model.accuracies[metric]["seed"]
        limit = spread.of_rows(between.predicted, between.X) * reach(spread, _LEVEL)
    ends = model.interval({metric: between.predicted}, between.X, level=_LEVEL, of="seed")[metric]
    kinds: dict[Kind, tuple[Deviations, NDArray[np.bool_], _Floats]] = {
        "seed": (between, np.abs(between.size) <= limit, ends[1] - ends[0]),
        "outcome": (around, ((y >= low) & (y <= high))[order], (high - low)[order]),
    }
    return {
        kind: {
            "config_id": d.config_id,
            "is_inside": is_inside,
            "is_last": (d.X[:, -1] == model.max_epoch) | (metric == "runtime"),
            "width": width / d.predicted if metric == "runtime" else width,
        }
        for kind, (d, is_inside, width) in kinds.items()
    }


def summary(parts: Sequence[Mapping[str, Mapping[Kind, Table]]]) -> list[Facts]:
    """Return the coverage for each kind and metric, over all epochs and at the last one.

    `share` is the share of rows inside their interval, each config with equal weight; `low` and `high` are its 90 %
    interval. `width` is the median width of the intervals, in the metric's unit, or relative to the prediction for
    `runtime`.
    """
    found = []
    kinds: tuple[Kind, ...] = ("seed", "outcome")
    for kind in kinds:
        for metric in NOISY:
            ids, is_inside, is_last, width = (
                np.concatenate([part[metric][kind][name] for part in parts])
                for name in ("config_id", "is_inside", "is_last", "width")
            )
            for epochs, is_in in (("all", np.ones(len(ids), np.bool_)), ("last", is_last)):
                if not is_in.any() or (metric == "runtime" and epochs == "all"):
                    continue
                of_what = {"metric": metric, "kind": kind, "epochs": epochs, "n_rows": int(is_in.sum())}
                found.append({**of_what, **share_inside(ids[is_in], is_inside[is_in], width[is_in])})
    return found


def share_inside(config_id: NDArray[np.uint64], is_inside: NDArray[np.bool_], width: _Floats) -> Facts:
    """Return the share of rows inside their interval, each config with equal weight, and the median width."""
    _, place, counts = np.unique(config_id, return_inverse=True, return_counts=True)
    share = float(np.mean(np.bincount(place, weights=is_inside) / counts))
    low, high = share_interval(share, len(counts))
    return {"n_configs": len(counts), "share": share, "low": low, "high": high, "width": float(np.median(width))}


def share_interval(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 90 % interval of a share of n."""
    z = quantile(0.95)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)
