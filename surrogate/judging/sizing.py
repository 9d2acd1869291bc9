"""The smallest forest with practically the same validation tau and R2: fewer trees, less depth.

Tau alone is not enough: a few trees with a small learning rate may rank well and still be far from the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jahs.tasks.definitions import Task
from surrogate.data.rows import Rows
from surrogate.judging.agreement import agreement
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import fit_surrogate

_TOLERANCE: Final = 0.002  # the most validation tau that a smaller forest may lose against the best
_TOLERANCE_R2: Final = 0.01
_TREES: Final = (50, 100, 150, 200, 300, 400, 500)
_DEPTHS: Final = (4, 5, 6, 8, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A forest's settings, its nodes, and its validation tau and R2; None where they are not defined."""

    settings: ForestSettings
    n_nodes: int
    tau: float | None
    r2: float | None


def sizes(metric: str, of_task: Task, parts: Mapping[str, Rows], best: ForestSettings) -> list[Size]:
    """Measure forests of the best settings' depth and of smaller ones, each cut short at several numbers of trees."""
    found = []
    valid = parts["valid"]
    for depth in sorted({best.max_depth, *(depth for depth in _DEPTHS if depth < best.max_depth)}):
        settings = replace(best, max_depth=depth)
        fitted = fit_surrogate(metric, parts["train"], of_task, settings=settings)
        nodes = [text.count("\n") for text in fitted.booster.get_dump()]
        for n_trees in sorted({best.n_trees, *(n for n in _TREES if n < best.n_trees)}):
            scores = agreement(metric, fitted.measured(valid), fitted.predict(valid.X, n_trees=n_trees))
            cut = replace(settings, n_trees=n_trees)
            found.append(Size(settings=cut, n_nodes=sum(nodes[:n_trees]), tau=scores["tau"], r2=scores["r2"]))
    return found


def smallest(found: Sequence[Size]) -> Size:
    """Return the forest with the fewest nodes and practically the best scores; the largest if no tau is defined.

    Of those whose R2 is within 0.01 of the best, it is the smallest whose tau is within 0.002 of the best.
    """
    known = [(size.tau, size.r2, size) for size in found if size.tau is not None and size.r2 is not None]
    if not known:
        return max(found, key=lambda size: size.n_nodes)
    enough_r2 = max(r2 for _, r2, _ in known) - _TOLERANCE_R2
    near = [(tau, size) for tau, r2, size in known if r2 >= enough_r2]
    enough = max(tau for tau, _ in near) - _TOLERANCE
    good = [(size.n_nodes, -tau, size) for tau, size in near if tau >= enough]
    return min(good, key=lambda entry: entry[:2])[2]
