"""The teacher of the forest that ships: a Gaussian process and another forest, whose predictions it also learns.

Accuracy is a smooth function of the rates and of the size of a network. Trees are step functions, which need more
configs than a Gaussian process to approximate it; but a process predicts slowly, and more slowly with more configs.
Therefore configs are drawn, the teacher predicts their accuracies, and the forest is fitted to the measurements and to
these predictions (distillation). Decision 17 has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.models.features import FeatureSet
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from jahs.tasks.definitions import Task
from surrogate.data.rows import FEWEST_TO_FIT, Rows, features_of
from surrogate.models.boosting import ForestSettings, train_forest
from surrogate.models.curve_process import CurveProcess, fit_curves

_Floats = NDArray[np.float64]

FEWEST_CURVES: Final = 8  # configs with all epochs that a teacher needs
_FULL_SHARE: Final = 0.2
_N_EPOCHS: Final = 3  # per drawn config: the last one, and others at random
_FOREST: Final = ForestSettings(
    n_trees=1000, max_depth=4, min_child_weight=8, colsample_bylevel=0.25, learning_rate=0.04
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Drawn configs and epochs."""

    F_last: NDArray[np.float32]  # features of the configs at the last epoch, (n_configs, n_features)
    epochs: NDArray[np.int64]  # the epochs of each config, (n_configs, n_each)
    F: NDArray[np.float32]  # features at these epochs, (n_configs * n_each, n_features)


@lru_cache(maxsize=3)  # `top_fits` draws three numbers of configs in every fold
def draw_configs(of_task: Task, features: FeatureSet, n: int, epochs: tuple[int, ...]) -> Drawn:
    """Return `n` configs, the same in every call, each at the last of some epochs and at two others.

    A fifth are at full size, where conclusions are drawn.
    """
    n_full = round(_FULL_SHARE * n)
    X = np.concatenate(
        [
            encode(drawn_space.sample_columns(size, seed=seed), epochs[-1])
            for seed, (drawn_space, size) in enumerate(((space(), n - n_full), (space(LARGEST), n_full)))
            if size
        ]
    )
    others = np.random.default_rng(0).choice(epochs, size=(n, _N_EPOCHS - 1))
    config_epochs = np.column_stack([np.full(n, epochs[-1]), others])
    rows = np.repeat(X, _N_EPOCHS, axis=0)
    rows[:, -1] = config_epochs.reshape(-1)
    F_last, F = (features_of(each, features, of_task) for each in (X, rows))
    return Drawn(F_last=F_last, epochs=config_epochs, F=F)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Teacher:
    """The models fitted to the measurements, on the transformed scale: a process of the curves, and a forest."""

    epochs: tuple[int, ...]  # epochs of the curves
    curves: CurveProcess
    forest: Any  # XGBoost's types are partial

    def predict(self, drawn: Drawn) -> _Floats:
        """Return the mean of both predictions for each row of `drawn.F`."""
        columns = np.searchsorted(self.epochs, drawn.epochs)
        curves = np.take_along_axis(self.curves.predict(drawn.F_last), columns, axis=1)
        mean: _Floats = (curves.reshape(-1) + self.forest.inplace_predict(drawn.F)) / 2
        return mean


def has_enough(rows: Rows, settings: ForestSettings) -> bool:
    """Return whether a model of an accuracy can be fitted to these rows, with a teacher if the settings have one."""
    return n_whole(rows) >= FEWEST_CURVES if settings.n_distilled else rows.n_configs >= FEWEST_TO_FIT


def n_whole(rows: Rows) -> int:
    """Return the number of configs that have all epochs of the rows, from which a teacher learns."""
    pairs = np.unique(np.column_stack([rows.config_id, rows.epoch.astype(np.uint64)]), axis=0)
    _, n_epochs = np.unique(pairs[:, 0], return_counts=True)
    return int((n_epochs == len(np.unique(rows.epoch))).sum())


def teach(
    rows: Rows,
    F: NDArray[np.float32],
    y: _Floats,
    of_task: Task,
    features: FeatureSet,
    *,
    weights: _Floats | None = None,
) -> Teacher:
    """Fit a teacher to rows of an accuracy.

    The process learns from the configs that have all epochs of the rows, by the mean of their trainings.

    Args:
        F: features of the rows.
        y: their values on the transformed scale.
        weights: weights of the rows, the same for all rows of a config; None: 1. Rows of weight 0 are left out.

    Raises:
        InvalidArgument: fewer than 8 configs have all epochs; see `n_whole`.
    """
    weights = np.ones(len(rows)) if weights is None else weights
    epochs, column = np.unique(rows.epoch, return_inverse=True)
    _, first, place = np.unique(rows.config_id, return_index=True, return_inverse=True)
    total, count = np.zeros((2, len(first), len(epochs)))
    np.add.at(total, (place, column), weights * y)
    np.add.at(count, (place, column), weights)
    is_whole = (count > 0).all(axis=1)
    if (n := int(is_whole.sum())) < FEWEST_CURVES:
        raise InvalidArgument(
            f"{n} configs have all {len(epochs)} epochs; distillation needs {FEWEST_CURVES}; collect more, or give "
            "--distilled 0"
        )
    X = rows.X[first[is_whole]].copy()
    X[:, -1] = epochs[-1]
    total, count = total[is_whole], count[is_whole]
    curves = fit_curves(features_of(X, features, of_task), total / count, count[:, -1])
    forest = train_forest(F, y, _FOREST, weights=weights)
    return Teacher(epochs=tuple(epochs.tolist()), curves=curves, forest=forest)
