"""The page of the landscape of cells: how far the best ones reach, and what replacing an operation changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from experiments.science.cell_landscape import CUTS, MEASURES, N_BEST, N_STEPS, CellLandscape, Spread, measure_cells
from experiments.science.subjects import Subject, beside_paper
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import number_text
from jahs.queries.exhaustive import LARGEST
from jahs.spaces.cell import OPERATIONS
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, POOL
from workshop.numbered import FIDELITY_GROUPS
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import Curve, draw_curves

_GONE: Final = 0.05
_PAPER: Final[Mapping[int, tuple[str, float, float]]] = {
    CONV1X1: ("Replacing a 3x3 by a 1x1 convolution", -1.16, -14.11),
    POOL: ("Replacing a 3x3 convolution by 3x3 pooling (paper: maximum, ours: average)", -1.99, -9.84),
}
"""NAS-Bench-101, Figure 4, on all its cells: points of validation accuracy, percent of the training time."""

_METHOD: Final = f"""All 15,625 cells are asked at full size and the last epoch, with the hyperparameters of the
    release's reference config, so sums over cells are exact and only the models err: ± is 1.96 standard deviations
    between the refits. A move changes the operation of one edge. The best cells compute one of the {N_BEST} best
    functions, as NAS-Bench-101 takes its best graph and 11 others. Canonical distances count moves between functions,
    so a change of a dead edge costs nothing. The paper's changes are means over all its cells. Correlations are of
    ranks; the fitness-distance correlation is negative where accuracy falls with the distance from the best cells."""

_DIAMETER: Final = "any two of our cells are at most 6 moves apart, NAS-Bench-101's at most 26"


def cells_page(subjects: Sequence[Subject]) -> Document:
    """Return the page; nothing on it is drawn at random."""
    sizes = [dict(zip(LARGEST, of, strict=True)) for of in FIDELITY_GROUPS]
    found = {of.title: measure_cells(of, sizes=sizes) for of in subjects}
    said = "; ".join(
        f"{title}: {_percent(of.measures, 'within 2')} of the cells are within two moves of one of the {N_BEST} best "
        f"functions, and two cells that differ in one operation have accuracy ranks that correlate at "
        f"{_text(of.measures, 0)}"
        for title, of in found.items()
    )
    return Document(
        title="The landscape of cells",
        subtitle=f"{said}. In NAS-Bench-101, 35.4 % of the space is within six moves of the closest of its 12 best "
        "graphs (at most 26 are possible), and accuracies are uncorrelated beyond six; our correlations are of ranks.",
        sections=sections_of([*_distances(found), *_replacing(found), *_shapes(found), *_sizes(found, sizes)]),
    )


def _distances(found: Mapping[str, CellLandscape]) -> Iterator[str | Block]:
    yield "Distance from the best cells"
    distance = np.sqrt(np.arange(1, N_STEPS + 1))
    curves = [
        Curve(title=title, x=distance, y=v, low=v - e, high=v + e, number=i, is_step=False)
        for i, (title, (v, e)) in enumerate((title, of.walk) for title, of in found.items())
    ]
    yield Figure(
        name="walk",
        caption="Exact autocorrelation of ranks over random walks, by the square root of the number of moves, as in "
        "Figure 6 of NAS-Bench-101, which correlates accuracies; bands: 1.96 standard deviations between refits.",
        alt="; ".join(f"{title}: {of.walk[0][0]:.2f} after one move" for title, of in found.items()),
        drawing=draw_curves(curves, x_label="distance (square root of moves)", y_label="correlation of ranks"),
    )
    rows: list[tuple[str, ...]] = []
    for title, of in found.items():
        gone = distance[of.walk[0] < _GONE]
        ours = f"below {_GONE} beyond {gone[0]:.1f}" if len(gone) else f"above {_GONE} at {distance[-1]:.0f}"
        sign, reason = "yes" if len(gone) else "no", f"distance: square root of moves; {_DIAMETER}"
        rows.append(("autocorrelation", title, "gone beyond 6", ours, sign, reason))
        share = _percent(of.measures, "within 2")
        rows.append(("share near the best", title, "35.4 % within 6", f"{share} within 2", "–", _DIAMETER))
        rows += [_beside(title, of, other, cut) for other in _PAPER for cut in range(2)]
    yield beside_paper(rows)
    rest = (f"{_change(of, CONV1X1, 2)} points ({title})" for title, of in found.items())
    yield Text(
        "The halves differ because cells enter the better one by their accuracy before the replacement, which selects "
        "those that a 3x3 convolution suits; in the other cells, a 1x1 convolution instead changes the accuracy by "
        f"{', '.join(rest)}."
    )
    yield Table(
        caption="Locality around the best cells; shares of all cells",
        columns=("task", "best cells", *MEASURES),
        rows=tuple(
            (title, str(of.n_best), *(_text(of.measures, i) for i in range(len(MEASURES))))
            for title, of in found.items()
        ),
    )
    yield Text(_METHOD)


def _change(of: CellLandscape, other: int, cut: int) -> str:
    value, error = (each[cut, CONV3X3, other] for each in of.accuracy)
    return f"{number_text(value, sign='+')} ± {number_text(error)}"


def _beside(title: str, of: CellLandscape, other: int, cut: int) -> tuple[str, ...]:
    what, points, time = _PAPER[other]
    value, error = (each[cut, CONV3X3, other] for each in of.accuracy)
    change = np.nan if of.time is None else of.time[CONV3X3, other]
    is_same = value + error < 0 and not change >= 0
    reason = (
        "both lower"
        if is_same
        else "the change of accuracy is within the models' error"
        if abs(value) <= error
        else "cheaper operations are as good in short training"
    )
    return (
        f"{what}, in {CUTS[cut]}",
        title,
        f"{points} points, {time} % time",
        f"{_change(of, other, cut)} points, {number_text(change, 1, sign='+')} % time",
        "yes" if is_same else "no" if value > error else "not shown",
        reason,
    )


def _replacing(found: Mapping[str, CellLandscape]) -> Iterator[str | Block]:
    columns = ("from \\ to", *OPERATIONS)
    for title, of in found.items():
        yield f"Replacing an operation: {title}"
        tables = {
            f"Mean change of validation accuracy in points, in {cut}": _matrix(*(each[k] for each in of.accuracy))
            for k, cut in enumerate(CUTS[:2])
        }
        if of.time is not None:
            tables["Geometric mean change of the training time in percent"] = _matrix(of.time)
        for caption, rows in tables.items():
            yield Table(caption=caption, columns=columns, rows=rows)


def _matrix(values: Floats, errors: Floats | None = None) -> tuple[tuple[str, ...], ...]:
    def cell(a: int, b: int) -> str:
        error = "" if errors is None or np.isnan(errors[a, b]) else f" ± {errors[a, b]:.2f}"
        return "–" if a == b else f"{number_text(values[a, b], sign='+')}{error}"

    return tuple((name, *(cell(a, b) for b in range(len(OPERATIONS)))) for a, name in enumerate(OPERATIONS))


def _shapes(found: Mapping[str, CellLandscape]) -> Iterator[str | Block]:
    yield "Depth and width of the live cell"
    for title, of in found.items():
        values, errors = of.by_shape
        yield Table(
            caption=f"Predicted validation accuracy (%) on {title} by depth, the edges on the longest live path, and "
            "width, the number of live paths",
            columns=("depth", "width", "cells", "mean", "best"),
            rows=tuple(
                (*map(str, shape), f"{values[i, 0]:.0f}", *(_value(values[i, k], errors[i, k]) for k in (1, 2)))
                for i, shape in enumerate(of.shapes)
            ),
            n_labels=2,
        )


def _sizes(found: Mapping[str, CellLandscape], sizes: Sequence[Mapping[str, object]]) -> Iterator[str | Block]:
    yield "Other sizes"
    for title, of in found.items():
        yield Table(
            caption=f"The same measures at every size on {title}, and Spearman's rho of the cells with full size",
            columns=(*sizes[0], *MEASURES, "rho with full size"),
            rows=tuple(
                (*map(str, size.values()), *map(_value, *(each[i] for each in of.by_size)))
                for i, size in enumerate(sizes)
            ),
            n_labels=len(sizes[0]),
            is_folded=True,
        )


def _text(spread: Spread, place: int) -> str:
    return _value(spread[0][place], spread[1][place])


def _value(value: float, error: float) -> str:
    return f"{value:.2f}" if np.isnan(error) else f"{value:.2f} ± {error:.2f}"


def _percent(spread: Spread, name: str) -> str:
    value, error = (100 * of[MEASURES.index(name)] for of in spread)
    bounds = "" if np.isnan(error) else f" ({max(value - error, 0):.0f} to {min(value + error, 100):.0f})"
    return f"{value:.1f} %{bounds}"
