"""How far an optimiser's runs on a surrogate agree with its runs on real trainings."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.comparison.ranks import rank_agreement
from jahs.comparison.summaries import Interval, percentile_interval

_N_DRAWS: Final = 1000


def order_agreement(trained: Floats, surrogate: Floats) -> Interval:
    """Return Kendall's tau between the orders of arms by mean error, with a bootstrap interval over seeds.

    Args:
        trained: (n_arms, n_seeds).
        surrogate: (n_arms, n_seeds, n_runs), with the same seeds.
    """
    return rank_agreement(trained, surrogate.mean(axis=2), has_same_seeds=True)


def attainable(surrogate: Floats) -> Interval:
    """Return the tau that chance alone allows: of one run per seed with the means of all runs.

    It is what trainings would reach if the surrogate were exact, with their number of seeds: the mean, and the central
    95 % of draws. A draw takes the same run of every arm, for these share the noise of their first configs, as
    trainings do.

    Args:
        surrogate: (n_arms, n_seeds, n_runs); runs with the same number have the same noise.
    """
    rng = np.random.default_rng(0)
    _, n_seeds, n_runs = surrogate.shape
    picks = rng.integers(0, n_runs, size=(_N_DRAWS, 1, n_seeds, 1))
    drawn = np.take_along_axis(surrogate[None], picks, axis=3)[..., 0].mean(axis=2)  # (n_draws, n_arms)
    means = surrogate.mean(axis=(1, 2))
    taus = np.array(
        [rank_agreement(one[:, None], means[:, None], has_same_seeds=True, n_resamples=1).value for one in drawn]
    )
    return percentile_interval(float(taus.mean()), taus)


def curve_distance(trained: Floats, surrogate: Floats) -> float:
    """Return the mean absolute difference of the mean curves, over the evaluations at which both are known.

    Args:
        trained: (n_seeds, n_evaluations).
        surrogate: (n_seeds, n_runs, n_evaluations).
    """
    apart = np.abs(trained.mean(axis=0) - surrogate.mean(axis=(0, 1)))
    known = np.isfinite(apart)
    return float(apart[known].mean()) if known.any() else float("nan")


def reversed_pairs(one: Floats, other: Floats) -> list[tuple[int, int]]:
    """Return the pairs of arms whose errors, (n_arms,) each, are ordered one way here and the other way there."""
    i, j = np.triu_indices(len(one), k=1)
    is_reversed: NDArray[np.bool_] = np.sign(one[i] - one[j]) * np.sign(other[i] - other[j]) < 0
    return list(zip(i[is_reversed].tolist(), j[is_reversed].tolist(), strict=True))
