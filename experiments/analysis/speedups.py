"""How much sooner one arm has what another one has in the end (JAHS-Bench-201, Tables 9 and 10).

The target is the slow arm's final mean; both times are those at which an arm's own mean over seeds reaches it for the
first time, not the end of the budget. Before its first result a seed stands in with what is known without any training:
the error of guessing. Where the fast arm does not get there at all, the speed-up is at most slow time / budget, and
the estimate says that it is a bound; so is the lower end of an interval where many resamples do not get there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.logs import Floats
from experiments.analysis.steps import Steps, on_grid, union_grid
from experiments.analysis.summaries import LEVEL, N_RESAMPLES, Interval, percentile_interval
from jahs.errors import InvalidArgument

__all__ = ["Speedup", "geometric_mean", "speedup"]

_SLACK = 1e-9  # means of equal values may differ in their last bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Speedup:
    """A speed-up and what it was computed from.

    Attributes:
        interval: the ratio of times with its bootstrap interval.
        is_bound: the fast arm's mean never reaches the target: the ratio is an upper bound.
        is_low_bound: so many resampled means never reach it that the interval's lower end is an upper bound, too.
        target: the slow arm's final mean.
        slow_time, fast_time: when each reaches it; the budget where it is not reached.
        resampled: the ratio in each bootstrap resample.
    """

    interval: Interval
    is_bound: bool
    is_low_bound: bool
    target: float
    slow_time: float
    fast_time: float
    resampled: Floats


def speedup(
    fast: Sequence[Steps],
    slow: Sequence[Steps],
    *,
    budget: float,
    guess: float,
    level: float = LEVEL,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Speedup:
    """Compare two arms whose values are minimised, one function for each seed.

    Args:
        fast, slow: what each seed knew when.
        budget: when everything ends.
        guess: the value before the first result.
        level, n_resamples, seed: of the bootstrap, which resamples the seeds of each arm.

    Raises:
        InvalidArgument: an arm has no seeds.
    """
    if not fast or not slow:
        raise InvalidArgument("fast, slow: each needs at least one seed")
    grid = union_grid(fast, slow, until=budget)
    values = [_filled(on_grid(arm, grid), guess) for arm in (fast, slow)]
    rng = np.random.default_rng(seed)
    means = [_resampled_means(arm, rng, n_resamples) for arm in values]
    target = means[1][:, -1]
    has_it = [arm <= target[:, None] + _SLACK for arm in means]
    times = [np.where(arm.any(axis=1), grid[arm.argmax(axis=1)], budget) for arm in has_it]
    ratio = times[1] / times[0]
    return Speedup(
        interval=percentile_interval(float(ratio[0]), ratio[1:], level=level),
        is_bound=not has_it[0][0].any(),
        is_low_bound=bool((~has_it[0][1:].any(axis=1)).mean() > (1 - level) / 2),
        target=float(target[0]),
        slow_time=float(times[1][0]),
        fast_time=float(times[0][0]),
        resampled=ratio[1:],
    )


def geometric_mean(speedups: Sequence[Speedup], *, level: float = LEVEL) -> Interval:
    """Geometric mean over tasks, with the interval of the geometric means of resamples."""
    if not speedups:
        raise InvalidArgument("speedups: there are none to average")
    value = np.exp(np.mean([np.log(s.interval.value) for s in speedups]))
    resampled = np.exp(np.mean([np.log(s.resampled) for s in speedups], axis=0))
    return percentile_interval(float(value), resampled, level=level)


def _filled(values: Floats, guess: float) -> Floats:
    return np.where(np.isnan(values), guess, values)


def _resampled_means(values: Floats, rng: np.random.Generator, n_resamples: int) -> Floats:
    """Means over seeds, (1 + n_resamples, n_times): the first row is that of the seeds themselves."""
    n = len(values)
    weights = np.concatenate([np.ones((1, n)), rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)])
    return np.asarray(weights @ values / n)
