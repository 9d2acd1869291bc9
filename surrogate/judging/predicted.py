"""Out-of-fold predictions, and the deviations of trainings from them and from each other.

The models are an ensemble over folds (NAS-Bench-301, section 4.3). Each config is predicted by the model that was
fitted without it; a test config by the mean of all.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.models.features import DEFAULT_TIMES, TimeCoefficients
from jahs.models.noise.spread import to_line
from jahs.schema import SPLIT_PARTS
from jahs.tasks.metrics import ACCURACIES
from splits.split import Split
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Rows, assemble, by_part, join_rows
from surrogate.judging.agreement import first_seed
from surrogate.judging.spread_fit import Deviations
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import held_out_rows
from surrogate.models.model import fit_surrogate
from workshop.jobs import in_processes

NOISY: Final = (*ACCURACIES, "runtime")
"""The metrics that differ between trainings of one config."""

FOLDED: Final = ("train", "valid")
"""The parts of a split that are divided into folds."""

_log = logging.getLogger(__name__)
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predicted:
    """Rows of a metric and their out-of-fold predictions; `runtime` in seconds per epoch."""

    rows: Rows
    mean: _Floats

    def take(self, rows: NDArray[np.bool_ | np.integer]) -> Predicted:
        """Return some rows: positions or a mask."""
        return Predicted(rows=self.rows.take(rows), mean=self.mean[rows])


def fold_predictions(
    measured: Measurements,
    split: Split,
    *,
    n_folds: int = 10,
    settings: Mapping[str, ForestSettings],
    times: TimeCoefficients = DEFAULT_TIMES,
    seed: int = 0,
    workers: int = 1,
) -> dict[str, dict[str, Predicted]]:
    """Return out-of-fold predictions of every accuracy and runtime, by part.

    The train and valid parts are divided into folds; a test config is predicted by the mean of all models.

    Raises:
        InvalidArgument: more folds than configs.
    """
    found: dict[str, dict[str, Predicted]] = {}
    for metric in NOISY:
        parts = by_part(assemble(metric, measured), split)
        rows, test = join_rows([parts[part] for part in FOLDED]), parts["test"]
        held_out = list(held_out_rows(measured, rows, n_folds, seed=seed))
        how = {"metric": metric, "of_task": measured.task, "settings": settings[metric], "times": times}
        calls = [{**how, "rows": rows.take(~is_out), "asked": (rows.X[is_out], test.X)} for is_out in held_out]
        mean, of_test = np.empty(len(rows)), np.zeros(len(test))
        for is_out, predicted in zip(held_out, in_processes(_fit_and_predict, calls, workers=workers), strict=True):
            mean[is_out] = predicted[0]
            of_test += predicted[1] / n_folds
        _log.info("%s: %d folds", metric, n_folds)
        every = Predicted(rows=rows, mean=_per_epoch(metric, rows, mean))
        side = split.parts_of(rows.config_id)
        found[metric] = {part: every.take(side == SPLIT_PARTS.index(part)) for part in FOLDED}
        found[metric]["test"] = Predicted(rows=test, mean=_per_epoch(metric, test, of_test))
    return found


def _fit_and_predict(*, asked: Sequence[NDArray[np.float32]], **fit: Any) -> list[_Floats]:  # Any: of `fit_surrogate`
    fitted = fit_surrogate(**fit)
    return [fitted.predict(X) if len(X) else np.empty(0) for X in asked]


def join_predicted(parts: Sequence[Predicted]) -> Predicted:
    """Put the rows of several parts together."""
    return Predicted(rows=join_rows([part.rows for part in parts]), mean=np.concatenate([part.mean for part in parts]))


def seed_deviations(metric: str, predicted: Predicted) -> Deviations:
    """Return each repeat's deviation from the mean of the earlier ones, scaled to the deviation of one training."""
    rows = predicted.rows
    values = _values(metric, rows.y)
    order = np.lexsort((rows.seed, rows.epoch if metric != "runtime" else rows.seed * 0, rows.config_id))
    ids, epoch = rows.config_id[order], rows.epoch[order]
    same = (ids[1:] == ids[:-1]) & ((epoch[1:] == epoch[:-1]) | (metric == "runtime"))
    first = np.flatnonzero(np.append(True, ~same))[: len(order)]
    counts = np.diff(np.append(first, len(order)))
    place = np.arange(len(order)) - np.repeat(first, counts)
    total = np.cumsum(values[order])
    before = np.repeat(total[first] - values[order][first], counts)
    earlier = (total - values[order] - before)[place > 0]
    place, at = place[place > 0], order[place > 0]
    return Deviations(
        metric=metric,
        size=(values[at] - earlier / place) * np.sqrt(place / (place + 1)),
        predicted=predicted.mean[at],
        X=rows.X[at],
        unit=_units(rows.config_id[at], place),
        config_id=rows.config_id[at],
    )


def outcome_deviations(metric: str, predicted: Predicted) -> Deviations:
    """Return each training's deviation from its prediction."""
    order = np.lexsort((predicted.rows.seed, predicted.rows.epoch, predicted.rows.config_id))
    predicted = predicted.take(order)
    rows = predicted.rows
    return Deviations(
        metric=metric,
        size=_values(metric, rows.y) - _values(metric, predicted.mean),
        predicted=predicted.mean,
        X=rows.X,
        unit=np.unique(rows.config_id, return_inverse=True)[1].reshape(-1).astype(np.int64),
        config_id=rows.config_id,
    )


def repeated_configs(predicted: Mapping[str, Predicted]) -> NDArray[np.uint64]:
    """Return the configs with more than one seed, in order."""
    rows = predicted["valid_acc"].rows
    return np.unique(rows.config_id[~first_seed(rows)])


def choose_configs(predicted: Mapping[str, Predicted], ids: NDArray[np.uint64], *, is_in: bool) -> dict[str, Predicted]:
    """Return the rows of some configs, or of all others."""
    return {metric: p.take(np.isin(p.rows.config_id, ids) == is_in) for metric, p in predicted.items()}


def _values(metric: str, y: _Floats) -> _Floats:
    return np.log(y) if metric == "runtime" else to_line(np.clip(y, 0.0, 100.0))


def _per_epoch(metric: str, rows: Rows, mean: _Floats) -> _Floats:
    return mean / rows.epoch if metric == "runtime" else mean


def _units(config_id: NDArray[np.uint64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    of_config = np.unique(config_id, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return of_config * (int(place.max(initial=0)) + 1) + place
