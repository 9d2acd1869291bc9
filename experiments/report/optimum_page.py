"""The page of the exhaustive optimum, and how far optimisers end from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from experiments.analysis.optimum import N_FLOATS, Optimum, distances, ends_of_pack, find_pack, measure_optimum
from experiments.analysis.subjects import Inputs, Subject
from jahs.comparison.summaries import Interval, interval_text
from workshop.pages.document import Block, Document, Figure, Section, Table, Text, answer
from workshop.pages.drawing import draw_estimates

_METHOD: Final = f"""The search asks the released model of every cell, every choice of activation and augmentation, and
    {N_FLOATS} × {N_FLOATS} rates at full size and the last epoch, then the best 300 pairs of cell and choices again on
    a grid four times as fine. Cells that compute the same function have the same prediction, so one of each class is
    asked. Between the points of the grid a better config may exist: the models are piecewise constant in the rates."""

_NEXT: Final = """The fronts and reference points of these releases were frozen before this search, and every recorded
    hypervolume refers to them, so their best known config stays. `make release` searches exhaustively at full size
    (`--rates`), and the search for the fronts of the next release starts from the config that it finds, too. The usual
    search is that of `Benchmark.best` for this view: random configs, climbing, and a grid of the rates at the best
    one."""

_CURSE: Final = """The optimum is a maximum over millions of predictions, so the model that found it flatters it. The
    refits did not choose it: their values show how much of its lead over other configs is the error of one model."""


class _Row(NamedTuple):
    """One optimiser: its title, number of seeds, and what `distances` says."""

    title: str
    n: int
    own: Interval
    on_refits: Interval
    near: float


def optimum_page(subjects: Sequence[Subject], inputs: Inputs) -> Document:
    """Return the page."""
    found = {subject.task.title: measure_optimum(subject, n_floats=N_FLOATS) for subject in subjects}
    ends = {subject.task.title: _ends(subject, found[subject.task.title], inputs) for subject in subjects}
    said = "; ".join(
        f"{title} {one.found.value:.2f} %{_by_refits(one)}, {one.found.value - one.known:+.2f} points from what the "
        f"usual search finds{_nearest(ends[title])}"
        for title, one in found.items()
    )
    return Document(
        title="The exhaustive optimum of the released models",
        subtitle=f"The best validation accuracy that the released models predict at full size: {said}. NAS-Bench-101 "
        "knows its optimum because it is a table; here a regret is exact up to the grid of the rates.",
        sections=(
            _optima(found),
            *(_distances(subject, ends[subject.task.title]) for subject in subjects if ends[subject.task.title]),
            Section(title="The best known config of a release", blocks=(Text(_NEXT),)),
        ),
    )


def _nearest(rows: Sequence[_Row]) -> str:
    return f", and {rows[0].title} ends {interval_text(rows[0].own)} points below" if rows else ""


def _by_refits(one: Optimum) -> str:
    return f" (refits: {interval_text(_of_refits(one.on_refits))})" if len(one.on_refits) else ""


def _of_refits(values: np.ndarray) -> Interval:
    """Return the mean over refits, with 1.96 of their standard deviations."""
    error = 1.96 * float(values.std(ddof=1)) if len(values) > 1 else np.nan
    return Interval(value=float(values.mean()), low=float(values.mean()) - error, high=float(values.mean()) + error)


def _optima(found: Mapping[str, Optimum]) -> Section:
    rows = tuple(
        (
            title,
            f"{one.n_cells:,}",
            f"{one.found.n_asked:,}",
            f"{one.known:.3f}",
            f"{one.found.on_grid:.3f}",
            f"{one.found.value:.3f}",
            interval_text(_of_refits(one.on_refits)) if len(one.on_refits) else "–",
            interval_text(_of_refits(one.known_on_refits)) if len(one.on_refits) else "–",
        )
        for title, one in found.items()
    )
    configs = tuple((t, ", ".join(f"{k}={_shown(v)}" for k, v in one.found.config.items())) for t, one in found.items())
    return Section(
        title="The optimum",
        blocks=(
            Table(
                caption="Validation accuracy (%) at full size and the last epoch; refits: mean and 95 % interval",
                columns=(
                    *("task", "cells", "configs asked", "usual search", "best on the grid", "after refinement"),
                    *("optimum on refits", "usual search on refits"),
                ),
                rows=rows,
            ),
            Table(caption="The optimum", columns=("task", "config"), rows=configs, n_labels=2),
            Text(_METHOD),
            Text(_CURSE),
        ),
    )


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _ends(subject: Subject, one: Optimum, inputs: Inputs) -> list[_Row]:
    """Return where the optimisers of the study of baselines end, the nearest first; none without a pack of it."""
    pack = None if inputs.packs is None else find_pack(inputs.packs, subject)
    if pack is None:
        return []
    ends = ends_of_pack(pack, subject.task.name)
    found = [_Row(title, len(ends[title]), *of) for title, of in distances(subject, one, ends).items()]
    return sorted(found, key=lambda row: row.own.value)


def _distances(subject: Subject, rows: Sequence[_Row]) -> Section:
    first, last = rows[0], rows[-1]
    blocks: list[Block] = [
        answer(
            f"After the budget of the study of baselines, {first.title} ends {interval_text(first.own)} points "
            f"from the optimum, and {last.title} {interval_text(last.own)}."
        ),
        Figure(
            name=f"distance-{subject.task.name.replace('_', '-')}",
            caption="Distance of the last incumbent from the exhaustive optimum in points of validation accuracy: mean "
            "over seeds and 95 % interval.",
            alt="; ".join(f"{row.title} {row.own.value:.2f}" for row in rows),
            drawing=draw_estimates({row.title: row.own for row in rows}, x_label="points from the optimum"),
        ),
        Table(
            caption="Distance from the optimum in points of validation accuracy, with 95 % intervals over seeds",
            columns=("optimiser", "seeds", "on the released models", "within 0.5 points (%)", "on the refits"),
            rows=tuple(
                (row.title, str(row.n), interval_text(row.own), f"{100 * row.near:.0f}", interval_text(row.on_refits))
                for row in rows
            ),
        ),
    ]
    return Section(title=f"Distance of the optimisers on {subject.task.title}", blocks=tuple(blocks))
