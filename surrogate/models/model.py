"""One fitted model for one metric of one task: settings, fit and predictions.

`runtime` is learned as CPU seconds per epoch and multiplied by the epoch, so it strictly increases. Metrics other than
accuracies are bounded by half the smallest and twice the largest training value: they stay positive, and an unseen
network may be faster or slower than all measured ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jahs.models.bounds import BoundedTransform
from jahs.models.features import DEFAULT_TIMES, FeatureSet, TimeCoefficients, feature_set
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES, METRICS
from surrogate.data.rows import Rows, features_of
from surrogate.models.boosting import ForestSettings, train_forest
from surrogate.models.teacher import teach

_HEADROOM: Final = 2.0
_DEFAULT_FEATURES: Final = {
    "latency": "latency",
    "runtime": "epoch_time",
    "n_params": "published",  # every other set holds the exact number itself
    "n_macs": "published",
}

Target = Literal["value", "per_epoch"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surrogate:
    """A fitted model."""

    # metric, task: the predicted metric, and its task.
    metric: str
    task: Task
    target: Target  # "value", or "per_epoch" where the forest's answer is multiplied by the epoch
    features: FeatureSet
    transform: BoundedTransform  # maps the forest's answers to the target
    settings: ForestSettings
    counts: dict[str, int]  # numbers of rows and configs that it was fitted to
    # The forest, XGBoost's `Booster`.
    booster: Any  # XGBoost's types are partial

    def predict(self, X: NDArray[np.float32], *, n_trees: int = 0) -> NDArray[np.float64]:
        """Return the metric for encoded configs and epochs, (n,), predicted by the first `n_trees`; 0: by all."""
        F = features_of(X, self.features, self.task)
        answers = self.booster.inplace_predict(F, iteration_range=(0, n_trees))
        values = self.transform.inverse(answers)
        return values * X[:, -1].astype(np.float64) if self.target == "per_epoch" else values

    def measured(self, rows: Rows) -> NDArray[np.float64]:
        """Return the measured values of rows in the unit of `predict`."""
        return rows.y * rows.epoch if self.target == "per_epoch" else rows.y


class Taught(NamedTuple):
    """A teacher's predictions of an accuracy; see `surrogate.models.teacher`."""

    F: NDArray[np.float32]  # features of configs and epochs, (n_rows, n_features)
    y: NDArray[np.float64]  # predicted accuracies, (n_rows,)


def fit_again(
    model: Surrogate,
    rows: Rows,
    *,
    settings: ForestSettings | None = None,
    weights: NDArray[np.float64] | None = None,
    n_bins: int = 256,
) -> Surrogate:
    """Fit a model of the same metric to other rows, with the same features and, unless others are given, settings."""
    return fit_surrogate(
        model.metric,
        rows,
        model.task,
        settings=settings or model.settings,
        times=model.features.times,
        weights=weights,
        n_bins=n_bins,
    )


def booster_json(model: Surrogate) -> dict[str, Any]:  # Any: JSON
    """Return the forest of a model as XGBoost's JSON."""
    forest: dict[str, Any] = json.loads(model.booster.save_raw("json"))
    return forest


def default_features(metric: str, times: TimeCoefficients = DEFAULT_TIMES) -> FeatureSet:
    """Return the default features of a metric's model; models of time read the `times` of their task."""
    name = _DEFAULT_FEATURES.get(metric)
    return feature_set("accuracy") if name is None else replace(feature_set(name), times=times)


def fit_transform(metric: str, y: NDArray[np.float64], *, slope: float = 1.0) -> BoundedTransform:
    """Return the transform of a metric: to an accuracy's bounds, or to the range of the values with headroom."""
    if metric in ACCURACIES:
        return BoundedTransform(lower=METRICS[metric].lower, upper=METRICS[metric].upper, slope=slope)
    return BoundedTransform(lower=y.min() / _HEADROOM, upper=y.max() * _HEADROOM, slope=slope)


def distil(metric: str, rows: Rows, of_task: Task, n: int, *, weights: NDArray[np.float64] | None = None) -> Taught:
    """Fit a teacher to the rows of an accuracy, and return its predictions for `n` drawn configs."""
    teacher = teach(rows, of_task, default_features(metric), fit_transform(metric, rows.y), weights=weights)
    return Taught(*teacher.distil(n))


def fit_surrogate(
    metric: str,
    rows: Rows,
    of_task: Task,
    *,
    settings: ForestSettings,
    times: TimeCoefficients = DEFAULT_TIMES,
    weights: NDArray[np.float64] | None = None,
    n_bins: int = 256,
    taught: Taught | None = None,
) -> Surrogate:
    """Fit a model on rows, with one thread: the same rows and settings give the same bytes on the same machine.

    Args:
        metric: a learned or exact metric; the rows of `runtime` are seconds per epoch.
        rows: see `surrogate.data.rows.assemble`.
        times: coefficients of the features of a model of time.
        weights, n_bins: see `surrogate.models.boosting.train_forest`.
        taught: what `distil` returns for the rows, if that is known; used only with `settings.n_distilled`.
    """
    features = default_features(metric, times)
    transform = fit_transform(metric, rows.y, slope=settings.slope)
    used = np.ones(len(rows), np.bool_) if weights is None else weights > 0
    counts = {"rows": int(used.sum()), "configs": len(np.unique(rows.config_id[used]))}
    F = features_of(rows.X, features, of_task)
    y = transform.forward(rows.y)
    if settings.n_distilled:
        if taught is None:
            taught = distil(metric, rows, of_task, settings.n_distilled, weights=weights)
        weights = np.concatenate([np.ones(len(y)) if weights is None else weights, np.ones(len(taught.y))])
        F, y = np.concatenate([F, taught.F]), np.concatenate([y, transform.forward(taught.y)])
    return Surrogate(
        metric=metric,
        task=of_task,
        target="per_epoch" if metric == "runtime" else "value",
        features=features,
        transform=transform,
        settings=settings,
        counts=counts,
        booster=train_forest(F, y, settings, weights=weights, n_bins=n_bins),
    )
