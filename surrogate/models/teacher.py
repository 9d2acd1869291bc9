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
from jahs.models.bounds import BoundedTransform
from jahs.models.features import FeatureSet
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import Space, space
from jahs.tasks.definitions import Task
from surrogate.data.rows import FEWEST_TO_FIT, Rows, features_of
from surrogate.models.boosting import ForestSettings
from surrogate.models.curve_process import CurveProcess, fit_curves

_Floats = NDArray[np.float64]

FEWEST_CURVES: Final = 8  # configs with all epochs that a teacher needs
_FULL_SHARE: Final = 0.15
_GOOD_SHARE: Final = 0.25
_N_CANDIDATES: Final = 5  # for each good config
_N_GENERATIONS: Final = 4
_MUTATED: Final = 0.15  # share of a mutant's keys that are drawn anew
_N_EPOCHS: Final = 3  # per drawn config: the last one, and others at random


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Teacher:
    """A process fitted to the measured curves of an accuracy."""

    task: Task
    features: FeatureSet
    transform: BoundedTransform
    epochs: tuple[int, ...]  # epochs of the curves
    curves: CurveProcess  # on the transformed scale

    def draw_configs(self, n: int) -> NDArray[np.float32]:
        """Return `n` encoded configs at the last epoch: uniform ones, uniform ones at full size, and good ones.

        Half of the good ones are, by the teacher's prediction, the best tenth of others at full size. The other half
        are mutants of the best configs that an evolutionary search on the teacher finds. Optimisers end up near these,
        so the forest must also learn which of their neighbours are worse.
        """
        n_full, n_good = round(_FULL_SHARE * n), round(_GOOD_SHARE * n)
        n_mutants = n_good // 2
        uniform = self._random(space(), n - n_full - n_good, seed=0)
        full = self._random(space(LARGEST), n_full, seed=1)
        good = self._best(self._random(space(LARGEST), _N_CANDIDATES * n_good, seed=2), n_good - n_mutants)
        parents = good
        for seed in range(3, 3 + _N_GENERATIONS):
            pool = np.concatenate([parents, self._mutants(parents, n_mutants, seed=seed)])
            parents = self._best(np.unique(pool, axis=0), n_mutants)
        return np.concatenate([uniform, full, good, self._mutants(parents, n_mutants, seed=3 + _N_GENERATIONS)])

    def _random(self, drawn_from: Space, n: int, *, seed: int) -> NDArray[np.float32]:
        return encode(drawn_from.sample_columns(n, seed=seed), self.epochs[-1])

    def _best(self, X: NDArray[np.float32], n: int) -> NDArray[np.float32]:
        if not n:
            return X[:0]
        return X[np.argsort(-self.curves.predict_last(self._features_of(X)), kind="stable")[:n]]

    def _mutants(self, parents: NDArray[np.float32], n: int, *, seed: int) -> NDArray[np.float32]:
        rng = np.random.default_rng(seed)
        fresh = self._random(space(LARGEST), n, seed=seed)
        return np.where(rng.random(fresh.shape) < _MUTATED, fresh, parents[rng.integers(max(len(parents), 1), size=n)])

    def distil(self, n: int) -> tuple[NDArray[np.float32], _Floats]:
        """Return features and capped predictions of `n` drawn configs, at the last epoch and two random ones."""
        X = self.draw_configs(n)
        others = np.random.default_rng(0).choice(self.epochs, size=(n, _N_EPOCHS - 1))
        epochs = np.column_stack([np.full(n, self.epochs[-1]), others])
        rows = np.repeat(X, _N_EPOCHS, axis=0)
        rows[:, -1] = epochs.reshape(-1)
        predicted = np.take_along_axis(self._curves(X), np.searchsorted(self.epochs, epochs), axis=1)
        return self._features_of(rows), self.transform.inverse(predicted.reshape(-1))

    def predict_last(self, X: NDArray[np.float32]) -> _Floats:
        """Return capped predictions of encoded configs at the last epoch, (n,)."""
        return self.transform.inverse(self._curves(X)[:, -1])

    def _curves(self, X: NDArray[np.float32]) -> _Floats:
        return self.curves.predict(self._features_of(X), is_capped=True)

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
    of_task: Task,
    features: FeatureSet,
    transform: BoundedTransform,
    *,
    weights: _Floats | None = None,
) -> Teacher:
    """Fit a teacher to rows of an accuracy.

    It learns from the configs that have all epochs of the rows, by the mean of their trainings.

    Args:
        transform: to the scale on which curves are learned.
        weights: weights of the rows, the same for all rows of a config; None: 1. Rows of weight 0 are left out.

    Raises:
        InvalidArgument: fewer than 8 configs have all epochs; see `n_whole`.
    """
    weights = np.ones(len(rows)) if weights is None else weights
    epochs, column = np.unique(rows.epoch, return_inverse=True)
    _, first, place = np.unique(rows.config_id, return_index=True, return_inverse=True)
    total, count = np.zeros((2, len(first), len(epochs)))
    np.add.at(total, (place, column), weights * transform.forward(rows.y))
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
    return Teacher(task=of_task, features=features, transform=transform, epochs=tuple(epochs.tolist()), curves=curves)
