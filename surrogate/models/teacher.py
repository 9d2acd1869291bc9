"""The teacher of the forest that ships: a Gaussian process, whose predictions it also learns.

Accuracy is a smooth function of the rates and of the size of a network. Trees are step functions, which need more
configs than a Gaussian process to approximate it; but a process predicts slowly, and more slowly with more configs.
Therefore configs are drawn, the teacher predicts their accuracies, and the forest is fitted to the measurements and to
these predictions (distillation). Decisions 17 and 21 have the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.models.features import FeatureSet
from jahs.schema import COLUMNS
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from jahs.tasks.definitions import Task
from surrogate.data.rows import FEWEST_TO_FIT, Rows, features_of
from surrogate.models.boosting import ForestSettings
from surrogate.models.curve_process import CurveProcess, fit_curves

_Floats = NDArray[np.float64]

FEWEST_CURVES: Final = 8  # configs with all epochs that a teacher needs
_FULL_SHARE: Final = 0.15
_BEST_SHARE: Final = 0.25
_N_CANDIDATES: Final = 5  # for each of the best configs
_N_EPOCHS: Final = 3  # per drawn config: the last one, and others at random


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Teacher:
    """A process fitted to the measured curves of a task, on the transformed scale."""

    task: Task
    features: FeatureSet
    epochs: tuple[int, ...]  # epochs of the curves
    curves: CurveProcess

    def draw_configs(self, n: int) -> NDArray[np.float32]:
        """Return `n` encoded configs at the last epoch: uniform ones, uniform ones at full size, and good ones.

        The good ones are, by the teacher's prediction, the best fifth of others at full size: there optimisers end.
        """
        n_full, n_best = round(_FULL_SHARE * n), round(_BEST_SHARE * n)
        draws = ((space(), n - n_full - n_best), (space(LARGEST), n_full), (space(LARGEST), _N_CANDIDATES * n_best))
        uniform, full, candidates = (
            encode(drawn_from.sample_columns(size, seed=seed), self.epochs[-1])
            if size
            else np.empty((0, len(COLUMNS)), np.float32)
            for seed, (drawn_from, size) in enumerate(draws)
        )
        predicted = self.curves.predict_last(self._features_of(candidates)) if n_best else np.empty(0)
        best = candidates[np.argsort(-predicted, kind="stable")[:n_best]]
        return np.concatenate([uniform, full, best])

    def distil(self, n: int) -> tuple[NDArray[np.float32], _Floats]:
        """Return features and predictions of `n` drawn configs, each at the last epoch and at two random ones."""
        X = self.draw_configs(n)
        others = np.random.default_rng(0).choice(self.epochs, size=(n, _N_EPOCHS - 1))
        epochs = np.column_stack([np.full(n, self.epochs[-1]), others])
        rows = np.repeat(X, _N_EPOCHS, axis=0)
        rows[:, -1] = epochs.reshape(-1)
        curves = self.curves.predict(self._features_of(X))
        predicted = np.take_along_axis(curves, np.searchsorted(self.epochs, epochs), axis=1)
        return self._features_of(rows), predicted.reshape(-1)

    def _features_of(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return features_of(X, self.features, self.task)


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
    y: _Floats,
    of_task: Task,
    features: FeatureSet,
    *,
    weights: _Floats | None = None,
) -> Teacher:
    """Fit a teacher to rows of an accuracy.

    It learns from the configs that have all epochs of the rows, by the mean of their trainings.

    Args:
        y: values of the rows on the transformed scale.
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
    return Teacher(task=of_task, features=features, epochs=tuple(epochs.tolist()), curves=curves)
