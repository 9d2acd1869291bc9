"""The page of the landscape of cells: how far the best ones reach, and what replacing an operation changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from experiments.science.cell_landscape import CUTS, GAINS, GONE, MEASURES, N_BEST, STEPS, CellLandscape, measure_cells
from experiments.science.papers import NO_SIGN, beside_paper, compared, same_sign
from experiments.science.subjects import Spread, Subject
from jahs.comparison.summaries import interval_text, number_text
from jahs.spaces.cell import OPERATIONS
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, POOL
from surrogate.data.rows import GROUP_VALUES
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import draw_curves, interval_curve

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
    accuracy falls with the distance from the best cells. Depth is the edges on the longest live path; width is the
    number of live paths, which is the greatest directed cut, the width of NAS-Bench-101."""

_WHY: Final = "the models err by as much, or cheaper operations are as good in short training; not tested"
_DIAMETER: Final = "any two of our cells are at most 6 moves apart, NAS-Bench-101's at most 26"


def cells_page(subjects: Sequence[Subject]) -> Document:
    """Return the page; nothing on it is drawn at random."""
    results = {task.title: measure_cells(task, sizes=GROUP_VALUES) for task in subjects}
    summary = "; ".join(
        f"{title}: {_percent(cells, 'within 2')} of the cells are within two moves of one of the {N_BEST} best "
        f"functions, and two cells that differ in one operation have accuracy ranks that correlate at "
        f"{_text(cells.measures, 0)}"
        for title, cells in results.items()
    )
    return Document(
        title="The landscape of cells",
        subtitle=f"{summary}. In NAS-Bench-101, 35.4 % of the space is within six moves of the closest of its 12 best "
        "graphs (at most 26 are possible), and accuracies are uncorrelated beyond six; our correlations are of ranks.",
        sections=sections_of([*_distances(results), *_replacing(results), *_shapes(results), *_sizes(results)]),
    )


def _distances(results: Mapping[str, CellLandscape]) -> Iterator[str | Block]:
    yield "Distance from the best cells"
    curves = [
        interval_curve(title, np.sqrt(STEPS), [cells.walk.at(n - 1) for n in STEPS], number=i, has_markers=False)
        for i, (title, cells) in enumerate(results.items())
    ]
    yield Figure(
        name="walk",
        caption="Exact autocorrelation of ranks over random walks, by the square root of the number of moves, as in "
        "Figure 6 of NAS-Bench-101, which correlates accuracies; bands: 1.96 standard deviations between refits.",
        alt="; ".join(f"{title}: {cells.walk.at(0).value:.2f} after one move" for title, cells in results.items()),
        drawing=draw_curves(curves, x_label="distance (square root of moves)", y_label="correlation of ranks"),
    )
    yield beside_paper("NAS-Bench-101", [row for title, cells in results.items() for row in _beside(title, cells)])
    changes = (f"{_text(r.accuracy, 2, CONV3X3, CONV1X1, sign='+')} points ({title})" for title, r in results.items())
    yield Text(
        "The halves differ because cells enter the better one by their accuracy before the replacement, which selects "
        "those that a 3x3 convolution suits; in the other cells, a 1x1 convolution instead changes the accuracy by "
        f"{', '.join(changes)}."
    )
    yield Table(
        caption="Locality around the best cells; shares of all cells",
        columns=("task", "best cells", *MEASURES),
        rows=tuple(
            (title, str(cells.n_best), *(_text(cells.measures, i) for i in range(len(MEASURES))))
            for title, cells in results.items()
        ),
    )
    yield Text(_METHOD)


def _beside(title: str, cells: CellLandscape) -> Iterator[tuple[str, ...]]:
    reach, ours = f"distance beyond which the autocorrelation is below {GONE} (square root of moves)", cells.reach.at()
    yield reach, title, "about 6", interval_text(ours), same_sign(ours), _DIAMETER
    yield "share near the best", title, "35.4 % within 6", f"{_percent(cells, 'within 2')} within 2", NO_SIGN, _DIAMETER
    for operation, (replacement, points, percent) in _PAPER.items():
        for cut, subset in enumerate(CUTS[:2]):
            change, paper = cells.accuracy.at(cut, CONV3X3, operation), f"{points} points"
            yield compared(f"{replacement}, in {subset}", title, paper, change, sign=-1, show=_signed, why=_WHY)
        if cells.time is not None:
            slower, reason = cells.time.at(CONV3X3, operation).value, "no interval: refits cover accuracies only"
            same = "yes" if slower < 0 else "no"
            yield f"{replacement}, training time", title, f"{percent} %", f"{slower:+.1f} %", same, reason
    for i, gain in enumerate(GAINS):
        paper = "a depth of 3 is best (figure 5)" if "depth" in gain else "rises up to a width of 5 (figure 5)"
        yield compared(f"mean accuracy of cells of {gain} (points)", title, paper, cells.gains.at(i), show=_signed)


_signed: Final = partial(interval_text, sign="+")


def _replacing(results: Mapping[str, CellLandscape]) -> Iterator[str | Block]:
    columns = ("from \\ to", *OPERATIONS)
    for title, cells in results.items():
        yield f"Replacing an operation: {title}"
        for k, cut in enumerate(CUTS[:2]):
            caption = f"Mean change of validation accuracy in points, in {cut}"
            yield Table(caption=caption, columns=columns, rows=_matrix(cells.accuracy, k))
        if cells.time is not None:
            caption = "Geometric mean change of the training time in percent"
            yield Table(caption=caption, columns=columns, rows=_matrix(cells.time))


def _matrix(spread: Spread, *place: int) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (name, *("–" if a == b else _text(spread, *place, a, b, sign="+") for b in range(len(OPERATIONS))))
        for a, name in enumerate(OPERATIONS)
    )


def _shapes(results: Mapping[str, CellLandscape]) -> Iterator[str | Block]:
    yield "Depth and width of the live cell"
    for title, cells in results.items():
        yield Table(
            caption=f"Predicted validation accuracy (%) on {title} by depth, the edges on the longest live path, and "
            "width, the number of live paths",
            columns=("depth", "width", "cells", "mean", "best"),
            rows=tuple(
                (*map(str, shape), f"{cells.by_shape.values[i, 0]:.0f}", *(_text(cells.by_shape, i, k) for k in (1, 2)))
                for i, shape in enumerate(cells.shapes)
            ),
            n_labels=2,
        )


def _sizes(results: Mapping[str, CellLandscape]) -> Iterator[str | Block]:
    yield "Other sizes"
    for title, cells in results.items():
        yield Table(
            caption=f"The same measures at every size on {title}, and Spearman's rho of the cells with full size",
            columns=(*GROUP_VALUES[0], *MEASURES, "rho with full size"),
            rows=tuple(
                (*map(str, size.values()), *(_text(cells.by_size, i, k) for k in range(len(MEASURES) + 1)))
                for i, size in enumerate(GROUP_VALUES)
            ),
            n_labels=len(GROUP_VALUES[0]),
            is_folded=True,
        )


def _text(spread: Spread, *place: int, sign: str = "") -> str:
    value, error = spread.values[place], spread.errors[place]
    return number_text(value, sign=sign) + ("" if np.isnan(error) else f" ± {error:.2f}")


def _percent(cells: CellLandscape, measure: str) -> str:
    share = cells.measures.at(MEASURES.index(measure), scale=100).within(0.0, 100.0)
    return f"{interval_text(share, 1)} %"
