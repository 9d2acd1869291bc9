"""Which of some results are better, for one objective and for several (Deb et al., 2002)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.optimizers.baseline import Losses
from jahs.pareto import is_non_dominated

__all__ = ["crowding", "fronts", "order"]


def order(losses: Sequence[Losses]) -> list[int]:
    """Return positions from the best: by loss, or by front and then from the loneliest; ties by position."""
    if not losses:
        return []
    F = np.array(losses)
    if F.shape[1:] == (1,):
        return [int(i) for i in np.argsort(F[:, 0], kind="stable")]
    found: list[int] = []
    for front in fronts(F):
        lonely = crowding(F[front])
        found += [front[i] for i in np.argsort(-lonely, kind="stable")]
    return found


def fronts(F: Losses) -> list[list[int]]:
    """Return the positions of the non-dominated points, then of those that only these dominate, and so on."""
    left = np.arange(len(F))
    found = []
    while len(left):
        is_best = is_non_dominated(F[left])
        found.append([int(i) for i in left[is_best]])
        left = left[~is_best]
    return found


def crowding(F: Losses) -> Losses:
    """Return how far the neighbours of each point of a front are, over all objectives; infinite at the ends."""
    distance = np.zeros(len(F))
    for column in F.T:
        along = np.argsort(column, kind="stable")
        ordered = column[along]
        distance[along[[0, -1]]] = np.inf
        if len(F) > 2 and ordered[0] < ordered[-1] < np.inf:
            width = ordered[-1] - ordered[0]
            distance[along[1:-1]] += (ordered[2:] - ordered[:-2]) / width
    return distance
