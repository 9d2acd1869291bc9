"""Sets of points in several objectives, all minimised: dominance, fronts and hypervolume.

A point dominates another if it is nowhere larger and somewhere smaller. Equal points do not dominate one another.
Two and three objectives take O(n log n) (Kung, Luccio, Preparata 1975; for the volume Beume et al. 2009). Volumes are
exact up to rounding: a few units in the last place.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Final

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument
from jahs.spaces.parameters import read_floats, show

_MOST_LISTED: Final = 5
_BLOCK: Final = 64  # points compared at once with the front so far, so that the comparisons stay in the cache

_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]


def is_non_dominated(F: npt.ArrayLike) -> _Bools:
    """Return which rows of `F`, (n_points, n_objectives), no other row dominates; of equal rows all or none.

    Raises:
        InvalidArgument: `F` is not a matrix of numbers, or holds NaN or minus infinity.

    Example:
        >>> is_non_dominated([[1, 3], [2, 2], [2, 3], [3, 1]]).tolist()
        [True, True, False, True]
    """
    points = read_points(F)
    order, group = _sorted_groups(points)
    unique = points[order[np.searchsorted(group, np.arange(group[-1] + 1))]] if len(order) else points
    is_minimal = np.empty(len(points), dtype=np.bool_)
    is_minimal[order] = _is_minimal(unique)[group]
    return is_minimal


def pareto_front(F: npt.ArrayLike) -> _Floats:
    """Return the non-dominated rows of `F`, each once, sorted by the first objective, then the second and so on.

    Raises:
        InvalidArgument: as `is_non_dominated`.

    Example:
        >>> pareto_front([[3, 1], [2, 2], [2, 3], [3, 1]]).tolist()
        [[2.0, 2.0], [3.0, 1.0]]
    """
    points = read_points(F)
    return np.unique(points[is_non_dominated(points)], axis=0) if len(points) else points


def hypervolume(F: npt.ArrayLike, reference_point: npt.ArrayLike) -> float:
    """Return the exact volume that the points of `F` dominate, up to `reference_point`; 2 or 3 objectives, minimised.

    A point that is not below the reference point in every objective adds nothing. An empty set of points has volume 0.

    Args:
        F: (n_points, n_objectives); plus infinity means a failed evaluation.
        reference_point: (n_objectives,), finite.

    Raises:
        InvalidArgument: another number of objectives, or values that are not numbers.

    Example:
        >>> hypervolume([[1, 3], [3, 1]], [4, 4])
        5.0
    """
    corner = _read_reference_point(reference_point)
    points = read_points(F, n_objectives=len(corner))
    points = points[(points < corner).all(axis=1)]
    points = points[np.lexsort(points.T[::-1])]
    if len(corner) == 2:
        return _area(points, corner)
    stairs = _Stairs(float(corner[1]), float(corner[2]))
    added = [stairs.add(y, z) for y, z in points[:, 1:].tolist()]
    return math.fsum((np.asarray(added) * (corner[0] - points[:, 0])).tolist())


def read_points(F: npt.ArrayLike, *, n_objectives: int | None = None) -> _Floats:
    """Return `F` as a float64 matrix of points; an empty list has no points. InvalidArgument names every fault."""
    points = read_floats("F", F)
    if points.size == 0 and points.ndim == 1:
        return np.empty((0, n_objectives or 0))
    expected = "one or more" if n_objectives is None else str(n_objectives)
    if points.ndim != 2 or points.shape[1] == 0 or n_objectives not in (None, points.shape[1]):
        raise InvalidArgument(
            f"F has shape {points.shape}; it must be (n_points, n_objectives) with {expected} objectives: one row per "
            "point, one column per objective"
        )
    faults = []
    for name, is_bad in (("NaN", np.isnan(points)), ("-inf", points == -np.inf)):
        bad_rows = np.flatnonzero(is_bad.any(axis=1)).tolist()
        if bad_rows:
            faults.append(f"F holds {name} in {len(bad_rows)} of {len(points)} rows (first: {bad_rows[:_MOST_LISTED]})")
    if faults:
        raise InvalidArgument("\n".join([*faults, "leave such rows out, or give inf where an evaluation failed"]))
    return points


def _read_reference_point(point: npt.ArrayLike) -> _Floats:
    corner = read_floats("reference_point", point)
    if corner.shape not in ((2,), (3,)) or not np.isfinite(corner).all():
        raise InvalidArgument(
            f"reference_point={show(point)} is not 2 or 3 finite numbers; a package such as moocore takes more "
            "objectives"
        )
    return corner


def _sorted_groups(points: _Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the order that sorts the rows, and for each sorted row the number of its group of equal rows."""
    order = np.lexsort(points.T[::-1]) if points.size else np.arange(len(points))
    ordered = points[order]
    is_new = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, np.concatenate([[0] * min(len(order), 1), np.cumsum(is_new)]).astype(np.intp)


def _is_minimal(points: _Floats) -> _Bools:
    """Return which of distinct, ascending rows are not dominated; only an earlier row can dominate a row."""
    n_points, n_objectives = points.shape
    if n_objectives == 2:
        is_minimal = np.ones(n_points, dtype=np.bool_)
        is_minimal[1:] = points[1:, 1] < np.minimum.accumulate(points[:, 1])[:-1]
        return is_minimal
    if n_objectives == 3:
        stairs = _Stairs(math.inf, math.inf)
        return np.array([stairs.step(y, z) for y, z in points[:, 1:].tolist()], dtype=np.bool_)
    front = np.empty((n_objectives, n_points))  # columns that lie together in memory
    n_front = 0
    is_minimal = np.zeros(n_points, dtype=np.bool_)
    for start in range(0, n_points, _BLOCK):
        block = points[start : start + _BLOCK]
        is_dominated = np.ones((n_front, len(block)), dtype=np.bool_)
        for column, values in zip(front[:, :n_front], block.T, strict=True):
            is_dominated &= column[:, None] <= values
        remaining = np.flatnonzero(~is_dominated.any(axis=0))
        while len(remaining):
            front[:, n_front] = block[remaining[0]]
            n_front += 1
            is_minimal[start + remaining[0]] = True
            remaining = remaining[(block[remaining] < block[remaining[0]]).any(axis=1)]
    return is_minimal


def _area(points: _Floats, corner: _Floats) -> float:
    """Return the volume of two objectives: one rectangle for each point that lies below all before it."""
    lowest = np.minimum.accumulate(np.concatenate([corner[1:], points[:, 1]]))
    return math.fsum(((corner[0] - points[:, 0]) * (lowest[:-1] - lowest[1:])).tolist())


class _Stairs:
    """The non-dominated points of the (y, z) plane seen so far, by ascending y and so by descending z."""

    def __init__(self, end_y: float, end_z: float) -> None:
        self._end_y = end_y
        self._end_z = end_z
        self._ys: list[float] = []
        self._zs: list[float] = []

    def step(self, y: float, z: float) -> bool:
        """Add a point; return whether no earlier point was at most as large in both coordinates."""
        first, last = self._dominated_range(y, z)
        if last < first:
            return False
        self._ys[first:last], self._zs[first:last] = [y], [z]
        return True

    def add(self, y: float, z: float) -> float:
        """Add a point; return the area that only it dominates so far; both ends must be finite."""
        first, last = self._dominated_range(y, z)
        if last < first:
            return 0.0
        ys, zs = self._ys, self._zs
        area, left, level = 0.0, y, zs[first - 1] if first else self._end_z
        for i in range(first, last):
            area += (ys[i] - left) * (level - z)
            left, level = ys[i], zs[i]
        area += ((ys[last] if last < len(ys) else self._end_y) - left) * (level - z)
        ys[first:last], zs[first:last] = [y], [z]
        return area

    def _dominated_range(self, y: float, z: float) -> tuple[int, int]:
        """Return the range of points that (y, z) replaces; its end lies before its start if (y, z) is dominated."""
        ys, zs = self._ys, self._zs
        first = bisect_left(ys, y)
        if (first and zs[first - 1] <= z) or (first < len(ys) and ys[first] == y and zs[first] <= z):
            return first, -1
        last = first
        while last < len(ys) and zs[last] >= z:
            last += 1
        return first, last
