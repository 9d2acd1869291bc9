"""The standard deviation between trainings of one config, as measured and as a noise model draws it, by region.

A noise model that is right on average can still draw too much where optimisers end, and too little where configs fail.
So each region of the last epoch is compared: all repeated configs, those at full size, those predicted best and worst.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.models.noise import NoiseModel
from jahs.tasks.metrics import ACCURACIES
from surrogate.data.rows import Facts, is_full_size
from surrogate.judging.predicted import PredictedRows
from workshop.resampling import bootstrap_estimates, within_configs

REGIONS: Final = ("all", "full size", "best tenth", "worst third")  # the regions; the last two by prediction
_FEWEST: Final = 3  # repeated configs that a region needs
_N_RESAMPLES: Final = 1000
_Floats = NDArray[np.float64]


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
            if is_in.sum() >= _FEWEST and table[is_in, 1].any():
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
