"""Speed-ups: how much sooner one arm reaches the final result of another (JAHS-Bench-201, Tables 9 and 10).

The target is the slow arm's final median over seeds. The speed-up is the ratio of the times at which half of the seeds
of each arm first are at the target or below. (The mean of noisy incumbents may rise again, because of one bad incumbent
of one seed.) A seed without a result counts with the error of guessing. If the fast arm never reaches the target, the
ratio slow time / budget is an upper bound. So is the lower end of the interval if many resamples never reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.report.results import Results
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.steps import Steps, on_grid
from jahs.comparison.summaries import FEWEST_SEEDS, Interval
from jahs.tasks.definitions import TASKS
from workshop.resampling import LEVEL, N_RESAMPLES, percentile_interval


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Speedup:
    """A speed-up and the times behind it."""

    interval: Interval  # the ratio of times with its bootstrap interval; NaN ends for fewer than six seeds
    is_bound: bool  # whether the ratio is an upper bound, because the fast arm never reaches the target
    is_low_bound: bool  # whether the interval's lower end is an upper bound as well
    target: float  # the slow arm's final median, the lower one of two
    # slow_time, fast_time: times at which half of the seeds are at the target; the budget if never.
    slow_time: float
    fast_time: float
    resampled: Floats  # the ratio in each bootstrap resample; NaN for fewer than six seeds


def speedup(fast: Sequence[Steps], slow: Sequence[Steps], *, budget: float, guess: float) -> Speedup:
    """Compare two arms whose values are minimised.

    Args:
        fast, slow: the incumbents' values over time, for each seed; both have the same seeds, in the same order, and
            each bootstrap resample has the same seeds of both.
        guess: the value before the first result.
    """
    times_of_steps = np.concatenate([curve.times for curve in (*fast, *slow)])
    grid = np.append(np.unique(times_of_steps[times_of_steps < budget]), budget)
    values = [np.nan_to_num(on_grid(arm, grid), nan=guess) for arm in (fast, slow)]
    n = len(fast)
    picks = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    weights = np.concatenate([np.ones((1, n), dtype=picks.dtype), picks])  # the first row is not resampled
    last = np.sort(values[1][:, -1])
    counts = weights[:, np.argsort(values[1][:, -1], kind="stable")].cumsum(axis=1)
    target = last[(2 * counts >= n).argmax(axis=1)]
    times = [np.full(len(weights), np.inf) for _ in values]
    for level in np.unique(target):  # at most one per seed
        rows = target == level
        for arm, reached in zip(values, times, strict=True):
            is_there = 2 * (weights[rows] @ (arm <= level)) >= n
            reached[rows] = np.where(is_there.any(axis=1), grid[is_there.argmax(axis=1)], np.inf)
    is_never = np.isinf(times[0])
    ratio = times[1] / np.minimum(times[0], budget)
    has_interval = n >= FEWEST_SEEDS
    if not has_interval:
        ratio[1:] = np.nan
    return Speedup(
        interval=percentile_interval(float(ratio[0]), ratio[1:]),
        is_bound=bool(is_never[0]),
        is_low_bound=has_interval and bool(is_never[1:].mean() > (1 - LEVEL) / 2),
        target=float(target[0]),
        slow_time=float(times[1][0]),
        fast_time=float(min(times[0][0], budget)),
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
    return _speedup(results, task, *(results.steps(task, arm, seeds) for arm in (fast, slow)))


def _speedup(results: Results, task: str, fast: Sequence[Steps], slow: Sequence[Steps]) -> Speedup | None:
    if len(slow) < 2 or not all(len(steps.times) for steps in slow):
        return None
    return speedup(fast, slow, budget=float(results.study.n_evaluations), guess=TASKS[task].chance_error)


def speedups_on_refits(results: Results, task: str, fast: Arm, slow: Arm) -> list[Speedup]:
    """Return the speed-up of an arm on each refit, over the seeds that both have there.

    Refits with fewer than two such seeds are left out, and those where the slow arm has no result with one of them.
    """
    by_refit: dict[int | None, tuple[dict[int, Steps], dict[int, Steps]]] = {}
    for i, arm in enumerate((fast, slow)):
        for result in results.on_refits.get((task, arm.name), ()):
            own = result.repetition
            by_refit.setdefault(own.refit, ({}, {}))[i][own.seed] = result.incumbents
    found = []
    for by_seed in by_refit.values():
        seeds = sorted(set.intersection(*map(set, by_seed)))
        found.append(_speedup(results, task, *([steps[seed] for seed in seeds] for steps in by_seed)))
    return [each for each in found if each is not None]


def range_text(found: Sequence[Speedup]) -> str:
    """Return the median of speed-ups with the lowest and the highest; ≤ marks an upper bound, and – none at all."""
    if not found:
        return "–"
    ordered = sorted(found, key=lambda each: (each.interval.value, not each.is_bound))
    shown = (ordered[(len(ordered) - 1) // 2], ordered[0], ordered[-1])
    middle, low, high = (f"{'≤ ' if each.is_bound else ''}{_number(each.interval.value)}" for each in shown)
    return f"{middle}× ({low} to {high})"


def _number(value: float) -> str:
    return f"{value:.{1 if value >= 1 else 2}f}"


def speedup_text(found: Sequence[Speedup]) -> str:
    """Return the geometric mean of speed-ups over tasks, and its interval if it has one; ≤ marks an upper bound."""
    interval = geometric_mean(found)
    digits = 1 if interval.value >= 1 or not np.isfinite(interval.value) else 2
    value, low, high = (f"{x:.{digits}f}" for x in (interval.value, interval.low, interval.high))
    signs = ("≤ " if is_any else "" for is_any in (any(s.is_bound for s in found), any(s.is_low_bound for s in found)))
    text = f"{next(signs)}{value}×"
    return text if np.isnan(interval.low) else f"{text} ({next(signs)}{low} to {high})"
