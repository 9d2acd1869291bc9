"""The landscape of all 15,625 cells with fixed hyperparameters: exact sums over the whole space, as in NAS-Bench-101.

Values of cells are an array of shape (5, 5, 5, 5, 5, 5), one axis for each edge. A move changes the operation of one
edge. A canonical distance counts moves between functions: cells that compute the same function are one point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from experiments.science.subjects import MAIN, Spread, Subject, answers, spread_of
from jahs.comparison.logs import Floats
from jahs.queries.benchmark import Benchmark
from jahs.queries.exhaustive import LARGEST, cell_columns, crossed
from jahs.schema import OPS
from jahs.spaces.cell import EDGES, OPERATIONS, all_ops, canonical_keys
from jahs.spaces.cell.paths import live_paths
from jahs.spaces.columns import COLUMN_DTYPES
from jahs.spaces.space import space
from workshop.ranks import spearman

N_BEST: Final = 12
"""Functions that count as the best: the best one and 11 others, as in NAS-Bench-101."""

STEPS: Final = range(1, 37)
"""Numbers of moves of a random walk, which reaches a mean distance of about their square root."""

MEASURES: Final = (
    *("correlation of neighbours", "fitness-distance correlation", "the same, canonical"),
    *(f"within {d}{suffix}" for suffix in ("", ", canonical") for d in (1, 2, 3)),
)
"""Names of the columns of `measures_of`."""

CUTS: Final = ("all cells", "cells of at least median accuracy", "the other cells")
"""Which cells a replacement is averaged over, by their accuracy before it."""

GAINS: Final = (
    *(f"depth 3 minus depth {less}" for less in (1, 2)),
    *(f"width {less + 1} minus width {less}" for less in (1, 2, 3)),
)
"""Compared shapes of live cells, the columns of `gains_of_shape`."""

GONE: Final = 0.05
"""Correlations below this value count as zero."""

_SHAPE: Final = (len(OPERATIONS),) * len(EDGES)
_LENGTHS: Final = (3, 2, 2, 1)  # edges on each of the paths of jahs.spaces.cell.PATHS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellLandscape:
    """The landscape of one task.

    Attributes:
        n_best: cells of the best functions.
        walk: correlation of ranks 1, 2, ... random moves apart.
        reach: the square root of the moves after which that correlation is first below `GONE`; NaN if it never is.
        measures: at full size, as `MEASURES`.
        accuracy: (3, 5, 5), mean change in points when the row's operation is replaced by the column's, over `CUTS`.
        time: (5, 5), mean relative change of the runtime in percent, without errors; None without runtimes.
        shapes: (depth, width) of live cells; their number of cells, mean and best accuracy are in `by_shape`.
        gains: of mean accuracy, as `GAINS`.
        by_size: (n_sizes, n_measures + 1), `MEASURES` and Spearman's rho with full size.
    """

    n_best: int
    walk: Spread
    reach: Spread
    measures: Spread
    accuracy: Spread
    time: Spread | None
    shapes: tuple[tuple[int, int], ...]
    by_shape: Spread
    gains: Spread
    by_size: Spread


def measure_cells(subject: Subject, *, sizes: Sequence[Mapping[str, object]]) -> CellLandscape:
    """Return the landscape of a task at full size, and its measures at other sizes."""
    by_model = [values_of_cells(model, MAIN, LARGEST) for model in subject.models]
    walks = [autocorrelation_of_cells(values) for values in by_model]
    shapes, shape_ids = np.unique(np.stack(live_shape(), axis=1), axis=0, return_inverse=True)
    return CellLandscape(
        n_best=int(_best(by_model[0]).sum()),
        walk=spread_of(walks),
        reach=spread_of([_reach(walk) for walk in walks]),
        measures=spread_of([measures_of(values) for values in by_model]),
        accuracy=spread_of([replacements(values) for values in by_model]),
        time=_time_changes(subject.bench),
        shapes=tuple((int(depth), int(width)) for depth, width in shapes),
        by_shape=spread_of([_by_group(values.ravel(), shape_ids.ravel(), len(shapes)) for values in by_model]),
        gains=spread_of([gains_of_shape(values) for values in by_model]),
        by_size=spread_of([_at_sizes(model, v, sizes) for model, v in zip(subject.models, by_model, strict=True)]),
    )


def autocorrelation_of_cells(values: Floats, n_steps: int = len(STEPS)) -> Floats:
    """Return the correlation of the ranks of cells 1, 2, ... random moves apart, over all walks: exact.

    Each step moves to one of the 24 neighbours with equal probability, so the expected rank after a step is a mean.
    """
    ranks = rankdata(values).reshape(_SHAPE)
    ranks -= ranks.mean()
    expected, correlations = ranks, []
    for _ in range(n_steps):
        sums = sum(expected.sum(axis=edge, keepdims=True) for edge in range(len(EDGES)))
        expected = (sums - len(EDGES) * expected) / (len(EDGES) * (len(OPERATIONS) - 1))
        correlations.append(float((ranks * expected).mean() / (ranks**2).mean()))
    return np.array(correlations)


def distance_to(chosen: NDArray[np.bool_], *, is_canonical: bool) -> NDArray[np.int64]:
    """Return the least number of moves from each cell to a chosen one, in the shape of `chosen`.

    Args:
        chosen: which cells to reach, at least one.
        is_canonical: whether moving to a cell that computes the same function costs nothing.
    """
    reached, distance = chosen, np.zeros(_SHAPE, np.int64)
    classes = canonical_keys(all_ops()).reshape(_SHAPE)
    for _ in range(len(EDGES) + 1):
        if is_canonical:
            reached = np.isin(classes, np.unique(classes[reached]))
        distance += ~reached
        reached = np.logical_or.reduce([np.broadcast_to(reached.any(axis=e, keepdims=True), _SHAPE) for e in range(6)])
    return distance


def measures_of(values: Floats) -> Floats:
    """Return `MEASURES`: the correlation of neighbours; of ranks with the distance to the best functions; and shares of
    the space within some moves of them."""
    ranks, best = rankdata(values), _best(values)
    plain, canonical = (distance_to(best, is_canonical=flag).ravel() for flag in (False, True))
    correlations = [float(np.corrcoef(ranks, distance)[0, 1]) for distance in (plain, canonical)]
    shares = [float((distance <= d).mean()) for distance in (plain, canonical) for d in (1, 2, 3)]
    return np.array([autocorrelation_of_cells(values, 1)[0], *correlations, *shares])


def replacements(values: Floats) -> Floats:
    """Return the mean change when an operation is replaced, (3, 5, 5), over all edges and the cells of `CUTS`.

    Row a, column b: cells with operation a on an edge against the same cells with b there; NaN over no cells.
    """
    by_edge = [np.moveaxis(values, edge, 0).reshape(len(OPERATIONS), -1) for edge in range(len(EDGES))]
    table = np.concatenate(by_edge, axis=1)  # (5, n_edges * n_others)
    is_good = table >= np.median(values)
    changes = np.full((len(CUTS), *_SHAPE[:2]), np.nan)
    for k, is_in in enumerate((np.ones_like(is_good), is_good, ~is_good)):
        for a in np.flatnonzero(is_in.any(axis=1)):
            changes[k, a] = (table - table[a])[:, is_in[a]].mean(axis=1)
    return changes


def _reach(walk: Floats) -> Floats:
    return np.sqrt(np.argmax(walk < GONE) + 1) if (walk < GONE).any() else np.asarray(np.nan)


def live_shape() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the depth of each cell, the edges on its longest live path, and its width, the number of live paths."""
    alive = live_paths(all_ops())
    return (alive * np.array(_LENGTHS)).max(axis=1), alive.sum(axis=1)


def gains_of_shape(values: Floats) -> Floats:
    """Return the differences of mean accuracy of `GAINS`."""
    depth, width = (np.bincount(shape, values.ravel()) / np.bincount(shape) for shape in live_shape())
    return np.array([depth[3] - depth[1], depth[3] - depth[2], *np.diff(width)[1:]])


def _best(values: Floats) -> NDArray[np.bool_]:
    """Return which cells compute one of the `N_BEST` best functions; cells of a function have its mean value."""
    classes = canonical_keys(all_ops())
    means = np.bincount(classes, values.ravel()) / np.bincount(classes)
    return np.isin(classes, np.argsort(-means, kind="stable")[:N_BEST]).reshape(_SHAPE)


def values_of_cells(bench: Benchmark, metric: str, sizes: Mapping[str, object]) -> Floats:
    """Return a metric of every cell with the hyperparameters of the reference config, or else the default ones."""
    setting = {**(bench.reference_config or space().default()), **sizes}
    settings = {name: np.array([value], COLUMN_DTYPES[name]) for name, value in setting.items() if name not in OPS}
    return answers(bench, crossed(cell_columns(all_ops()), settings), metric).reshape(_SHAPE)


def _time_changes(bench: Benchmark) -> Spread | None:
    if "runtime" not in bench.metrics:
        return None
    changes = replacements(np.log(values_of_cells(bench, "runtime", LARGEST)))
    return spread_of([100 * np.expm1(changes[0])])


def _at_sizes(bench: Benchmark, full: Floats, sizes: Sequence[Mapping[str, object]]) -> Floats:
    values_by_size = [values_of_cells(bench, MAIN, size) for size in sizes]
    return np.array([[*measures_of(values), spearman(values.ravel(), full.ravel())] for values in values_by_size])


def _by_group(values: Floats, groups: NDArray[np.intp], n: int) -> Floats:
    """Return the number of cells, the mean and the best value of each group, (n, 3)."""
    members = [values[groups == i] for i in range(n)]
    return np.array([[len(group), group.mean(), group.max()] for group in members])
