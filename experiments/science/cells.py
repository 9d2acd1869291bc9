"""The landscape of all 15,625 cells with fixed hyperparameters: exact sums over the whole space, as in NAS-Bench-101.

Values of cells are an array of shape (5, 5, 5, 5, 5, 5), one axis for each edge. A move changes the operation of one
edge. A canonical distance counts moves between functions: cells that compute the same function are one point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from experiments.science.papers import NO_SIGN, beside_paper, compared, table
from experiments.science.subjects import MAIN, Spread, Subject, answers, spread_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import number_text
from jahs.queries.benchmark import Benchmark
from jahs.spaces.cell import EDGES, OPERATIONS, all_ops, canonical_keys
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, POOL
from jahs.spaces.cell.paths import PATH_EDGES, live_paths
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from surrogate.data.rows import GROUP_VALUES
from workshop.exhaustive import cells_on_grid
from workshop.pages.document import Block, Document, Figure, Text, sections_of
from workshop.pages.drawing import draw_curves, interval_curves
from workshop.ranks import spearman
from workshop.resampling import interval_text

N_BEST: Final = 12  # functions that count as the best: the best one and 11 others, as in NAS-Bench-101

STEPS: Final = range(1, 37)  # moves of a random walk, which reaches a mean distance of about their square root
MEASURES: Final = (
    *("correlation of neighbours", "fitness-distance correlation", "the same, canonical"),
    *(f"within {d}{suffix}" for suffix in ("", ", canonical") for d in (1, 2, 3)),
)
CUTS: Final = ("all cells", "cells of at least median accuracy", "the other cells")  # by accuracy before a replacement
GAINS: Final = (
    *(f"depth 3 minus depth {less}" for less in (1, 2)),
    *(f"width {less + 1} minus width {less}" for less in (1, 2, 3)),
)
"""Compared shapes of live cells, the columns of `gains_of_shape`."""

GONE: Final = 0.05  # correlations below this value count as zero
_SHAPE: Final = (len(OPERATIONS),) * len(EDGES)

_PAPER: Final[Mapping[int, tuple[str, float, float]]] = {
    CONV1X1: ("replacing a 3x3 by a 1x1 convolution", -1.16, -14.11),
    POOL: ("replacing a 3x3 convolution by 3x3 pooling (paper: maximum, ours: average)", -1.99, -9.84),
}
"""NAS-Bench-101, Figure 4, on all its cells: points of validation accuracy, percent of the training time."""

_METHOD: Final = f"""All 15,625 cells are queried at full size and the last epoch, with the hyperparameters of the
    release's reference config, so sums over cells are exact and only the models err: ± is 1.96 standard deviations
    between the refits. Refits cover accuracies only, so training times have no interval. A move changes the operation
    of one edge. The best cells compute one of the {N_BEST} best functions, as NAS-Bench-101 takes its best graph and 11
    others. Canonical distances count moves between functions, so a change of a dead edge costs nothing. The paper's
    changes are means over all its cells. Correlations are of ranks; the fitness-distance correlation is negative where
    accuracy falls with the distance from the best cells. Width is the number of live paths, which is the greatest
    directed cut, the width of NAS-Bench-101."""
_WHY: Final = "the models err by as much, or cheaper operations are as good in short training; not tested"
_DIAMETER: Final = "any two of our cells are at most 6 moves apart, NAS-Bench-101's at most 26"

Landscape = Mapping[str, Spread]  # measures of one task by name


def measure_cells(subject: Subject, *, sizes: Sequence[Mapping[str, object]]) -> Landscape:
    """Return the landscape of a task at full size, and its measures at other sizes.

    "by size": `MEASURES` and Spearman's rho with full size, (n_sizes, n_measures + 1). "time", if the release has
    runtimes: mean relative change of the runtime in percent, (5, 5), as `replacements`, on the released models.
    """
    by_model = [values_of_cells(model, MAIN, LARGEST) for model in subject.models]
    measured: dict[str, Callable[[Floats], Floats]] = {
        "best cells": lambda values: _best(values).sum(),
        "walk": autocorrelation_of_cells,
        "reach": reach_of,
        "measures": measures_of,
        "accuracy": replacements,
        "shapes": shapes_of,
        "gains": gains_of_shape,
    }
    landscape = {name: spread_of([measure(values) for values in by_model]) for name, measure in measured.items()}
    by_size = []
    for model, full in zip(subject.models, by_model, strict=True):
        at_sizes = (values_of_cells(model, MAIN, size) for size in sizes)
        by_size.append(np.array([[*measures_of(values), spearman(values, full)] for values in at_sizes]))
    landscape["by size"] = spread_of(by_size)
    if "runtime" in subject.bench.metrics:
        on_log_scale = np.log(values_of_cells(subject.bench, "runtime", LARGEST))
        landscape["time"] = spread_of([100 * np.expm1(replacements(on_log_scale)[0])])
    return landscape


def values_of_cells(bench: Benchmark, metric: str, sizes: Mapping[str, object]) -> Floats:
    """Return a metric of every cell with the hyperparameters of the reference config, or else the default ones."""
    setting = space({**(bench.reference_config or space().default()), **sizes})
    return answers(bench, cells_on_grid(all_ops(), setting), metric).reshape(_SHAPE)


def autocorrelation_of_cells(values: Floats, n_steps: int = len(STEPS)) -> Floats:
    """Return the correlation of the ranks of cells 1, 2, ... random moves apart, over all walks: exact.

    Each step moves to one of the 24 neighbours with equal probability, so the expected rank after a step is a mean.
    """
    ranks = rankdata(values).reshape(_SHAPE)
    ranks -= ranks.mean()
    expected, correlations = ranks, []
    for _ in range(n_steps):
        sums = sum(expected.sum(axis=edge, keepdims=True) for edge in range(6))
        expected = (sums - 6 * expected) / 24
        correlations.append((ranks * expected).mean() / ranks.var())
    return np.array(correlations)


def reach_of(values: Floats) -> Floats:
    """Return the square root of the moves after which that correlation is first below `GONE`; NaN if it never is."""
    is_gone = autocorrelation_of_cells(values) < GONE
    return np.sqrt(np.argmax(is_gone) + 1) if is_gone.any() else np.asarray(np.nan)


def distance_to(chosen: NDArray[np.bool_], *, is_canonical: bool) -> NDArray[np.int64]:
    """Return the least number of moves from each cell to one of the `chosen`, of which there is at least one.

    With `is_canonical`, moving to a cell that computes the same function costs nothing.
    """
    reached, distance = chosen, np.zeros(_SHAPE, np.int64)
    classes = canonical_keys(all_ops()).reshape(_SHAPE) if is_canonical else np.arange(chosen.size).reshape(_SHAPE)
    for _ in range(len(EDGES) + 1):
        reached = np.isin(classes, classes[reached])
        distance += ~reached
        reached = np.logical_or.reduce([np.broadcast_to(reached.any(axis=e, keepdims=True), _SHAPE) for e in range(6)])
    return distance


def _best(values: Floats) -> NDArray[np.bool_]:
    """Return which cells compute one of the `N_BEST` best functions; cells of a function have its mean value."""
    classes = canonical_keys(all_ops())
    means = np.bincount(classes, values.ravel()) / np.bincount(classes)
    return np.isin(classes, np.argsort(-means, kind="stable")[:N_BEST]).reshape(_SHAPE)


def measures_of(values: Floats) -> Floats:
    """Return `MEASURES`; distances are those to the best functions."""
    distances = [distance_to(_best(values), is_canonical=flag).ravel() for flag in (False, True)]
    correlations = [np.corrcoef(rankdata(values), distance)[0, 1] for distance in distances]
    shares = [(distance <= d).mean() for distance in distances for d in (1, 2, 3)]
    return np.array([*autocorrelation_of_cells(values, 1), *correlations, *shares])


def replacements(values: Floats) -> Floats:
    """Return the mean change when an operation is replaced, (3, 5, 5), over all edges and the cells of `CUTS`.

    Row a, column b: cells with operation a on an edge against the same cells with b there; NaN over no cells.
    """
    by_edge = [np.moveaxis(values, edge, 0).reshape(len(OPERATIONS), -1) for edge in range(len(EDGES))]
    by_operation = np.hstack(by_edge)  # (5, n_edges * n_others)
    is_good = by_operation >= np.median(values)
    changes = np.full((len(CUTS), *_SHAPE[:2]), np.nan)
    for k, is_in in enumerate((np.ones_like(is_good), is_good, ~is_good)):
        for a in np.flatnonzero(is_in.any(axis=1)):
            changes[k, a] = (by_operation - by_operation[a])[:, is_in[a]].mean(axis=1)
    return changes


def live_shape() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the depth of each cell, the edges on its longest live path, and its width, the number of live paths."""
    alive = live_paths(all_ops())
    return (alive * np.array([len(edges) for edges in PATH_EDGES])).max(axis=1), alive.sum(axis=1)


def shapes_of(values: Floats) -> Floats:
    """Return depth, width, number of cells, and mean and best value of each shape of a live cell, (n_shapes, 5)."""
    shapes = np.stack(live_shape(), axis=1)
    members = [(shape, values.ravel()[(shapes == shape).all(axis=1)]) for shape in np.unique(shapes, axis=0)]
    return np.array([[*shape, len(of), of.mean(), of.max()] for shape, of in members])


def gains_of_shape(values: Floats) -> Floats:
    """Return the differences of mean accuracy of `GAINS`."""
    depth, width = (np.bincount(shape, values.ravel()) / np.bincount(shape) for shape in live_shape())
    return np.array([depth[3] - depth[1], depth[3] - depth[2], *np.diff(width)[1:]])


def cells_page(subjects: Sequence[Subject]) -> Document:
    """Return the page; nothing on it is drawn at random."""
    results = {task.title: measure_cells(task, sizes=GROUP_VALUES) for task in subjects}
    summary = "; ".join(
        f"{title}: {_share_within_two(cells)} of the cells are within two moves of one of the {N_BEST} best functions, "
        "and two cells that differ in one operation have accuracy ranks that correlate at "
        + _texts(cells["measures"])[0]
        for title, cells in results.items()
    )
    return Document(
        title="The landscape of cells",
        subtitle=f"{summary}. In NAS-Bench-101, 35.4 % of the space is within six moves of the closest of its 12 best "
        "graphs (at most 26 are possible), and accuracies are uncorrelated beyond six; our correlations are of ranks.",
        sections=sections_of([*_distances(results), *_tables(results)]),
    )


def _distances(results: Mapping[str, Landscape]) -> Iterator[str | Block]:
    yield "Distance from the best cells"
    walks = {title: [cells["walk"].at(n - 1) for n in STEPS] for title, cells in results.items()}
    curves = interval_curves(walks, np.sqrt(STEPS), has_markers=False)
    yield Figure(
        name="walk",
        caption="Exact autocorrelation of ranks over random walks, by the square root of the number of moves, as in "
        "Figure 6 of NAS-Bench-101, which correlates accuracies; bands: 1.96 standard deviations between refits.",
        alt="; ".join(f"{title}: {walk[0].value:.2f} after one move" for title, walk in walks.items()),
        drawing=draw_curves(curves, x_label="distance (square root of moves)", y_label="correlation of ranks"),
    )
    yield beside_paper("NAS-Bench-101", [row for title, cells in results.items() for row in _beside(title, cells)])
    others = {title: _texts(r["accuracy"], sign="+")[2, CONV3X3, CONV1X1] for title, r in results.items()}
    yield Text(
        "The halves differ because cells enter the better one by their accuracy before the replacement, which selects "
        "those that a 3x3 convolution suits; in the other cells, a 1x1 convolution instead changes the accuracy by "
        f"{', '.join(f'{change} points ({title})' for title, change in others.items())}."
    )
    rows = [(title, f"{of['best cells'].values:.0f}", *_texts(of["measures"])) for title, of in results.items()]
    yield table("Locality around the best cells; shares of all cells", ("task", "best cells", *MEASURES), rows)
    yield Text(_METHOD)


def _beside(title: str, cells: Landscape) -> Iterator[tuple[str, ...]]:
    show, ours = partial(interval_text, sign="+"), cells["reach"].at()
    reach = f"square root of the random moves after which the autocorrelation is below {GONE}"
    yield reach, title, "about 6", interval_text(ours), NO_SIGN, _DIAMETER
    near = f"{_share_within_two(cells)} within 2"
    yield "share near the best", title, "35.4 % within 6", near, NO_SIGN, _DIAMETER
    for operation, (replacement, points, percent) in _PAPER.items():
        for cut, subset in enumerate(CUTS[:2]):
            change, paper = cells["accuracy"].at(cut, CONV3X3, operation), f"{points} points"
            yield compared(f"{replacement}, in {subset}", title, paper, change, sign=-1, show=show, why=_WHY)
        if "time" in cells:
            slower, reason = cells["time"].at(CONV3X3, operation).value, "no interval: refits cover accuracies only"
            same = "yes" if slower < 0 else "no"
            yield f"{replacement}, training time", title, f"{percent} %", f"{slower:+.1f} %", same, reason
    for i, gain in enumerate(GAINS):
        paper = "a depth of 3 is best (figure 5)" if "depth" in gain else "rises up to a width of 5 (figure 5)"
        yield compared(f"mean accuracy of cells of {gain} (points)", title, paper, cells["gains"].at(i), show=show)


def _share_within_two(cells: Landscape) -> str:
    share = cells["measures"].at(MEASURES.index("within 2"), scale=100).within(0.0, 100.0)
    return f"{interval_text(share, 1)} %"


def _tables(results: Mapping[str, Landscape]) -> Iterator[str | Block]:
    for title, cells in results.items():
        yield f"Replacing an operation: {title}"
        changes = _texts(cells["accuracy"], sign="+")
        tables = {f"Mean change of validation accuracy in points, in {CUTS[k]}": changes[k] for k in (0, 1)}
        if "time" in cells:
            tables["Geometric mean change of the training time in percent"] = _texts(cells["time"], sign="+")
        for caption, texts in tables.items():
            np.fill_diagonal(texts, "–")
            yield table(caption, ("from \\ to", *OPERATIONS), np.column_stack([OPERATIONS, texts]))
    yield "Depth and width of the live cell"
    for title, cells in results.items():
        counts = cells["shapes"].values[:, :3].astype(np.int64).astype(np.str_)
        yield table(
            f"Predicted validation accuracy (%) on {title} by depth, the edges on the longest live path, and width, "
            "the number of live paths",
            ("depth", "width", "cells", "mean", "best"),
            np.hstack([counts, _texts(cells["shapes"])[:, 3:]]),
            n_labels=2,
        )
    yield "Other sizes"
    for title, cells in results.items():
        by_size = zip(GROUP_VALUES, _texts(cells["by size"]), strict=True)
        yield table(
            f"The same measures at every size on {title}, and Spearman's rho of the cells with full size",
            (*LARGEST, *MEASURES, "rho with full size"),
            [(*size.values(), *texts) for size, texts in by_size],
            n_labels=len(LARGEST),
            is_folded=True,
        )


def _texts(spread: Spread, *, sign: str = "") -> NDArray[np.str_]:
    """Return each value, ± 1.96 standard deviations between the refits if there are any."""
    texts = [
        number_text(value, sign=sign) + ("" if np.isnan(error) else f" ± {error:.2f}")
        for value, error in zip(spread.values.flat, spread.errors.flat, strict=True)
    ]
    return np.array(texts).reshape(spread.values.shape)
