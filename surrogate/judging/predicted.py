"""Out-of-fold predictions, and the deviations of trainings from them and from each other.

The models are an ensemble over folds (NAS-Bench-301, section 4.3). Each config is predicted by the model that was
fitted without it; a test config by the mean of all.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.models.noise.spread import to_line
from jahs.tasks.metrics import ACCURACIES
from splits.split import Split
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Rows, assemble, by_part, join_rows
from surrogate.judging.agreement import first_seed
from surrogate.judging.spread_fit import Deviations
from surrogate.models.fitting import held_out_rows
from surrogate.models.model import Surrogate, fit_again
from workshop.jobs import in_processes

NOISY: Final = (*ACCURACIES, "runtime")  # the metrics that differ between trainings of one config
_log = logging.getLogger(__name__)
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictedRows:
    """Rows of a metric and their out-of-fold predictions; `runtime` in seconds per epoch."""

    rows: Rows
    mean: _Floats

    def take(self, rows: NDArray[np.bool_ | np.integer]) -> PredictedRows:
        """Return some rows: positions or a mask."""
        return PredictedRows(rows=self.rows.take(rows), mean=self.mean[rows])


def fold_predictions(
    measured: Measurements, split: Split, fitted: Mapping[str, Surrogate], *, n_folds: int, seed: int, workers: int
) -> tuple[dict[str, PredictedRows], dict[str, PredictedRows]]:
    """Return predictions of every accuracy and runtime: out of fold for train and valid parts, and for the test part.

    The models are fitted again as `fitted` were; a test config is predicted by the mean of all models.

    Raises:
        InvalidArgument: more folds than configs.
    """
    folded, tested = {}, {}
    for metric in NOISY:
        parts = by_part(assemble(metric, measured), split)
        rows, test = join_rows([parts["train"], parts["valid"]]), parts["test"]
        held_out = list(held_out_rows(measured, rows, n_folds, seed=seed))
        calls = [
            {"model": fitted[metric], "rows": rows.take(~is_out), "inputs": (rows.X[is_out], test.X)}
            for is_out in held_out
        ]
        mean, test_mean = np.empty(len(rows)), np.zeros(len(test))
        for is_out, predicted in zip(held_out, in_processes(_fit_and_predict, calls, workers=workers), strict=True):
            mean[is_out] = predicted[0]
            test_mean += predicted[1] / n_folds
        _log.info("%s: %d folds", metric, n_folds)
        folded[metric] = PredictedRows(rows=rows, mean=_per_epoch(metric, rows, mean))
        tested[metric] = PredictedRows(rows=test, mean=_per_epoch(metric, test, test_mean))
    return folded, tested


def _fit_and_predict(model: Surrogate, rows: Rows, inputs: Sequence[NDArray[np.float32]]) -> list[_Floats]:
    fitted = fit_again(model, rows)
    return [fitted.predict(X) if len(X) else np.empty(0) for X in inputs]


def seed_deviations(metric: str, predicted: PredictedRows) -> Deviations:
    """Return each repeat's deviation from the mean of the earlier ones, scaled to the deviation of one training."""
    rows = predicted.rows
    values = _values(metric, rows.y)
    order = np.lexsort((rows.seed, rows.epoch if metric != "runtime" else rows.seed * 0, rows.config_id))
    ids, epoch = rows.config_id[order], rows.epoch[order]
    is_same = (ids[1:] == ids[:-1]) & ((epoch[1:] == epoch[:-1]) | (metric == "runtime"))
    first = np.flatnonzero(np.append(True, ~is_same))[: len(order)]
    counts = np.diff(np.append(first, len(order)))
    place = np.arange(len(order)) - np.repeat(first, counts)
    total = np.cumsum(values[order])
    before = np.repeat(total[first] - values[order][first], counts)
    earlier = (total - values[order] - before)[place > 0]
    place, at = place[place > 0], order[place > 0]
    return Deviations(
        size=(values[at] - earlier / place) * np.sqrt(place / (place + 1)),
        predicted=predicted.mean[at],
        X=rows.X[at],
        unit=_numbers(rows.config_id[at]) * (int(place.max(initial=0)) + 1) + place,
        config_id=rows.config_id[at],
    )


def outcome_deviations(metric: str, predicted: PredictedRows) -> Deviations:
    """Return each training's deviation from its prediction."""
    order = np.lexsort((predicted.rows.seed, predicted.rows.epoch, predicted.rows.config_id))
    predicted = predicted.take(order)
    rows = predicted.rows
    return Deviations(
        size=_values(metric, rows.y) - _values(metric, predicted.mean),
        predicted=predicted.mean,
        X=rows.X,
        unit=_numbers(rows.config_id),
        config_id=rows.config_id,
    )


def repeated_configs(predicted: Mapping[str, PredictedRows]) -> NDArray[np.uint64]:
    """Return the configs with more than one seed, in order."""
    rows = predicted["valid_acc"].rows
    return np.unique(rows.config_id[~first_seed(rows)])


def choose_configs(
    predicted: Mapping[str, PredictedRows], ids: NDArray[np.uint64], *, is_in: bool
) -> dict[str, PredictedRows]:
    """Return the rows of some configs, or of all others."""
    return {metric: p.take(np.isin(p.rows.config_id, ids) == is_in) for metric, p in predicted.items()}


def _values(metric: str, y: _Floats) -> _Floats:
    return np.log(y) if metric == "runtime" else to_line(np.clip(y, 0.0, 100.0))


def _per_epoch(metric: str, rows: Rows, mean: _Floats) -> _Floats:
    return mean / rows.epoch if metric == "runtime" else mean


def _numbers(config_id: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of the config of each row."""
    return np.unique(config_id, return_inverse=True)[1].astype(np.int64)
