"""Ranking of results by one objective or by several (Deb et al., 2002)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from jahs.optimizers.baseline import Losses
from jahs.tasks.pareto import is_non_dominated

__all__ = ["Ranking", "crowding", "fronts", "order"]

_Placed: TypeAlias = tuple[float, float, int]
"""Two losses and a position."""


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
        found += _by_crowding(front, F[front])
    return found[:wanted]


def _by_crowding(front: Sequence[int], F: Losses) -> list[int]:
    """Return the positions of a front from the least crowded one down."""
    return [front[i] for i in np.argsort(-crowding(F), kind="stable").tolist()]


class Ranking:
    """The order of results that come one at a time. With one or two objectives, few of them are touched each time."""

    def __init__(self) -> None:
        self._losses: list[Losses] = []
        self._ranked: list[tuple[float, int]] = []  # of one objective
        self._fronts: list[list[_Placed]] = []  # of two objectives, each by ascending first loss

    def __len__(self) -> int:
        return len(self._losses)

    def add(self, losses: Losses) -> None:
        """Add the result of the next position."""
        values, position = losses.tolist(), len(self._losses)
        self._losses.append(losses)
        if len(values) == 1:
            insort(self._ranked, (values[0], position))
        elif len(values) == 2:
            self._insert((values[0], values[1], position))

    def first(self, n: int, is_open: Sequence[bool]) -> int | None:
        """Return the best position that is open among the first `n` of `order`; None if there is none."""
        if self._ranked:
            return next((i for _, i in self._ranked[:n] if is_open[i]), None)
        for front in self._positions():
            if n <= 0:
                break
            if any(is_open[i] for i in front):
                front.sort()
                ordered = _by_crowding(front, np.array([self._losses[i] for i in front]))
                chosen = next((i for i in ordered[:n] if is_open[i]), None)
                if chosen is not None:
                    return chosen
            n -= len(front)
        return None

    def _positions(self) -> Iterator[list[int]]:
        if self._fronts or not self._losses:
            return ([i for _, _, i in front] for front in self._fronts)
        return iter(fronts(np.array(self._losses)))

    def _insert(self, new: _Placed) -> None:
        """Insert a point into its front; those that it dominates there move to the next front, and so on.

        What moves is a run of neighbours, because a front's second losses fall as the first ones rise.
        """
        k = bisect_left(self._fronts, True, key=lambda front: not _dominates(front, new))  # noqa: FBT003  # a key
        moved = [new]
        while moved and k < len(self._fronts):
            front = self._fronts[k]
            start = bisect_left(front, moved[0][0], key=lambda point: point[0])
            end = max(start, bisect_right(front, -moved[-1][1], key=lambda point: -point[1]))
            if start < end and front[start][:2] == new[:2]:
                end = start  # equal points share a front
            front[start:end], moved = moved, front[start:end]
            k += 1
        if moved:
            self._fronts.append(moved)


def _dominates(front: Sequence[_Placed], new: _Placed) -> bool:
    """Return whether a point of the front dominates the new one: the last one that is not to the right of it."""
    place = bisect_right(front, new[0], key=lambda point: point[0])
    return place > 0 and front[place - 1][1] <= new[1] and front[place - 1][:2] != new[:2]


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
