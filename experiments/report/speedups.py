"""Speed-ups: how much sooner one arm reaches the final result of another (JAHS-Bench-201, Tables 9 and 10).

The target is the slow arm's final mean. The speed-up is the ratio of the times at which the means over seeds first
reach it. A seed without a result counts with the error of guessing. If the fast arm never reaches the target, the ratio
slow time / budget is an upper bound. So is the lower end of the interval if many resamples never reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.report.results import Results
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.steps import Steps, on_grid, union_grid
from jahs.comparison.summaries import LEVEL, N_RESAMPLES, Interval, percentile_interval
from jahs.tasks.definitions import TASKS

_SLACK = 1e-9  # means of equal values may differ in their last bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Speedup:
    """A speed-up and the times behind it.

    Attributes:
        interval: the ratio of times with its bootstrap interval.
        is_bound: whether the ratio is an upper bound, because the fast arm's mean never reaches the target.
        is_low_bound: whether the interval's lower end is an upper bound as well.
        target: the slow arm's final mean.
        slow_time, fast_time: times at which each reaches the target; the budget if never.
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
    n_resamples: int = N_RESAMPLES,
) -> Speedup:
    """Compare two arms whose values are minimised.

    Args:
        fast, slow: the incumbents' values over time, for each seed; both have the same seeds, in the same order.
        guess: the value before the first result.
        n_resamples: number of bootstrap resamples of the seeds. A resample has the same seeds of both arms.
    """
    grid = union_grid(fast, slow, until=budget)
    values = [np.nan_to_num(on_grid(arm, grid), nan=guess) for arm in (fast, slow)]
    n = len(fast)
    picks = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=n_resamples)
    weights = np.concatenate([np.ones((1, n)), picks]) / n  # the first row is not resampled
    means = [weights @ arm for arm in values]
    target = means[1][:, -1]
    has_it = [arm <= target[:, None] + _SLACK for arm in means]
    times = [np.where(arm.any(axis=1), grid[arm.argmax(axis=1)], budget) for arm in has_it]
    ratio = times[1] / times[0]
    return Speedup(
        interval=percentile_interval(float(ratio[0]), ratio[1:]),
        is_bound=not has_it[0][0].any(),
        is_low_bound=bool((~has_it[0][1:].any(axis=1)).mean() > (1 - LEVEL) / 2),
        target=float(target[0]),
        slow_time=float(times[1][0]),
        fast_time=float(times[0][0]),
        resampled=ratio[1:],
    )


def geometric_mean(speedups: Sequence[Speedup]) -> Interval:
    """Return the geometric mean over tasks, with the interval of the geometric means of resamples."""
    value = np.exp(np.mean([np.log(s.interval.value) for s in speedups]))
    resampled = np.exp(np.mean([np.log(s.resampled) for s in speedups], axis=0))
    return percentile_interval(float(value), resampled)


def speedup_of_arms(results: Results, task: str, fast: Arm, slow: Arm) -> Speedup | None:
    """Return the speed-up of an arm on a task, over the seeds that both have; None for fewer than two, or without a
    result of the slow arm with each."""
    seeds = results.seeds(task, (fast, slow))
    steps = results.steps(task, slow, seeds)
    if len(seeds) < 2 or not all(len(of_seed.times) for of_seed in steps):
        return None
    budget, guess = float(results.study.n_evaluations), TASKS[task].chance_error
    return speedup(results.steps(task, fast, seeds), steps, budget=budget, guess=guess)


def speedup_text(found: Sequence[Speedup]) -> str:
    """Return the geometric mean of speed-ups over tasks and its interval; ≤ marks an upper bound."""
    interval = geometric_mean(found)
    digits = 1 if interval.value >= 1 or not np.isfinite(interval.value) else 2
    value, low, high = (f"{x:.{digits}f}" for x in (interval.value, interval.low, interval.high))
    signs = ("≤ " if is_any else "" for is_any in (any(s.is_bound for s in found), any(s.is_low_bound for s in found)))
    return f"{next(signs)}{value}× ({next(signs)}{low} to {high})"
