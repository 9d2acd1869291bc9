"""The landscape of all 15,625 cells with fixed hyperparameters: exact sums over the whole space, as in NAS-Bench-101.

Values of cells are an array of shape (5, 5, 5, 5, 5, 5), one axis for each edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from experiments.report.writing import table
from experiments.science.moves import (
    DISTANCES,
    POINTS,
    SHAPE,
    STEPS,
    autocorrelation_of_cells,
    distance_to,
    means_of_points,
    points_of_cells,
)
from experiments.science.papers import NO_SIGN, beside_lightgbm, beside_paper, compared
from experiments.science.step_times import step_changes
from experiments.science.subjects import MAIN, Spread, Subject, fidelities_of, spread_of, values_of_cells
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import number_text
from jahs.spaces.cell import EDGES, OPERATIONS, all_ops
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, POOL
from jahs.spaces.cell.paths import PATH_EDGES, live_paths
from jahs.spaces.parameters import LARGEST
from workshop.pages.document import Block, Document, Figure, Text, sections_of
from workshop.pages.drawing import draw_curves, interval_curves
from workshop.ranks import spearman
from workshop.resampling import interval_text

N_BEST: Final = 12  # functions that count as the best: the best one and 11 others, as in NAS-Bench-101

_OF_POINTS: Final = ("correlation of neighbours", "fitness-distance correlation", *(f"within {d}" for d in DISTANCES))
MEASURES: Final = tuple(f"{name}{of}" for of in POINTS for name in _OF_POINTS)
CUTS: Final = ("all cells", "cells of at least median accuracy", "the other cells")  # by accuracy before a replacement
GAINS: Final = (
    *(f"depth 3 minus depth {less}" for less in (1, 2)),
    *(f"width {less + 1} minus width {less}" for less in (1, 2, 3)),
)
"""Compared shapes of live cells, the columns of `gains_of_shape`."""

GONE: Final = 0.05  # correlations below this value count as zero

_PAPER: Final[Mapping[int, tuple[str, float, float]]] = {
    CONV1X1: ("replacing a 3x3 by a 1x1 convolution", -1.16, -14.11),
    POOL: ("replacing a 3x3 convolution by 3x3 pooling (paper: maximum, ours: average)", -1.99, -9.84),
}
"""NAS-Bench-101, Figure 4, on all its cells: points of validation accuracy, percent of the training time."""

_METHOD: Final = f"""All 15,625 cells are queried at full size and the last epoch, with the hyperparameters of the
    release's reference config, so sums over cells are exact and only the models err: ± is 1.96 standard deviations
    between the refits. Refits cover accuracies only, so predicted training times have no interval. The paper's are
    compared with recorded times of a training step at full size, whose logarithm is regressed on the number of edges
    with each operation, the activation and TrivialAugment (± is 1.96 standard deviations of a bootstrap over configs).
    A move changes the operation of one edge. The best cells compute one of the {N_BEST} best functions, as
    NAS-Bench-101 takes its best graph and 11 others. For the measures of functions, cells that compute the same
    function are one point with their mean value, as NAS-Bench-101 counts isomorphic graphs once: a change of a dead
    edge costs nothing, and a random move leads to each function that is one move apart with equal probability. The
    paper's changes are means over all its cells. Correlations are of ranks; the fitness-distance correlation is
    negative where accuracy falls with the distance from the best cells. Width is the number of live paths: the greatest
    directed cut, as in NAS-Bench-101."""
_WHY: Final = "the models err by as much, or cheaper operations are as good in short training; not tested"
_DIAMETER: Final = "any two of our cells are at most 6 moves apart, NAS-Bench-101's at most 26"

Landscape = Mapping[str, Spread]  # measures of one task by name


def measure_cells(subject: Subject, *, fidelities: Sequence[Mapping[str, Any]]) -> Landscape:  # Any: int or float
    """Return the landscape of a task at the highest fidelity, and its measures at others.

    "by fidelity": `MEASURES` and Spearman's rho with the highest, (n_fidelities, n_measures + 1). "time", if the models
    have runtimes: mean relative change of the runtime in percent, (5, 5), as `replacements`, on the released models.
    "step time", if enough configs were profiled: see `step_changes`.
    """
    by_model = [values_of_cells(model, MAIN, LARGEST) for model in subject.models]
    measured: dict[str, Callable[[Floats], Floats]] = {
        "best cells": lambda values: _best(values).sum(),
        **{f"walk{of}": partial(autocorrelation_of_cells, is_canonical=flag) for of, flag in POINTS.items()},
        **{f"reach{of}": partial(reach_of, is_canonical=flag) for of, flag in POINTS.items()},
        "measures": measures_of,
        "accuracy": replacements,
        "shapes": shapes_of,
        "gains": gains_of_shape,
    }
    landscape = {name: spread_of([measure(values) for values in by_model]) for name, measure in measured.items()}
    by_fidelity = []
    for model, full in zip(subject.models, by_model, strict=True):
        at_each = (values_of_cells(model, MAIN, fidelity) for fidelity in fidelities)
        by_fidelity.append(np.array([[*measures_of(values), spearman(values, full)] for values in at_each]))
    landscape["by fidelity"] = spread_of(by_fidelity)
    if "runtime" in subject.bench.metrics and subject.bench.model is None:  # another family answers accuracies only
        on_log_scale = np.log(values_of_cells(subject.bench, "runtime", LARGEST))
        landscape["time"] = spread_of([100 * np.expm1(replacements(on_log_scale)[0])])
        if (release := release_of(subject.bench)).has("table.npz") and (steps := step_changes(release.table)):
            landscape["step time"] = steps
    return landscape


def reach_of(values: Floats, *, is_canonical: bool = False) -> Floats:
    """Return the square root of the moves after which that correlation is first below `GONE`; NaN if it never is."""
    is_gone = autocorrelation_of_cells(values, is_canonical=is_canonical) < GONE
    return np.sqrt(np.argmax(is_gone) + 1) if is_gone.any() else np.asarray(np.nan)


def _best(values: Floats) -> NDArray[np.bool_]:
    """Return which cells compute one of the `N_BEST` best functions; cells of a function have its mean value."""
    best = np.argsort(-means_of_points(values, is_canonical=True), kind="stable")[:N_BEST]
    return np.isin(points_of_cells(is_canonical=True), best).reshape(SHAPE)


def measures_of(values: Floats) -> Floats:
    """Return `MEASURES`; distances are those to the best functions."""
    measures = []
    for flag in POINTS.values():
        distance = means_of_points(distance_to(_best(values), is_canonical=flag), is_canonical=flag)
        measures += autocorrelation_of_cells(values, 1, is_canonical=flag).tolist()
        measures.append(np.corrcoef(rankdata(means_of_points(values, is_canonical=flag)), distance)[0, 1])
        measures += [(distance <= d).mean() for d in DISTANCES]
    return np.array(measures)


def replacements(values: Floats) -> Floats:
    """Return the mean change when an operation is replaced, (3, 5, 5), over all edges and the cells of `CUTS`.

    Row a, column b: cells with operation a on an edge against the same cells with b there; NaN over no cells.
    """
    by_edge = [np.moveaxis(values, edge, 0).reshape(len(OPERATIONS), -1) for edge in range(len(EDGES))]
    by_operation = np.hstack(by_edge)  # (5, n_edges * n_others)
    is_good = by_operation >= np.median(values)
    changes = np.full((len(CUTS), *SHAPE[:2]), np.nan)
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
    fidelities = {task.title: fidelities_of(task.bench) for task in subjects}
    results = {task.title: measure_cells(task, fidelities=fidelities[task.title]) for task in subjects}
    others = {task.title: measure_cells(other, fidelities=()) for task in subjects for other in task.on_lightgbm}
    summary = "; ".join(
        f"{title}: {_share_within_two(cells, ', functions')} of the functions and {_share_within_two(cells)} of the "
        f"cells are within two moves of one of the {N_BEST} best functions, and two cells that differ in one operation "
        f"have accuracy ranks that correlate at {_texts(cells['measures'])[0]}"
        for title, cells in results.items()
    )
    return Document(
        title="The landscape of cells",
        subtitle=f"{summary}. In NAS-Bench-101, 35.4 % of the space is within six moves of the closest of its 12 best "
        "graphs (at most 26 are possible), and accuracies are uncorrelated beyond six; our correlations are of ranks.",
        sections=sections_of([*_distances(results, others), *_tables(results, fidelities)]),
    )


def _distances(results: Mapping[str, Landscape], others: Mapping[str, Landscape]) -> Iterator[str | Block]:
    yield "Distance from the best cells"
    walks = {
        f"{title}{of}": [cells[f"walk{of}"].at(n - 1) for n in STEPS]
        for title, cells in results.items()
        for of in POINTS
    }
    curves = interval_curves(walks, np.sqrt(STEPS), has_markers=False)
    yield Figure(
        name="walk",
        caption="Exact autocorrelation of ranks over random walks from cell to cell and from function to function, by "
        "the square root of the number of moves, as in Figure 6 of NAS-Bench-101, which correlates accuracies; bands: "
        "1.96 standard deviations between refits.",
        alt="; ".join(f"{title}: {walk[0].value:.2f} after one move" for title, walk in walks.items()),
        drawing=draw_curves(curves, x_label="distance (square root of moves)", y_label="correlation of ranks"),
    )
    rows, on_lightgbm = ([row for each in found.items() for row in _beside(*each)] for found in (results, others))
    yield beside_paper("NAS-Bench-101", rows)
    yield from beside_lightgbm(rows, on_lightgbm)
    changes = {title: _texts(r["accuracy"], sign="+")[2, CONV3X3, CONV1X1] for title, r in results.items()}
    yield Text(
        "The halves differ because cells enter the better one by their accuracy before the replacement, which selects "
        "those that a 3x3 convolution suits; in the other cells, a 1x1 convolution instead changes the accuracy by "
        f"{', '.join(f'{change} points ({title})' for title, change in changes.items())}."
    )
    rows = [(title, *row) for title, cells in results.items() for row in _rows(_texts(cells["measures"]))]
    caption = "Locality around the best functions; shares of all cells and of all functions"
    yield table(caption, ("task", "points", *_OF_POINTS), rows, n_labels=2)
    counts = ", ".join(f"{cells['best cells'].values:.0f} ({title})" for title, cells in results.items())
    yield Text(f"Cells that compute one of the {N_BEST} best functions: {counts}.")
    yield Text(_METHOD)


def _beside(title: str, cells: Landscape) -> Iterator[tuple[str, ...]]:
    show = partial(interval_text, sign="+")
    for of in POINTS:
        reach = f"square root of the random moves after which the autocorrelation is below {GONE}{of}"
        yield reach, title, "about 6", interval_text(cells[f"reach{of}"].at()), NO_SIGN, _DIAMETER
        near = f"{_share_within_two(cells, of)} within 2"
        yield f"share near the best{of}", title, "35.4 % within 6", near, NO_SIGN, _DIAMETER
    for operation, (replacement, points, percent) in _PAPER.items():
        for cut, subset in enumerate(CUTS[:2]):
            change, paper = cells["accuracy"].at(cut, CONV3X3, operation), f"{points} points"
            yield compared(f"{replacement}, in {subset}", title, paper, change, sign=-1, show=show, why=_WHY)
        if "step time" in cells:
            change = cells["step time"].at(CONV3X3, operation)
            show_time = partial(interval_text, digits=1, sign="+")
            yield compared(f"{replacement}, training time (%)", title, f"{percent}", change, sign=-1, show=show_time)
    for i, gain in enumerate(GAINS):
        paper = "a depth of 3 is best (figure 5)" if "depth" in gain else "rises up to a width of 5 (figure 5)"
        yield compared(f"mean accuracy of cells of {gain} (points)", title, paper, cells["gains"].at(i), show=show)


def _share_within_two(cells: Landscape, of: str = "") -> str:
    share = cells["measures"].at(MEASURES.index(f"within 2{of}"), scale=100).within(0.0, 100.0)
    return f"{interval_text(share, 1)} %"


def _rows(texts: NDArray[np.str_]) -> list[tuple[str, ...]]:
    """Return the texts of `MEASURES` as a row of the cells and one of the functions."""
    return [(name, *row) for name, row in zip(("cells", "functions"), texts.reshape(len(POINTS), -1), strict=True)]


def _tables(
    results: Mapping[str, Landscape], fidelities: Mapping[str, Sequence[Mapping[str, object]]]
) -> Iterator[str | Block]:
    for title, cells in results.items():
        yield f"Replacing an operation: {title}"
        changes = _texts(cells["accuracy"], sign="+")
        tables = {f"Mean change of validation accuracy in points, in {CUTS[k]}": changes[k] for k in (0, 1)}
        times = {
            "time": "Geometric mean change of the training time in percent, predicted",
            "step time": "Change of the time of a training step in percent, by a regression of recorded times",
        }
        tables |= {caption: _texts(cells[name], sign="+") for name, caption in times.items() if name in cells}
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
    yield "Other fidelities"
    for title, cells in results.items():
        found = zip(fidelities[title], _texts(cells["by fidelity"]), strict=True)
        yield table(
            f"The same measures at every size and at earlier epochs on {title}, and Spearman's rho of the cells with "
            "the highest fidelity",
            (*LARGEST, "epoch", "points", *_OF_POINTS, "rho with the highest"),
            [
                (*fidelity.values(), *row, rho)
                for fidelity, (*measures, rho) in found
                for row, rho in zip(_rows(np.array(measures)), (rho, "–"), strict=True)
            ],
            n_labels=len(LARGEST) + 2,
            is_folded=True,
        )


def _texts(spread: Spread, *, sign: str = "") -> NDArray[np.str_]:
    """Return each value, ± 1.96 standard deviations between the refits if there are any."""
    texts = [
        number_text(value, sign=sign) + ("" if np.isnan(error) else f" ± {error:.2f}")
        for value, error in zip(spread.values.flat, spread.errors.flat, strict=True)
    ]
    return np.array(texts).reshape(spread.values.shape)
