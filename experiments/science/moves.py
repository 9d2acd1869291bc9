"""Neighbourhood graphs of the 15,625 cells and of the functions that they compute.

Values of cells are an array of shape (5, 5, 5, 5, 5, 5), one axis for each edge. A point of a graph is a cell, or a
function with the mean value of its cells. A move changes the operation of one edge; two functions are one move apart if
any two of their cells are.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import rankdata

from jahs.comparison.logs import Floats
from jahs.spaces.cell import EDGES, OPERATIONS, all_ops, canonical_keys

SHAPE: Final = (len(OPERATIONS),) * len(EDGES)
DISTANCES: Final = range(1, len(EDGES) + 1)  # all that are possible
STEPS: Final = range(1, 37)  # moves of a random walk, which reaches a mean distance of about their square root

POINTS: Final = {"": False, ", functions": True}
"""Suffixes of measures of cells and of functions, and whether cells of one function are one point."""


@cache
def points_of_cells(*, is_canonical: bool) -> NDArray[np.int64]:
    """Return the number of each cell's point, (15625,): of its function, or of the cell itself."""
    return canonical_keys(all_ops()) if is_canonical else np.arange(len(all_ops()))


@cache
def _moves(*, is_canonical: bool) -> csr_array:
    """Return 1 where two points are one move apart, (n_points, n_points), and 0 elsewhere."""
    points = points_of_cells(is_canonical=is_canonical).reshape(SHAPE)
    shifts = product(range(1, len(OPERATIONS)), range(len(EDGES)))
    moved = np.stack([np.roll(points, shift, axis=edge) for shift, edge in shifts])
    is_other = moved != points
    start, end = np.broadcast_to(points, moved.shape)[is_other], moved[is_other]
    moves = csr_array((np.ones(len(start)), (start, end)))
    moves.data[:] = 1.0  # several cells of two functions may be one move apart
    return moves


def means_of_points(values: NDArray[np.generic], *, is_canonical: bool) -> Floats:
    """Return the mean value of each point."""
    classes = points_of_cells(is_canonical=is_canonical)
    return np.asarray(np.bincount(classes, values.ravel()) / np.bincount(classes))


def autocorrelation_of_cells(values: Floats, n_steps: int = len(STEPS), *, is_canonical: bool = False) -> Floats:
    """Return the correlation of the ranks of points 1, 2, ... random moves apart, over all walks: exact.

    Each step moves to one of the neighbours with equal probability, so the expected rank after a step is a mean. In a
    long walk, a point is as frequent as it has neighbours.
    """
    moves = _moves(is_canonical=is_canonical)
    n_neighbors = moves.sum(axis=1)
    weights = n_neighbors / n_neighbors.sum()
    ranks = rankdata(means_of_points(values, is_canonical=is_canonical))
    ranks -= (weights * ranks).sum()  # not @, for which BLAS starts threads
    variance = (weights * ranks**2).sum()
    expected, correlations = ranks, []
    for _ in range(n_steps):
        expected = moves @ expected / n_neighbors
        correlations.append((weights * ranks * expected).sum() / variance)
    return np.array(correlations)


def distance_to(chosen: NDArray[np.bool_], *, is_canonical: bool) -> NDArray[np.int64]:
    """Return the least number of moves from each cell to one of the `chosen`, of which there is at least one.

    With `is_canonical`, moving to a cell that computes the same function costs nothing.
    """
    reached = means_of_points(chosen, is_canonical=is_canonical) > 0
    distance = np.zeros(len(reached), np.int64)
    for _ in DISTANCES:
        distance += ~reached
        reached |= _moves(is_canonical=is_canonical) @ reached > 0
    return distance[points_of_cells(is_canonical=is_canonical)].reshape(SHAPE)
