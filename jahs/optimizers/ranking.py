"""Ranking of results by one objective or by several (Deb et al., 2002)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from jahs.optimizers.baseline import Losses
from jahs.tasks.pareto import is_non_dominated

_Point: TypeAlias = tuple[float, float, int]  # two objectives, and a position


def order(losses: Sequence[Losses], most: int | None = None) -> list[int]:
    """Return positions from best to worst: by loss, or by front and then by crowding distance; ties by position."""
    F = np.array(losses)
    if F.shape[1:] == (1,):
        return list(np.argsort(F[:, 0], kind="stable")[:most].tolist())
    ranked: list[int] = []
    n_wanted = len(F) if most is None else most
    for front in fronts(F):
        if len(ranked) >= n_wanted:
            break
        ranked += [front[i] for i in np.argsort(-crowding(F[front]), kind="stable").tolist()]  # the least crowded first
    return ranked[:n_wanted]


class Ranking:
    """The order of results, updated with each result, and which of them are open: known, and not taken yet."""

    def __init__(self) -> None:
        self._losses: list[Losses] = []
        self._is_open: list[bool] = []  # for several objectives
        self._ranked: list[tuple[float, int]] = []  # for one objective
        self._open: list[tuple[float, int]] = []  # the open ones among them
        self._fronts = _Fronts()  # for two objectives
        self._order: list[int] = []  # for more, the best ones; valid until the next result

    def __len__(self) -> int:
        return len(self._losses)

    def add(self, losses: Losses, *, is_known: bool = True) -> None:
        """Add the result of the next position."""
        if len(losses) == 1:
            place = float(losses[0]), len(self._losses)
            insort(self._ranked, place)
            if is_known:
                insort(self._open, place)
        if len(losses) == 2:
            self._fronts.add((float(losses[0]), float(losses[1]), len(self._losses)))
        self._losses.append(losses)
        self._is_open.append(is_known)
        self._order = []

    def take(self, n: int) -> int | None:
        """Return the best open position among the first `n` of the order, which then is not open; None if none is."""
        if self._ranked:
            if self._open and bisect_left(self._ranked, self._open[0]) < n:
                return self._open.pop(0)[1]
            return None
        if not self._fronts.fronts and len(self._order) < n:
            self._order = order(self._losses, n)
        ranked = self._fronts.order() if self._fronts.fronts else self._order
        found = next((i for i in islice(ranked, n) if self._is_open[i]), None)
        if found is not None:
            self._is_open[found] = False
        return found


class _Fronts:
    """The fronts of points with two objectives, updated with each point.

    A front is sorted: its first objective rises while its second falls, so bisection finds the points that dominate a
    point or are dominated by it. Adding a point moves the points that it dominates to the next front, and so on.
    """

    def __init__(self) -> None:
        self.fronts: list[list[_Point]] = []
        self._ordered: list[list[int] | None] = []  # positions of each front, the least crowded first

    def add(self, point: _Point) -> None:
        """Add a point."""
        k = bisect_left(self.fronts, 1, key=lambda front: 1 - _dominates(front, point))
        moving = [point]
        while moving:
            if k == len(self.fronts):
                self.fronts.append([])
                self._ordered.append(None)
            front = self.fronts[k]
            dominated = {other for each in moving for other in _dominated(front, each)}
            if dominated and len(dominated) == len(front):  # all later fronts are one further down
                self.fronts.insert(k, moving)
                self._ordered.insert(k, None)
                return
            if dominated:
                front[:] = [each for each in front if each not in dominated]
            for each in moving:
                insort(front, each)
            self._ordered[k] = None
            moving, k = sorted(dominated), k + 1

    def order(self) -> Iterator[int]:
        """Yield the positions from best to worst."""
        for k, front in enumerate(self.fronts):
            ordered = self._ordered[k]
            if ordered is None:
                points = sorted(front, key=itemgetter(2))
                crowded = crowding(np.array([point[:2] for point in points]))
                ordered = self._ordered[k] = [points[i][2] for i in np.argsort(-crowded, kind="stable")]
            yield from ordered


def _dominates(front: Sequence[_Point], point: _Point) -> bool:
    last = bisect_right(front, (point[0], math.inf, math.inf)) - 1  # the lowest of those that are not to the right
    return last >= 0 and front[last][1] <= point[1] and front[last][:2] != point[:2]


def _dominated(front: Sequence[_Point], by: _Point) -> Iterator[_Point]:
    for point in islice(front, bisect_left(front, by[:2]), None):
        if point[1] < by[1]:
            return
        if point[:2] != by[:2]:
            yield point


def fronts(F: Losses) -> list[list[int]]:
    """Return the positions of the points of each front, the non-dominated points first."""
    remaining = np.arange(len(F))
    layers = []
    while len(remaining):
        is_best = is_non_dominated(F[remaining])
        layers.append([int(i) for i in remaining[is_best]])
        remaining = remaining[~is_best]
    return layers


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
