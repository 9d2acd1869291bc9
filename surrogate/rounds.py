"""Write the page of the rounds of proposals: what was predicted, what came, and how the figures moved.

python -m surrogate.rounds RUNS --split SPLIT --releases RELEASE... [--figures FIGURES...] --out DIR

Name every release that proposed a round, the oldest first, and what surrogate.figures measured of each. The test part
and the final test set are not read: a round must not be chosen by them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.summaries import number_text
from jahs.errors import ProtocolMismatch
from jahs.release import Release, read_release
from surrogate.card.cells import write_page
from surrogate.card.figures import figure_values
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.judging.figure_file import read_figures
from surrogate.judging.rounds import Came, Known, rounds_of
from surrogate.models.optima import MAIN
from surrogate.packing import release_answers
from workshop.command import run_command
from workshop.folders import commit
from workshop.pages.document import Block, Document, Section, Table, Text

_HEADS = (
    "source",
    "release",
    "configs",
    "runs",
    "new configs",
    "predicted, points",
    "measured, points",
    "bias, points",
    "MAE, points",
    "tau",
)


def rounds_page(
    measured: Measurements,
    came: Sequence[Came],
    figures: Sequence[dict[str, Any]],  # Any: JSON
) -> Document:
    """Return the page of the rounds; a round's last figures are those of the release that came after it."""
    by_round = {number: [one for one in came if one.round == number] for number in sorted({one.round for one in came})}
    sections = [
        Section(title=f"Round {number}", blocks=(_table(of_round), *_missing(of_round)))
        for number, of_round in by_round.items()
    ]
    if not sections:
        nothing = "No config of a round is trained yet; python -m surrogate.propose writes lists of them."
        sections = [Section(title="Rounds", blocks=(Text(nothing),))]
    sections.append(Section(title="How the figures moved", blocks=tuple(_moved(figures))))
    return Document(
        title=f"Rounds of proposals of {measured.task.name}",
        subtitle=(
            f"Predictions of {MAIN} at the last epoch are by the release that proposed the round, for configs that it "
            "did not know; bias is predicted minus measured. Only train and validation configs are shown."
        ),
        sections=tuple(sections),
        facts=(("commit", commit() or "none"), ("protocol", measured.protocol)),
    )


def _table(of_round: Sequence[Came]) -> Table:
    rows = []
    for one in of_round:
        counts = [str(count) for count in (one.n_configs, one.n_runs, one.n_new)]
        scores = one.scores or {}
        means = [number_text(value) for value in (one.predicted, one.measured)]
        errors = [
            number_text(scores.get("bias"), sign="+"),
            number_text(scores.get("mae")),
            number_text(scores.get("tau"), 3),
        ]
        rows.append((one.source, one.release[:8] or "–", *counts, *means, *errors))
    return Table(caption="", columns=_HEADS, rows=tuple(rows), n_labels=2)


def _missing(of_round: Sequence[Came]) -> Iterator[Block]:
    if lacking := sorted({one.release[:8] for one in of_round if one.release and one.predicted is None}):
        yield Text(
            f"Not measured yet where release {', '.join(lacking)} is not at hand, or knew every config: name it with "
            "--releases."
        )


def _moved(figures: Sequence[dict[str, Any]]) -> Iterator[Block]:  # Any: JSON
    if not figures:
        yield Text("Not measured yet: python -m surrogate.figures measures a release.")
        return
    values = [figure_values(found) for found in figures]
    titles = [title for title, _ in values[0]]
    rows = tuple((title, *(of[i][1] for of in values)) for i, title in enumerate(titles))
    heads = ("figure, ordinary test configs", *(f"release {found['release'][:8]}" for found in figures))
    yield Table(caption="", columns=heads, rows=rows)


def _known(release: Release, measured: Measurements) -> Known:
    if release.facts.get("protocol") != measured.protocol:
        raise ProtocolMismatch(
            f"{release.path} is of protocol {release.facts.get('protocol')}, the runs are of {measured.protocol}"
        )

    def ask(X: NDArray[np.float32]) -> NDArray[np.float64]:
        return release_answers(release, MAIN, X)

    return ask, release.table.configs["config_id"] if release.has("table.npz") else np.empty(0, np.uint64)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    example = "runs/ --split split.json --releases r0/ r1/ --figures f0.json f1.json --out rounds/"
    parser = runs_parser("rounds", __doc__, example=example)
    parser.add_argument("--releases", type=Path, nargs="*", default=[], help="those that proposed, the oldest first")
    parser.add_argument("--figures", type=Path, nargs="*", default=[], help="of the releases, the oldest first")
    parser.add_argument("--out", type=Path, required=True, help="a folder for rounds.md and rounds.html")
    given = parser.parse_args(argv)

    def work() -> str:
        measured, split = read_with_split(given.runs, given.split)
        releases = [read_release(path) for path in given.releases]
        known = {sha256: _known(release, measured) for release in releases for sha256 in release.answers_as}
        figures = [read_figures(path) for path in given.figures]
        page = rounds_page(measured, rounds_of(measured, split, known), figures)
        return "\n".join(map(str, write_page(given.out, "rounds", page)))

    return run_command("surrogate.rounds", work)


if __name__ == "__main__":
    sys.exit(main())
