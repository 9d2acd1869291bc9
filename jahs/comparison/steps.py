"""Step functions of time: a result counts from the end of its trial, and the value is NaN before the first result.

JAHS-Bench-201's scripts fill backward first, which credits every improvement one evaluation too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.logs import Floats, TrialLog
from jahs.errors import InvalidArgument
from jahs.tasks.pareto import hypervolume


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """A right-continuous step function of time: `values[i]` holds from `times[i]` until `times[i + 1]`."""

    times: Floats  # increasing, (k,)
    values: Floats  # (k,)

    def at(self, times: Floats) -> Floats:
        """Return the value at each time, NaN before the first step."""
        if not len(self.times):
            return np.full(np.shape(times), np.nan)
        place = np.searchsorted(self.times, times, side="right") - 1
        return np.where(place < 0, np.nan, self.values[np.maximum(place, 0)])

    def scaled(self, by: float) -> Steps:
        """Return the function with time divided by `by`."""
        return Steps(times=self.times / by, values=self.values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Incumbents:
    """The incumbents: trial `rows[i]` of the log from `steps.times[i]` on."""

    steps: Steps
    rows: NDArray[np.intp]


def incumbents(log: TrialLog) -> Incumbents:
    """Return the best validation errors so far among trials that finished at the highest fidelity and have one.

    Of equal results, the first stays. Of results known at the same time, only the best is a step.
    """
    errors = log.minimised("valid_acc") if log.is_full.any() else np.full(len(log), np.nan)
    rows = np.flatnonzero(log.is_full & ~np.isnan(errors))
    values, times = errors[rows], log.end[rows]
    improved = np.flatnonzero(np.diff(np.minimum.accumulate(values), prepend=np.inf) < 0)
    improved = improved[np.diff(times[improved], append=np.inf) > 0]
    return Incumbents(steps=Steps(times=times[improved], values=values[improved]), rows=rows[improved])


def hypervolume_over_time(times: Floats, F: Floats, *, reference: Floats) -> Steps:
    """Return the hypervolume of all points known so far, with a step for every increase.

    `times`, (n,), increase; `F` is (n, m). Points not better than `reference`, (m,), in every objective add nothing.
    """
    if np.any(np.diff(times) < 0):
        raise InvalidArgument("times must not decrease")
    front = np.empty((0, F.shape[1]))
    steps: list[tuple[float, float]] = []
    volume = 0.0
    for time, point in zip(times.tolist(), F, strict=True):
        if not np.all(point < reference) or np.any(np.all(front <= point, axis=1)):
            continue
        front = np.concatenate([front[~np.all(point <= front, axis=1)], point[None]])
        volume = hypervolume(front, reference)
        if steps and steps[-1][0] == time:
            steps.pop()
        steps.append((time, volume))
    return Steps(times=np.array([t for t, _ in steps]), values=np.array([v for _, v in steps]))


def regret_area(steps: Steps, *, best: float, guess: float, budget: float) -> float:
    """Return the normalised area under the regret curve: 0 has the best value from the start, 1 is a guess to the end.

    Args:
        steps: the incumbent's value over time, to be minimised.
        best: the best known value, which has no regret.
        guess: the value before the first result.
        budget: the end of the run.
    """
    is_within = steps.times < budget
    edges = np.concatenate([[0.0], steps.times[is_within], [budget]])
    values = np.concatenate([[guess], steps.values[is_within]])
    return float(((values - best) * np.diff(edges)).sum() / ((guess - best) * budget))


def on_grid(functions: Sequence[Steps], grid: Floats) -> Floats:
    """Return the values of all functions at the times of a grid, (n_functions, n_times)."""
    return np.stack([function.at(grid) for function in functions]) if functions else np.empty((0, len(grid)))
