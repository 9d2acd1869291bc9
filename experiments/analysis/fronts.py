"""Inverted generational distance and attainment surfaces. All objectives are minimised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jahs.comparison.logs import Floats


def igd_plus(F: Floats, *, front: Floats, ideal: Floats, nadir: Floats) -> float:
    """Return IGD+ of points to a front, objectives scaled from ideal (0) to nadir (1); inf without points."""
    import moocore  # type: ignore[import-untyped]  # ships no types

    if not len(F):
        return float("inf")
    span = np.where(nadir > ideal, nadir - ideal, 1.0)
    return float(moocore.igd_plus((F - ideal) / span, ref=(front - ideal) / span))


def attainment_surface(sets: Sequence[Floats], *, share: float) -> Floats:
    """Return the corners (k, 2) of the region that at least `share` of the sets attain, by the first objective.

    A set attains a point if it has a point at least as good in both objectives. A share of 0.5 gives the median
    attainment surface.
    """
    n_needed = int(np.ceil(round(share * len(sets), 9)))
    x = np.unique(np.concatenate([F[:, 0] for F in sets]))
    attained = np.stack([_best_second(F, x) for F in sets])  # (n_sets, n_x)
    y = np.sort(attained, axis=0)[n_needed - 1]
    is_corner = np.isfinite(y)
    is_corner[1:] &= y[1:] < y[:-1]
    return np.stack([x[is_corner], y[is_corner]], axis=1)


def _best_second(F: Floats, x: Floats) -> Floats:
    """Return the best second objective among points whose first is at most x; inf without such points."""
    order = np.lexsort((F[:, 1], F[:, 0]))
    best = np.concatenate([[np.inf], np.minimum.accumulate(F[order, 1])])
    return np.asarray(best[np.searchsorted(F[order, 0], x, side="right")])
