"""One fitted model for one metric of one task: settings, fit and predictions.

`runtime` is learned as CPU seconds per epoch and multiplied by the epoch, so it strictly increases. Metrics other than
accuracies are bounded by half the smallest and twice the largest training value: they stay positive, and an unseen
network may be faster or slower than all measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.models.bounds import BoundedTransform
from jahs.models.features import (
    DEFAULT_TIMES,
    FeatureBuilder,
    FeatureSet,
    TimeCoefficients,
    feature_set,
)
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES, METRICS
from surrogate.data.rows import Rows

_HEADROOM: Final = 2.0
_MOST_WEIGHT: Final = 100.0
_TOP_POWER: Final = 4
_DEFAULT_FEATURES: Final = {
    "latency": "latency",
    "runtime": "epoch_time",
    "n_params": "published",  # every other set holds the exact number itself
    "n_macs": "published",
}

Target = Literal["value", "per_epoch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestSettings:
    """Hyperparameters of a forest. The defaults are those that JAHS-Bench-201's search starts from.

    Attributes:
        n_trees, max_depth: size of the forest.
        min_child_weight, colsample_bytree, colsample_bylevel, learning_rate: as XGBoost names them.
        slope: of the target's inverse sigmoid (`sigmoid_k` in JAHS-Bench-201).
        seed: of the columns that are drawn, where a colsample is below 1.
        top_weight: additional weight of the best row of an epoch (`top_weights`).
    """

    n_trees: int = 500
    max_depth: int = 6
    min_child_weight: int = 1
    colsample_bytree: float = 1.0
    colsample_bylevel: float = 1.0
    learning_rate: float = 0.3
    slope: float = 1.0
    seed: int = 0
    top_weight: float = 0.0

    def __post_init__(self) -> None:
        """Refuse values that XGBoost refuses later or misreads, every fault at once."""
        faults = []
        for name, least, most in (
            ("n_trees", 1, 10_000),
            ("max_depth", 1, 15),
            ("min_child_weight", 1, 1_000_000),
            ("seed", 0, 2**31 - 1),
        ):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                faults.append(f"{name}={value!r} must be an integer in {least}..{most}")
        for name in ("colsample_bytree", "colsample_bylevel", "learning_rate", "slope"):
            limit = 100.0 if name == "slope" else 1.0
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= limit:
                faults.append(f"{name}={value!r} must be a number in (0, {limit:g}]")
        value = self.top_weight
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_WEIGHT:
            faults.append(f"top_weight={value!r} must be a number in [0, {_MOST_WEIGHT:g}]")
        if faults:
            raise InvalidArgument("\n".join(faults))

    @classmethod
    def from_dict(cls, given: Mapping[str, object]) -> ForestSettings:
        """Return the settings of a mapping, the defaults where it has none.

        Raises:
            InvalidArgument: a name does not exist or a value is out of range.
        """
        names = [field.name for field in fields(cls)]
        if unknown := [name for name in given if name not in names]:
            raise InvalidArgument(
                f"{', '.join(map(repr, unknown))} is not a setting; the settings are {', '.join(names)}"
            )
        return cls(**given)  # type: ignore[arg-type]  # __post_init__ checks them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surrogate:
    """A fitted model.

    Attributes:
        metric, task: of the predictions.
        target: "value", or "per_epoch" where the forest's answer is multiplied by the epoch.
        transform: from the forest's answers to the target.
        counts: rows and configs that it was fitted to.
        booster: the forest, XGBoost's `Booster`.
    """

    metric: str
    task: Task
    target: Target
    features: FeatureSet
    transform: BoundedTransform
    settings: ForestSettings
    counts: dict[str, int]
    booster: Any  # XGBoost's types are partial

    def predict(self, X: NDArray[np.float32], *, n_trees: int = 0) -> NDArray[np.float64]:
        """Return the metric for encoded configs and epochs, (n,), by the first `n_trees` alone; 0: by all trees."""
        F = FeatureBuilder(self.features, self.task).build(X)
        answers = self.booster.inplace_predict(F, iteration_range=(0, n_trees))
        values = self.transform.inverse(answers)
        return values * X[:, -1].astype(np.float64) if self.target == "per_epoch" else values

    def measured(self, rows: Rows) -> NDArray[np.float64]:
        """Return the values that predictions are compared with, of rows like those that it was fitted to."""
        return rows.y * rows.epoch if self.target == "per_epoch" else rows.y


def default_features(metric: str, times: TimeCoefficients = DEFAULT_TIMES) -> FeatureSet:
    """Return the default features of a metric's model; models of time read the `times` of their task."""
    name = _DEFAULT_FEATURES.get(metric)
    return feature_set("accuracy") if name is None else replace(feature_set(name), times=times)


def fit_transform(metric: str, y: NDArray[np.float64], *, slope: float = 1.0) -> BoundedTransform:
    """Return the transform of a metric's training values: within an accuracy's bounds, or the values' with headroom."""
    if metric in ACCURACIES:
        return BoundedTransform.fit(y, lower=METRICS[metric].lower, upper=METRICS[metric].upper, slope=slope)
    return BoundedTransform.fit(y, lower=y.min() / _HEADROOM, upper=y.max() * _HEADROOM, slope=slope)


def fit_surrogate(
    metric: str,
    rows: Rows,
    of_task: Task,
    *,
    settings: ForestSettings,
    times: TimeCoefficients = DEFAULT_TIMES,
    weights: NDArray[np.float64] | None = None,
    n_bins: int = 256,
) -> Surrogate:
    """Fit a model on rows, with one thread: the same rows and settings give the same bytes.

    Args:
        metric: a learned or exact metric; the rows of `runtime` are seconds per epoch.
        rows: see `surrogate.data.rows.assemble`.
        times: of the metric's own features.
        weights: of the rows, (n_rows,); None: 1. Whatever they are, splits have the same thresholds.
        n_bins: thresholds of a column, about.
    """
    import xgboost

    features = default_features(metric, times)
    transform = fit_transform(metric, rows.y, slope=settings.slope)
    F = FeatureBuilder(features, of_task).build(rows.X)
    y = transform.forward(rows.y)
    top = top_weights(rows, settings.top_weight) if settings.top_weight else None
    used = np.ones(len(y), np.bool_) if weights is None else weights > 0
    data = xgboost.QuantileDMatrix(F, y, weight=top, nthread=1, max_bin=n_bins)
    if weights is not None:
        counted = (weights if top is None else weights * top)[used]
        data = xgboost.QuantileDMatrix(F[used], y[used], weight=counted, nthread=1, max_bin=n_bins, ref=data)
    parameters: dict[str, object] = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "base_score": 0.0,  # the middle of the bounds; a mean would be one more float to carry
        "nthread": 1,
        "seed": settings.seed,
        "max_depth": settings.max_depth,
        "min_child_weight": settings.min_child_weight,
        "colsample_bytree": settings.colsample_bytree,
        "colsample_bylevel": settings.colsample_bylevel,
        "learning_rate": settings.learning_rate,
        "max_bin": n_bins,
    }
    return Surrogate(
        metric=metric,
        task=of_task,
        target="per_epoch" if metric == "runtime" else "value",
        features=features,
        transform=transform,
        settings=settings,
        counts={"rows": int(used.sum()), "configs": len(np.unique(rows.config_id[used]))},
        booster=xgboost.train(parameters, data, settings.n_trees),
    )


def top_weights(rows: Rows, weight: float) -> NDArray[np.float64]:
    """Return 1 + weight * q**4 for each row, where q in [0, 1] is its rank by value among the rows of its epoch."""
    q = np.empty(len(rows))
    for epoch in np.unique(rows.epoch).tolist():
        is_in = rows.epoch == epoch
        y, ordered = rows.y[is_in], np.sort(rows.y[is_in])
        q[is_in] = (np.searchsorted(ordered, y) + np.searchsorted(ordered, y, side="right")) / (2 * len(y))
    return 1 + weight * q**_TOP_POWER
