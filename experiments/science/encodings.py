"""Encodings of the cell for an optimiser: regret of three searches with each, and what NAS-Bench-101 found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from experiments.science.cell_encodings import ENCODINGS, SEARCHES, SMAC_CANDIDATES, SMAC_TREES
from experiments.science.cells import values_of_cells
from experiments.science.papers import beside_paper, compared
from experiments.science.subjects import MAIN, Subject
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import interval_text, mean_interval
from jahs.queries.exhaustive import LARGEST
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import Curve, draw_curves

N_SEEDS: Final = 20
N_TRIALS: Final = 100
_METHOD: Final = f"""Only the cell is searched, at full size with the hyperparameters of the release's reference config,
    for {N_TRIALS} proposals with {N_SEEDS} seeds, without training noise; each proposal counts, a repeated one too.
    Regret is exact: all cells are known. **adjacency** is the operation of each edge; **string** is one choice for each
    target node (5, 25 and 125), as NAS-Bench-201's string groups them; **path** is the operations on each of the four
    paths, and the cell that agrees with most of them; **continuous** is a weight for each edge, the number of heaviest
    edges that are kept, and their operations. TPE is Optuna's with its defaults. SMAC has a random forest with the
    settings of NAS-Bench-101: {SMAC_TREES} trees, a third of the proposals random; the others are the best of
    {SMAC_CANDIDATES} random points by expected improvement. Intervals are over seeds; the last column is the regret of
    the same cells by the refits, on the refits' mean."""

_CLAIMS: Final = (
    (
        "gain of the continuous encoding for TPE over adjacency",
        ("TPE", "continuous"),
        ("TPE", "adjacency"),
        "large (S3, figure 6)",
        "six operations are few, and every cell is valid, so adjacency leaves TPE nothing to repair",
    ),
    (
        "lead of SMAC over TPE with adjacency",
        ("SMAC", "adjacency"),
        ("TPE", "adjacency"),
        "SMAC better; TPE like random search (figure 7)",
        "not known; TPE is Optuna's instead of Hyperopt's, and there are 15,625 cells instead of 423,000",
    ),
    (
        "lead of TPE over SMAC with the continuous encoding",
        ("TPE", "continuous"),
        ("SMAC", "continuous"),
        "TPE better (S3, figure 6)",
        "not known; the paper assumes that its settings of SMAC, tuned for adjacency, do not suit its 21 weights",
    ),
)
"""Claims of NAS-Bench-101: what, the better (search, encoding), the worse one, the paper's words, why not here."""


class Regret(NamedTuple):
    """The regret of a search with an encoding, in points."""

    over_time: Floats  # (n_seeds, n_trials), on the released models
    last: Floats  # (n_seeds,), after the last proposal
    on_refits: Floats  # (n_seeds,), of the last incumbents, mean over refits; NaN without


Regrets = Mapping[tuple[str, str], Regret]
"""By (search, encoding)."""


def measure_encodings(subject: Subject, *, n_seeds: int, n_trials: int) -> Regrets:
    """Return the regrets of every search with every encoding."""
    values, *refit_values = (values_of_cells(model, MAIN, LARGEST).ravel() for model in subject.models)
    regrets = {}
    for search, name in product(SEARCHES, ENCODINGS):
        cells = np.array([SEARCHES[search](values, ENCODINGS[name], n_trials, seed) for seed in range(n_seeds)])
        over_time = values.max() - np.maximum.accumulate(values[cells], axis=1)
        ends = cells[np.arange(n_seeds), values[cells].argmax(axis=1)]
        on_refits = [refit.max() - refit[ends] for refit in refit_values] or [np.full(n_seeds, np.nan)]
        regrets[search, name] = Regret(over_time, over_time[:, -1], np.mean(on_refits, axis=0))
    return regrets


def encodings_page(subjects: Sequence[Subject]) -> Document:
    """Return the page; seeds are those of the searches."""
    by_task = {task.title: measure_encodings(task, n_seeds=N_SEEDS, n_trials=N_TRIALS) for task in subjects}
    summary = "; ".join(f"{title}: {_summary(regrets)}" for title, regrets in by_task.items())
    rows, gains = [], []
    for (title, regrets), (claim, better, worse, paper, why) in product(by_task.items(), _CLAIMS):
        lead = mean_interval(regrets[worse].last - regrets[better].last)  # paired by seeds
        rows.append(compared(f"{claim} (points)", title, paper, lead, why=why))
        gains += [f"{title} {interval_text(lead)}"] if claim == _CLAIMS[0][0] else []
    blocks = ("Comparison with NAS-Bench-101", beside_paper("NAS-Bench-101", rows), Text(_METHOD))
    return Document(
        title="Encodings of the cell",
        subtitle=f"Gain of the continuous encoding for TPE over adjacency, in points of validation accuracy after "
        f"{N_TRIALS} proposals: {', '.join(gains)}. NAS-Bench-101 finds a large gain. Smallest regrets, and those with "
        f"adjacency: {summary}.",
        sections=sections_of([*blocks, *(block for task in subjects for block in _blocks(task, by_task[task.title]))]),
    )


def _summary(regrets: Regrets) -> str:
    parts = []
    for search in SEARCHES:
        ends = {name: mean_interval(regrets[search, name].last) for name in ENCODINGS}
        best = min(ends, key=lambda name: ends[name].value)
        texts = [f"{name} {interval_text(ends[name])}" for name in dict.fromkeys((best, "adjacency"))]
        parts.append(f"{search} with {', '.join(texts)}")
    return " and ".join(parts)


def _blocks(subject: Subject, regrets: Regrets) -> Iterator[str | Block]:
    yield subject.title
    for search in SEARCHES:
        shown = {name: regrets[search, name].over_time.mean(axis=0) for name in ENCODINGS}
        curves = [
            Curve(title=name, x=np.arange(1.0, N_TRIALS + 1), y=mean, number=i)
            for i, (name, mean) in enumerate(shown.items())
        ]
        yield Figure(
            name=f"{search.replace(' ', '-').lower()}-{subject.slug}",
            caption=f"Mean regret of {search} on {subject.title} by encoding, in points of validation accuracy.",
            alt="; ".join(f"{name} ends at {mean[-1]:.2f}" for name, mean in shown.items()),
            drawing=draw_curves(curves, x_label="proposals", y_label="regret (points)", y_scale="log"),
        )
    yield Table(
        caption="Final regret in points of validation accuracy",
        columns=("search", "encoding", "regret", "on the refits"),
        rows=tuple(
            (*key, *(interval_text(mean_interval(each)) for each in (regret.last, regret.on_refits)))
            for key, regret in regrets.items()
        ),
        n_labels=2,
    )
