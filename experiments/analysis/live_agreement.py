"""Agreement of an optimiser's runs on a surrogate with its runs on real trainings."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.critical_differences import rank_agreement
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from workshop.resampling import percentile_interval

_N_DRAWS: Final = 1000


def order_agreement(trained: Floats, surrogate: Floats) -> Interval:
    """Return Kendall's tau between the orders of arms by mean error, with a bootstrap interval over seeds.

    Errors on trainings are (n_arms, n_seeds), those on the surrogate (n_arms, n_seeds, n_runs), with the same seeds.
    """
    return rank_agreement(trained, surrogate.mean(axis=2), has_same_seeds=True)


def attainable(surrogate: Floats) -> Interval:
    """Return the attainable tau: between single runs, one per seed, and the means of all runs.

    Trainings would reach it, with their number of seeds, if the surrogate were exact. The result is the mean and the
    central 95 % of draws. A draw takes the same run of every arm, since these share the noise of their first configs,
    as trainings do: of (n_arms, n_seeds, n_runs), runs with the same number have the same noise.
    """
    rng = np.random.default_rng(0)
    _, n_seeds, n_runs = surrogate.shape
    picks = rng.integers(0, n_runs, size=(_N_DRAWS, 1, n_seeds, 1))
    drawn = np.take_along_axis(surrogate[None], picks, axis=3)[..., 0].mean(axis=2)  # (n_draws, n_arms)
    means = surrogate.mean(axis=(1, 2))
    taus = np.array([rank_agreement(draw[:, None], means[:, None], has_same_seeds=True).value for draw in drawn])
    return percentile_interval(float(taus.mean()), taus)


def curve_distance(trained: Floats, surrogate: Floats) -> float:
    """Return the mean absolute difference of the mean curves, over the evaluations at which both are known.

    Errors on trainings are (n_seeds, n_evaluations), those on the surrogate (n_seeds, n_runs, n_evaluations).
    """
    differences = np.abs(trained.mean(axis=0) - surrogate.mean(axis=(0, 1)))
    known = np.isfinite(differences)
    return float(differences[known].mean()) if known.any() else float("nan")


def reversed_pairs(one: Floats, other: Floats) -> list[tuple[int, int]]:
    """Return the pairs of arms that two sets of errors, (n_arms,) each, put in opposite orders."""
    i, j = np.triu_indices(len(one), k=1)
    is_reversed: NDArray[np.bool_] = np.sign(one[i] - one[j]) * np.sign(other[i] - other[j]) < 0
    return list(zip(i[is_reversed].tolist(), j[is_reversed].tolist(), strict=True))
