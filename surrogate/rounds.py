"""Write the page of the rounds of proposals: predictions, measurements, and how the figures changed.

python -m surrogate.rounds RUNS --split SPLIT --releases RELEASE... [--figures FIGURES...] --out PAGE

Name every release that proposed a round, the oldest first, and the result file of surrogate.figures for each. The ten
best of a long search are compared with their trainings anew, because most are trained after that file is written.
Nothing else of the test part is read, and nothing of the final test set: they must not influence the choice of a round.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.comparison.summaries import number_text
from jahs.release import Release, read_release
from jahs.schema import FINAL_SOURCE, SOURCES
from splits.split import Split
from surrogate.card.figures import figure_values, read_figures
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, check_release, read_with_split
from surrogate.data.rows import Rows, development_rows
from surrogate.figures import proposed_gap
from surrogate.judging.agreement import Scores, agreement, first_seed
from surrogate.models.optima import MAIN
from surrogate.packing import release_answers
from workshop.command import run_command
from workshop.folders import check_file, commit, write_text
from workshop.measured import rows_of
from workshop.pages.document import Block, Document, Section, Table, Text
from workshop.pages.markdown import to_markdown

_HEADS: Final = (
    "source", "release", "configs", "runs", "new configs", "predicted, points", "measured, points", "bias, points",
    "MAE, points", "tau",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOutcome:
    """One source of one round."""

    # round, source: round and source of the proposals.
    round: int
    source: str
    release: str  # the release that predicted them, "" if none is known
    # n_configs, n_runs: numbers of trained configs and runs, in train and valid.
    n_configs: int
    n_runs: int
    n_new: int = 0  # number of configs that the release was not fitted to; all other numbers are for these
    # predicted, measured: means over the new configs; None without new configs or without the release.
    predicted: float | None = None
    measured: float | None = None
    scores: Scores | None = None  # agreement of predictions and measurements, first seeds


def rounds_of(measured: Measurements, split: Split, releases: Mapping[str, Release]) -> list[RoundOutcome]:
    """Return the outcome of each source in each round, in order; configs of the test part are not read.

    A source that no release proposed is judged by the one release of its round.

    Args:
        releases: releases by the sha256 of every release with the same answers.
    """
    rows = development_rows(MAIN, measured, split)
    rows = rows.take(rows.epoch == measured.task.max_epoch)
    configs = rows_of(measured.configs, rows.config_id)
    source, number, release = (configs[name] for name in ("source", "round", "release"))
    is_listed = ~np.isin(source, ["uniform", FINAL_SOURCE])
    outcomes = []
    for this_round in np.unique(number[is_listed]).tolist():
        is_round = is_listed & (number == this_round)
        proposers = [sha256 for sha256 in np.unique(release[is_round]).tolist() if sha256]
        for name in [name for name in SOURCES if name in source[is_round]]:
            is_in = is_round & (source == name)
            candidates = [sha256 for sha256 in np.unique(release[is_in]).tolist() if sha256] or proposers
            proposer = candidates[0] if len(candidates) == 1 else ""
            outcomes.append(_outcome(rows.take(is_in), releases.get(proposer), int(this_round), name, proposer))
    return outcomes


def _outcome(rows: Rows, proposer: Release | None, number: int, source: str, sha256: str) -> RoundOutcome:
    outcome = RoundOutcome(round=number, source=source, release=sha256, n_configs=rows.n_configs, n_runs=len(rows))
    if proposer is None:
        return outcome
    is_new = first_seed(rows)
    if proposer.has("table.npz"):
        is_new &= ~np.isin(rows.config_id, proposer.table.configs["config_id"])
    first = rows.take(is_new)
    if not len(first):
        return outcome
    predicted = release_answers(proposer, MAIN, first.X)
    return replace(
        outcome,
        n_new=len(first),
        predicted=float(predicted.mean()),
        measured=float(first.y.mean()),
        scores=agreement(MAIN, first.y, predicted),
    )


def rounds_page(
    measured: Measurements,
    came: Sequence[RoundOutcome],
    figures: Sequence[dict[str, Any]],  # Any: JSON
    names: Mapping[str, str],
) -> Document:
    """Return the page of the rounds; the figures after a round are measured on the release that followed it.

    Args:
        names: names of releases by their sha256; others are named by its first digits.
    """
    by_round = {number: [row for row in came if row.round == number] for number in sorted({row.round for row in came})}
    sections = [
        Section(title=f"Round {number}", blocks=(_table(rows, names), *_missing(rows)))
        for number, rows in by_round.items()
    ]
    if not sections:
        nothing = "No config of a round is trained yet; python -m surrogate.propose writes lists of them."
        sections = [Section(title="Rounds", blocks=(Text(nothing),))]
    sections.append(Section(title="How the figures changed", blocks=tuple(_moved(figures, names))))
    return Document(
        title=f"Rounds of proposals of {measured.task.name}",
        subtitle=(
            f"The release that proposed a round predicts {MAIN} at the last epoch for configs that it was not fitted "
            "to (new configs); bias is predicted minus measured. The tables of rounds show train and validation "
            "configs."
        ),
        sections=tuple(sections),
        facts=(("commit", commit() or "none"), ("protocol", measured.protocol)),
    )


def _table(outcomes: Sequence[RoundOutcome], names: Mapping[str, str]) -> Table:
    rows = []
    for outcome in outcomes:
        counts = [str(count) for count in (outcome.n_configs, outcome.n_runs, outcome.n_new)]
        scores = outcome.scores or {}
        means = [number_text(value) for value in (outcome.predicted, outcome.measured)]
        bias = number_text(scores.get("bias"), sign="+")
        mae, tau = number_text(scores.get("mae")), number_text(scores.get("tau"), 3)
        name = names.get(outcome.release, outcome.release[:8] or "–")
        rows.append((outcome.source, name, *counts, *means, bias, mae, tau))
    return Table(caption="", columns=_HEADS, rows=tuple(rows), n_labels=2)


def _missing(outcomes: Sequence[RoundOutcome]) -> Iterator[Block]:
    if releases := sorted({o.release[:8] for o in outcomes if o.release and o.predicted is None}):
        yield Text(
            f"Not measured yet if release {', '.join(releases)} is not given (name it with --releases), or was fitted "
            "to every config."
        )


def _moved(figures: Sequence[dict[str, Any]], names: Mapping[str, str]) -> Iterator[Block]:  # Any: JSON
    if not figures:
        yield Text("Not measured yet: python -m surrogate.figures measures a release.")
        return
    columns = [figure_values(facts) for facts in figures]
    titles = [title for title, _ in columns[0]]
    rows = tuple((title, *(column[i][1] for column in columns)) for i, title in enumerate(titles))
    heads = (names.get(facts["release"], facts["release"][:8]) for facts in figures)
    yield Table(caption="", columns=("figure, ordinary test configs", *heads), rows=rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    example = "runs/ --split split.json --releases r0/ r1/ --figures f0.json f1.json --out rounds.md"
    parser = runs_parser("rounds", __doc__, example=example)
    parser.add_argument("--releases", type=Path, nargs="*", default=[], help="releases that proposed, the oldest first")
    parser.add_argument("--figures", type=Path, nargs="*", default=[], help="figures of the releases, oldest first")
    parser.add_argument("--out", type=Path, required=True, help="the page, a Markdown file")
    given = parser.parse_args(argv)

    def work() -> str:
        check_file(given.out)
        measured, split = read_with_split(given.runs, given.split)
        releases = [read_release(path) for path in given.releases]
        for release in releases:
            check_release(release, measured)
        known = {sha256: release for release in releases for sha256 in release.answers_as}
        gaps = {release.sha256: {"search": proposed_gap(release, measured)} for release in releases}
        figures = [facts | gaps.get(facts["release"], {}) for facts in map(read_figures, given.figures)]
        versions = {release.sha256: release.facts.get("version") for release in releases}
        names = {sha256: f"release {version} ({sha256[:8]})" for sha256, version in versions.items() if version}
        page = rounds_page(measured, rounds_of(measured, split, known), figures, names)
        write_text(given.out, to_markdown(page, has_figures=False))
        return str(given.out)

    return run_command("surrogate.rounds", work)


if __name__ == "__main__":
    sys.exit(main())
