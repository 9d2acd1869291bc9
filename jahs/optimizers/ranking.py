"""Ranking of results by one objective or by several (Deb et al., 2002)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from jahs.optimizers.baseline import Losses
from jahs.tasks.pareto import is_non_dominated

__all__ = ["crowding", "fronts", "order"]


def order(losses: Sequence[Losses], most: int | None = None) -> list[int]:
    """Return positions from best to worst: by loss, or by front and then by crowding distance; ties by position.

    Args:
        losses: one point for each result.
        most: how many to return; None: all.
    """
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
        distances = crowding(F[front])
        found += [front[i] for i in np.argsort(-distances, kind="stable")]
    return found[:wanted]


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
