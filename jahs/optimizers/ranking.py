"""Ranking of results by one objective or by several (Deb et al., 2002)."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

import numpy as np

from jahs.optimizers.baseline import Losses
from jahs.tasks.pareto import is_non_dominated

__all__ = ["Ranking", "crowding", "fronts", "order"]


def order(losses: Sequence[Losses], most: int | None = None) -> list[int]:
    """Return positions from best to worst: by loss, or by front and then by crowding distance; ties by position."""
    if not losses:
        return []
    F = np.array(losses)
    found: list[int] = []
    if F.shape[1:] == (1,):
        found += np.argsort(F[:, 0], kind="stable")[:most].tolist()
        return found
    wanted = len(F) if most is None else most
    for front in fronts(F):
        if len(found) >= wanted:
            break
        found += [front[i] for i in np.argsort(-crowding(F[front]), kind="stable").tolist()]  # the least crowded first
    return found[:wanted]


class Ranking:
    """The order of results that come one at a time."""

    def __init__(self) -> None:
        self._losses: list[Losses] = []
        self._ranked: list[tuple[float, int]] = []  # of one objective
        self._order: list[int] | None = None  # of several, until another result comes

    def __len__(self) -> int:
        return len(self._losses)

    def add(self, losses: Losses) -> None:
        """Add the result of the next position."""
        if len(losses) == 1:
            insort(self._ranked, (float(losses[0]), len(self._losses)))
        self._losses.append(losses)
        self._order = None

    def first(self, n: int, is_open: Sequence[bool]) -> int | None:
        """Return the best position that is open among the first `n` of `order`; None if there is none."""
        if self._ranked:
            return next((i for _, i in self._ranked[:n] if is_open[i]), None)
        if self._order is None:
            self._order = order(self._losses)
        return next((i for i in self._order[:n] if is_open[i]), None)


def fronts(F: Losses) -> list[list[int]]:
    """Return the positions of the points of each front, from the non-dominated ones down."""
    if F.shape[1:] == (2,):
        return _fronts_of_two(F)
    left = np.arange(len(F))
    found = []
    while len(left):
        is_best = is_non_dominated(F[left])
        found.append([int(i) for i in left[is_best]])
        left = left[~is_best]
    return found


def _fronts_of_two(F: Losses) -> list[list[int]]:
    """Return the same for two objectives, in one sweep.

    From left to right, a front dominates a point if its lowest point so far is not above it. The lowest points of the
    fronts increase, so bisection finds the first front that does not dominate. Equal points are adjacent.
    """
    found: list[list[int]] = []
    lowest: list[float] = []
    before, k = None, 0
    points = F.tolist()
    for i in np.lexsort((F[:, 1], F[:, 0])).tolist():
        if points[i] != before:
            before = points[i]
            k = bisect_right(lowest, before[1])
            lowest[k : k + 1] = [before[1]]
            found += [[]] if k == len(found) else []
        found[k].append(i)
    return [sorted(front) for front in found]


def crowding(F: Losses) -> Losses:
    """Return the crowding distance of each point of a front; infinite at the ends."""
    distance = np.zeros(len(F))
    for column in F.T:
        along = np.argsort(column, kind="stable")
        ordered = column[along]
        distance[along[[0, -1]]] = np.inf
        if len(F) > 2 and ordered[0] < ordered[-1] < np.inf:
            width = ordered[-1] - ordered[0]
            distance[along[1:-1]] += (ordered[2:] - ordered[:-2]) / width
    return distance
