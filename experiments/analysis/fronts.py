"""Sets of trade-offs: hypervolume over time, inverted generational distance, attainment surfaces. All minimised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.analysis.logs import Floats
from experiments.analysis.steps import Steps
from jahs.errors import InvalidArgument
from jahs.tasks.pareto import hypervolume

__all__ = ["attainment_surface", "hypervolume_over_time", "igd_plus"]


def hypervolume_over_time(times: Floats, F: Floats, *, reference: Floats) -> Steps:
    """Hypervolume of everything known so far, a step for every time at which it grows.

    Args:
        times: when each point was known, increasing, (n,).
        F: objectives, (n, m).
        reference: the frozen reference point, (m,). Points that are not better in every objective add nothing.
    """
    if np.any(np.diff(times) < 0):
        raise InvalidArgument("times: they do not increase")
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


def igd_plus(F: Floats, *, front: Floats, ideal: Floats, nadir: Floats) -> float:
    """IGD+ of points to the reference front, each objective scaled so that ideal is 0 and nadir 1; inf of no point."""
    import moocore  # type: ignore[import-untyped]  # ships no types

    if not len(F):
        return float("inf")
    span = np.where(nadir > ideal, nadir - ideal, 1.0)
    return float(moocore.igd_plus((F - ideal) / span, ref=(front - ideal) / span))


def attainment_surface(sets: Sequence[Floats], *, share: float) -> Floats:
    """The corners (k, 2) of what at least `share` of the sets attain, by the first objective.

    A point is attained by a set that has a point at least as good in both objectives. The surface of a share of 0.5 is
    the median attainment surface.
    """
    if not sets or not 0 < share <= 1:
        raise InvalidArgument(f"share={share}: must be in (0, 1], and there must be at least one set")
    n_needed = int(np.ceil(round(share * len(sets), 9)))
    x = np.unique(np.concatenate([F[:, 0] for F in sets]))
    attained = np.stack([_best_second(F, x) for F in sets])  # (n_sets, n_x)
    y = np.sort(attained, axis=0)[n_needed - 1]
    is_corner = np.isfinite(y)
    is_corner[1:] &= y[1:] < y[:-1]
    return np.stack([x[is_corner], y[is_corner]], axis=1)


def _best_second(F: Floats, x: Floats) -> Floats:
    """The best second objective among points whose first is at most x; inf where there is none."""
    order = np.lexsort((F[:, 1], F[:, 0]))
    best = np.concatenate([[np.inf], np.minimum.accumulate(F[order, 1])])
    return np.asarray(best[np.searchsorted(F[order, 0], x, side="right")])
