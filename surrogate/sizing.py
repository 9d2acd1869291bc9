"""The smallest forest that ranks as well: fewer trees and less depth, until validation tau would fall too far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jahs.ranks import kendall_tau
from jahs.tasks import Task
from surrogate.dataset import Rows
from surrogate.model import Settings, fit_surrogate

__all__ = ["TOLERANCE", "Size", "sizes", "smallest"]

TOLERANCE: Final = 0.002
"""How much validation tau a smaller forest may lose against the best."""

_TREES: Final = (50, 100, 150, 200, 300, 400, 500)
_DEPTHS: Final = (4, 5, 6, 8, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A forest's settings, its nodes and its validation tau; None where that is not defined."""

    settings: Settings
    n_nodes: int
    tau: float | None


def sizes(
    metric: str, of_task: Task, parts: Mapping[str, Rows], best: Settings, *, depths: Sequence[int] = _DEPTHS
) -> list[Size]:
    """Measure forests of the best settings' depth and of smaller ones, each cut short at several numbers of trees."""
    found = []
    valid = parts["valid"]
    for depth in sorted({best.max_depth, *(depth for depth in depths if depth < best.max_depth)}):
        settings = replace(best, max_depth=depth)
        fitted = fit_surrogate(metric, parts["train"], of_task, settings=settings)
        measured = valid.y * valid.epoch if fitted.target == "per_epoch" else valid.y
        nodes = [text.count("\n") for text in fitted.booster.get_dump()]
        for n_trees in sorted({best.n_trees, *(n for n in _TREES if n < best.n_trees)}):
            tau = kendall_tau(measured, fitted.predict(valid.X, n_trees=n_trees))
            cut = replace(settings, n_trees=n_trees)
            found.append(Size(settings=cut, n_nodes=sum(nodes[:n_trees]), tau=None if math.isnan(tau) else tau))
    return found


def smallest(found: Sequence[Size], *, tolerance: float = TOLERANCE) -> Size:
    """Return the one with the fewest nodes whose tau is within `tolerance` of the best; the largest without any tau."""
    taus = [size.tau for size in found if size.tau is not None]
    if not taus:
        return max(found, key=lambda size: size.n_nodes)
    enough = max(taus) - tolerance
    good = [(size.n_nodes, -size.tau, size) for size in found if size.tau is not None and size.tau >= enough]
    return min(good, key=lambda entry: entry[:2])[2]
