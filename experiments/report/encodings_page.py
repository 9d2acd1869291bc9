"""The page on encodings of the cell: regret by encoding, for local search and TPE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from experiments.analysis.encodings import SEARCHES, Regrets, measure_encodings
from experiments.analysis.subjects import Inputs, Subject
from experiments.report.findings import beside_paper
from jahs.comparison.summaries import Interval, interval_text, mean_interval
from workshop.pages.document import Block, Document, Section, Table, Text
from workshop.pages.document import Figure as Drawn
from workshop.pages.drawing import Curve, draw_curves

N_SEEDS: Final = 20
N_TRIALS: Final = 100
_PAPER: Final = "TPE much better with the continuous encoding (S3, figure 6)"
_METHOD: Final = f"""Only the cell is searched, at full size with the hyperparameters of the release's reference config,
    for {N_TRIALS} proposals with {N_SEEDS} seeds, without training noise; each proposal counts, a repeated one too.
    Regret is exact: all cells are known. **adjacency** is the operation of each edge; **string** is one choice for each
    target node (5, 25 and 125), as NAS-Bench-201's string groups them; **path** is the operations on each of the four
    paths, and the cell that agrees with most of them; **continuous** is a weight for each edge, the number of heaviest
    edges that are kept, and their operations. TPE is Optuna's with its defaults. Intervals are over seeds; the last
    column is the regret of the same cells by the refits, on the refits' mean."""


def encodings_page(subjects: Sequence[Subject], inputs: Inputs) -> Document:
    """Return the page; seeds are those of the searches."""
    del inputs
    found = {subject.task.title: measure_encodings(subject, n_seeds=N_SEEDS, n_trials=N_TRIALS) for subject in subjects}
    said = "; ".join(f"{title}: {_said(of)}" for title, of in found.items())
    gains = ", ".join(f"{title} {interval_text(_gain(of))}" for title, of in found.items())
    rows = [_beside(title, of) for title, of in found.items()]
    return Document(
        title="Encodings of the cell",
        subtitle=f"Gain of the continuous encoding for TPE over adjacency, in points of validation accuracy after "
        f"{N_TRIALS} proposals: {gains}. NAS-Bench-101 finds a large gain. Smallest regrets beside those of "
        f"adjacency: {said}.",
        sections=(
            Section(title="Beside NAS-Bench-101", blocks=(beside_paper(rows), Text(_METHOD))),
            *(Section(title=title, blocks=_blocks(title, subject.task.name, found[title])) for subject in subjects
              for title in (subject.task.title,)),
        ),
    )  # fmt: skip


def _gain(of: Regrets) -> Interval:
    """Return the gain of the continuous encoding for TPE over adjacency, paired by seeds."""
    return mean_interval(of.over_time["TPE", "adjacency"][:, -1] - of.over_time["TPE", "continuous"][:, -1])


def _said(of: Regrets) -> str:
    parts = []
    for search in SEARCHES:
        ends = {name: regrets[:, -1] for (who, name), regrets in of.over_time.items() if who == search}
        best = min(ends, key=lambda name: float(ends[name].mean()))
        of_best, of_adjacency = (interval_text(mean_interval(ends[name])) for name in (best, "adjacency"))
        parts.append(f"{search}: {best} {of_best}, adjacency {of_adjacency}")
    return "; ".join(parts)


def _beside(title: str, of: Regrets) -> tuple[str, ...]:
    gain = _gain(of)
    is_same, is_other = gain.low > 0, gain.high < 0
    reason = (
        "the number of edges is one parameter"
        if is_same
        else "six operations are few, and every cell is valid, so adjacency leaves TPE nothing to repair"
    )
    what = "gain of the continuous encoding for TPE (points)"
    return what, title, _PAPER, interval_text(gain), "yes" if is_same else "no" if is_other else "not shown", reason


def _blocks(title: str, task: str, of: Regrets) -> tuple[Block, ...]:
    trials = np.arange(1.0, N_TRIALS + 1)
    figures = []
    for search in SEARCHES:
        shown = [(name, regrets) for (who, name), regrets in of.over_time.items() if who == search]
        curves = [
            Curve(title=name, x=trials, y=regrets[:, : len(trials)].mean(axis=0), number=i)
            for i, (name, regrets) in enumerate(shown)
        ]
        figures.append(
            Drawn(
                name=f"{search.replace(' ', '-').lower()}-{task.replace('_', '-')}",
                caption=f"Mean regret of {search} on {title} by encoding, in points of validation accuracy.",
                alt="; ".join(f"{name} ends at {regrets[:, -1].mean():.2f}" for name, regrets in shown),
                drawing=draw_curves(curves, x_label="proposals", y_label="regret (points)", y_scale="log"),
            )
        )
    rows = tuple(
        (*key, interval_text(mean_interval(regrets[:, -1])), interval_text(mean_interval(of.on_refits[key])))
        for key, regrets in of.over_time.items()
    )
    columns = ("search", "encoding", "regret", "on the refits")
    table = Table(caption="Final regret in points of validation accuracy", columns=columns, rows=rows, n_labels=2)
    return (*figures, table)
