"""Whether cheap trainings rank configs as expensive ones do: between epochs, and between values of N, W, Resolution.

A config is trained in one fidelity group, so no config has two values of N. Models are compared instead: an additive
model of validation accuracy (cell operations, powers of the rates' logarithms up to 3, activation, augmentation and
fidelity group) is fitted to the configs of each value and ranks the same 2,000 random configs. Tau between two rankings
says whether the same choices are good at both values. Additive models have no interactions, so it does not say how far
single configs change ranks. Few configs bias it down; tau between models of two halves of one value shows by how much.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.files.tables import take
from jahs.schema import OPS
from jahs.spaces.columns import Columns
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.space import space
from pipeline.describe.measured import Measured
from workshop.ranks import kendall_tau, kendall_tau_within

FIDELITIES: Final = ("N", "W", "Resolution")
FEWEST: Final = 60
"""Configs that each value needs to be compared."""

_N_ASKED: Final = 2000
_N_HALVINGS: Final = 10
_RIDGE: Final = 3.0
_FEWEST_OF_GROUP: Final = 4


def epoch_agreement(measured: Measured) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Kendall's tau of validation accuracy between every epoch and the last one.

    Returns:
        Over all configs, and within fidelity groups, averaged by numbers of pairs; NaN where no group has four configs.
    """
    curves, last = measured.curves["valid_acc"], measured.final
    within = [kendall_tau_within(values, last, measured.group, fewest=_FEWEST_OF_GROUP) for values in curves.T]
    return np.array([kendall_tau(values, last) for values in curves.T]), np.array(within)


def value_agreement(measured: Measured, key: str, *, seed: int = 0) -> NDArray[np.float64] | None:
    """Return tau between the values of a fidelity, (3, 3), with halves of one on the diagonal; None for few configs."""
    choices = PARAMETERS[key].choices
    members = [np.flatnonzero(measured.configs[key] == choice) for choice in choices]
    if min(map(len, members)) < FEWEST:
        return None
    asked = _features(space().sample_columns(_N_ASKED, seed=seed))
    answers = [asked @ _fit(measured, chosen) for chosen in members]
    found = np.full((len(choices), len(choices)), np.nan)
    for i, j in combinations(range(len(choices)), 2):
        found[i, j] = found[j, i] = kendall_tau(answers[i], answers[j])
    chance = np.random.default_rng(seed)
    for i, chosen in enumerate(members):
        taus = []
        for _ in range(_N_HALVINGS):
            order = chance.permutation(chosen)
            halves = [asked @ _fit(measured, order[half::2]) for half in (0, 1)]
            taus.append(kendall_tau(*halves))
        found[i, i] = float(np.mean(taus))
    return found


def _fit(measured: Measured, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Coefficients of the features in a ridge regression that also knows the group of each config."""
    F = _features(dict(take(measured.configs, rows)))
    of_group = (measured.group[rows][:, None] == np.arange(27)).astype(np.float64)
    X, y = np.hstack([F, of_group]), measured.final[rows]
    coefficients = np.linalg.solve(X.T @ X + _RIDGE * np.eye(X.shape[1]), X.T @ (y - y.mean()))
    return np.asarray(coefficients[: F.shape[1]])


def _features(configs: Columns) -> NDArray[np.float64]:
    """Return the features of the additive model, (n_configs, 40)."""
    columns = [configs[key] == choice for key in (*OPS, "Activation") for choice in PARAMETERS[key].choices]
    columns.append(configs["TrivialAugment"])
    for key in ("LearningRate", "WeightDecay"):
        rate = np.log10(configs[key].astype(np.float64))
        low, high = np.log10(PARAMETERS[key].lower), np.log10(PARAMETERS[key].upper)
        centred = (2 * rate - low - high) / (high - low)
        columns += [centred**power for power in (1, 2, 3)]
    return np.column_stack(columns).astype(np.float64)
