"""A leaderboard from trial logs, ours and other people's, with every claim worked out again.

    python -m experiments.leaderboard LOGS... [--release DIR]
    python -m experiments.leaderboard --rerun mine.py:Climber LOGS...

Logs (files, or folders of *.jsonl) are checked against the release that they name: every metric of every trial is asked
again, and no trial may take less time than its training costs. A log that does not match is refused, and why is said.
Those that are left are compared where they have the same terms: task, release, searched keys, fidelities, workers,
budget, number of trials, mode, continuation, failure rate, thinking and noise. An optimiser's settings, and values that
a view fixes otherwise than by default, stand beside it. The first log that counts has the season's terms; every other
board says in which terms it differs. Seeds are 0, 1, 2 and so on: a line of other seeds, which could have been chosen,
comes after those.

A search that was done off-line and replayed cannot be seen in a log. `--rerun` finds it: it makes the optimiser from
its code, runs it under the log's terms and seed, and refuses the log if a trial differs.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from experiments.analysis.summaries import summarize
from experiments.benches import open_benchmark
from experiments.claims import Claim, Terms, claim_of
from experiments.replay import Factory, read_factory, replay
from jahs.errors import InvalidArgument, JahsError
from jahs.simulate import read_log
from workshop.command import Failed, new_parser, run_command

__all__ = ["Board", "Line", "Refusal", "find_logs", "leaderboard", "main"]

_log = logging.getLogger(__name__)
_FEW_SEEDS = 10  # as many as JAHS-Bench-201's leaderboards ask for


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A log that does not count, and why."""

    path: str
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One optimiser on a board: errors in percent, mean and standard error over seeds (NaN for a single one).

    `fixed` names the values that its views fix otherwise than by default, and those that vary from seed to seed.
    """

    name: str
    settings: str
    fixed: str
    n_seeds: int
    has_chosen_seeds: bool
    valid_error: float
    valid_se: float
    test_error: float
    test_se: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Lines that may be compared, the best first.

    Attributes:
        terms: of all its logs.
        lines: one for each optimiser.
        differs: the terms that are not the season's, by name: this board's and the season's; none on the season's own.
    """

    terms: Terms
    differs: Mapping[str, tuple[object, object]]
    lines: tuple[Line, ...]


def find_logs(paths: Iterable[Path]) -> list[Path]:
    """Return the logs that are named, and those in the folders that are named.

    Raises:
        InvalidArgument: a path does not exist, or there is no log at all.
    """
    found: list[Path] = []
    faults = []
    for path in paths:
        if path.is_dir():
            found += sorted(path.rglob("*.jsonl"))
        elif path.is_file():
            found.append(path)
        else:
            faults.append(f"{path} does not exist")
    if faults or not found:
        raise InvalidArgument("\n".join(faults or ["there is no *.jsonl in these folders"]))
    return found


def leaderboard(
    logs: Sequence[Path],
    *,
    opened: Callable[[str], Any],
    factory: Factory | None = None,
) -> tuple[list[Board], list[Refusal]]:
    """Return the boards of all logs, and the logs that were refused.

    Args:
        logs: files.
        opened: returns what answers for a task; Any: a Benchmark, or what answers like one.
        factory: makes the optimiser that is to be run again for every log; None: logs are checked alone.
    """
    claims: list[Claim] = []
    refused: list[Refusal] = []
    runs: dict[str, Path] = {}
    for path in logs:
        try:
            log = read_log(path)
            bench = opened(str(log.header.get("task")))
            claim = claim_of(log, bench)
            if factory is not None:
                _log.info("%s: the rerun has the same %d trials", path, replay(factory, log, bench))
        except JahsError as err:
            refused.append(Refusal(path=str(path), fault=str(err)))
            continue
        if claim.digest in runs:
            refused.append(Refusal(path=str(path), fault=f"the same run as {runs[claim.digest]}"))
            continue
        runs[claim.digest] = path
        claims.append(claim)
    return _boards(claims), refused


def _boards(claims: Sequence[Claim]) -> list[Board]:
    by_terms: dict[Terms, dict[tuple[str, str], list[Claim]]] = {}
    for claim in claims:
        by_terms.setdefault(claim.terms, {}).setdefault((claim.name, claim.settings), []).append(claim)
    return [
        Board(
            terms=terms,
            differs=_differences(terms, next(iter(by_terms))),
            lines=tuple(sorted(map(_line, entries.values()), key=_place)),
        )
        for terms, entries in by_terms.items()
    ]


def _differences(terms: Terms, season: Terms) -> dict[str, tuple[object, object]]:
    pairs = {each.name: (getattr(terms, each.name), getattr(season, each.name)) for each in fields(Terms)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _place(line: Line) -> tuple[bool, bool, float]:
    return not np.isfinite(line.valid_error), line.has_chosen_seeds, line.valid_error


def _line(claims: Sequence[Claim]) -> Line:
    valid, test = (summarize(np.array([getattr(c, name) for c in claims])) for name in ("valid_error", "test_error"))
    seeds = {claim.seed for claim in claims}
    return Line(
        name=claims[0].name,
        settings=claims[0].settings,
        fixed=_fixed(claims),
        n_seeds=len(seeds),
        has_chosen_seeds=seeds != set(range(len(seeds))),
        valid_error=float(valid.mean),
        valid_se=float(valid.se),
        test_error=float(test.mean),
        test_se=float(test.se),
    )


def _fixed(claims: Sequence[Claim]) -> str:
    names = sorted({name for claim in claims for name in claim.fixed})
    values = {name: {claim.fixed.get(name) for claim in claims} for name in names}
    return ", ".join(f"{name}={next(iter(of))}" if len(of) == 1 else f"{name} varies" for name, of in values.items())


def _text(board: Board) -> str:
    terms = board.terms
    budget = "no budget" if terms.budget_s is None else f"{terms.budget_s:.6g} s"
    n_trials = "any number of trials" if terms.n_trials is None else f"{terms.n_trials} trials"
    noise = "draws of training noise" if terms.is_noisy else "means of trainings"
    thinking = terms.thinking if isinstance(terms.thinking, str) else f"{terms.thinking:g} s"
    rules = f"{terms.mode}; continuation {terms.continuation}; failure rate {terms.failure_rate:g}; thinking {thinking}"
    rows = [("", "optimiser", "validation error (%)", "test error (%)", "seeds", "fixed", "settings")]
    for place, line in enumerate(board.lines, start=1):
        few = " (not 0, 1, 2 ...)" if line.has_chosen_seeds else " (few)" if line.n_seeds < _FEW_SEEDS else ""
        valid, test = _estimate(line.valid_error, line.valid_se), _estimate(line.test_error, line.test_se)
        seeds, fixed = f"{line.n_seeds}{few}", line.fixed or "by default"
        rows.append((f"{place}", line.name, valid, test, seeds, fixed, line.settings or "–"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head = (
        f"{terms.task}, release {terms.release[:16]}; {len(terms.searched)} keys searched; fidelities "
        f"{', '.join(terms.fidelities)}; {terms.workers} workers, {rules}; {budget}; {n_trials}; {noise}"
    )
    differs = [f"{name}={mine!r}, the season's {season!r}" for name, (mine, season) in board.differs.items()]
    return "\n".join(
        [
            head,
            *([f"another board than the season's: {'; '.join(differs)}"] if differs else []),
            *("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows),
        ]
    )


def _estimate(mean: float, se: float) -> str:
    return " ± ".join("–" if math.isnan(number) else f"{number:.3f}" for number in (mean, se))


def _board_facts(board: Board) -> dict[str, object]:
    differs = {name: {"here": mine, "season": season} for name, (mine, season) in board.differs.items()}
    return {"terms": asdict(board.terms), "differs": differs, "lines": list(map(_facts, board.lines))}


def _facts(line: Line) -> dict[str, object]:
    """A line as JSON has it: null for what is not a number."""
    facts = asdict(line)
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in facts.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status: 1 if some logs were refused."""
    about = "Check trial logs against the release that they name, and compare those that match."
    parser = new_parser("experiments.leaderboard", about, example="out/joint my-optimiser.jsonl")
    parser.add_argument("logs", type=Path, nargs="+", help="trial logs, or folders of them")
    parser.add_argument("--release", type=Path, help="folder of a release, or of one per task (default: found by jahs)")
    parser.add_argument(
        "--rerun", metavar="FILE.py:NAME", help="run the optimiser that NAME makes again, and compare trial by trial"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)

    def work() -> object:
        boards, refused = leaderboard(
            find_logs(given.logs),
            opened=lambda task: open_benchmark(task, given.release),
            factory=None if given.rerun is None else read_factory(given.rerun),
        )
        for refusal in refused:
            _log.warning("refused %s: %s", refusal.path, refusal.fault)
        content = {
            "boards": [_board_facts(board) for board in boards],
            "refused": [asdict(refusal) for refusal in refused],
        }
        result = content if given.json else "\n\n".join(map(_text, boards))
        return Failed(result) if refused else result

    return run_command("experiments.leaderboard", work)


if __name__ == "__main__":
    sys.exit(main())
