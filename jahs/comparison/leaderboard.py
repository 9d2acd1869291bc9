"""Leaderboards of trial logs, our own and others'.

A log that contradicts the release that it names, or the rules of a simulation, is refused with the reason. Optimisers
see training noise; their incumbents are scored by the release's means. Logs with the same `Terms` are compared. The
first valid log sets the terms of the season; every other board states how its terms differ. Seeds are 0, 1, 2 and so
on; lines with other seeds, which could have been selected, rank last.

A log does not reveal a search that was done offline and replayed. A rerun (`replay`) makes the optimiser from its
code, runs it with the log's terms and seed, and refuses the log if a trial differs.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from jahs.comparison.claims import Claim, Terms, claim_of, replay
from jahs.comparison.runs import Factory, read_factory
from jahs.comparison.summaries import digits_for, estimate_text, number_text, summarize
from jahs.errors import InvalidArgument, JahsError
from jahs.simulate import read_log

_log = logging.getLogger(__name__)
_FEW_SEEDS = 10  # JAHS-Bench-201's leaderboards require as many


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refused log and the reason."""

    path: str
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One optimiser on a board: its incumbents' mean errors (%), with mean, standard error and median over seeds.

    Incumbents are chosen by the values that the optimiser saw, with or without noise, and scored by their means.
    `fixed` lists fixed values that differ from the default, and those that vary between seeds.
    """

    name: str
    settings: str
    fixed: str
    n_seeds: int
    has_chosen_seeds: bool
    valid_error: float
    valid_se: float
    valid_median: float
    test_error: float
    test_se: float
    refit_error: float  # validation error by the refits of the release, which the search did not see
    refit_se: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Comparable lines, the best first."""

    terms: Terms
    differs: Mapping[str, tuple[object, object]]  # terms that differ from the season's: here and there
    lines: tuple[Line, ...]  # one for each optimiser
    has_several_objectives: bool  # whether a log is of a study of several objectives, of which lines show one


def find_logs(paths: Iterable[Path]) -> list[Path]:
    """Return the given logs, and those in the given folders; InvalidArgument names each path that does not exist.

    Of the folder of a study, runs on refits and trainings of incumbents are left out: they do not compare.
    """
    logs: list[Path] = []
    faults, paths = [], list(paths)
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob("*.jsonl"))
            compared = [log for log in found if not _is_aside(log.relative_to(path))]
            if n_aside := len(found) - len(compared):
                _log.warning("%s: %d logs on refits or of retrained incumbents are left out", path, n_aside)
            logs += compared
        elif path.is_file():
            logs.append(path)
        else:
            faults.append(f"{path} does not exist")
    if faults or not logs:
        raise InvalidArgument("\n".join(faults or [f"there is no *.jsonl in {', '.join(map(str, paths))}; name logs"]))
    return logs


def _is_aside(log: Path) -> bool:
    return any(part.startswith("refit-") or part == "retrained" for part in log.parts[:-1])


def leaderboard(
    logs: Sequence[Path], *, opened: Callable[[str], Any], rerun: str | None = None
) -> tuple[list[Board], list[Refusal]]:
    """Check logs; return the boards of the valid ones, and the refused ones.

    Args:
        logs: files.
        opened: returns the benchmark of a task. Any: a Benchmark, or an object with the same methods.
        rerun: FILE.py:NAME of the optimiser to rerun every log with, which is read anew for each; None: no reruns.

    Raises:
        InvalidArgument: `rerun` cannot be read, or ends the process.
    """
    claims, refused = each_once({path: read_claim(path, opened=opened, rerun=rerun) for path in logs})
    return boards_of(claims.values()), refused


def read_claim(path: Path, *, opened: Callable[[str], Any], rerun: str | None = None) -> Claim | Refusal:
    """Check one log; arguments and errors as in `leaderboard`. What a rerun prints goes to stderr."""
    if rerun is None:
        return _check(path, opened)
    try:
        with redirect_stdout(sys.stderr), read_factory(rerun) as factory:
            return _check(path, opened, factory)
    except SystemExit as err:
        raise InvalidArgument(f"{rerun} called sys.exit({err.code!r}); an optimiser must not end the process") from err


def _check(path: Path, opened: Callable[[str], Any], factory: Factory | None = None) -> Claim | Refusal:
    try:
        log = read_log(path)
        bench = opened(str(log.header.get("task")))
        claim = claim_of(log, bench)
        if factory is not None:
            _log.info("%s: the rerun has the same %d trials", path, replay(factory, log, bench))
    except JahsError as err:
        return Refusal(path=str(path), fault=str(err))
    return claim


def each_once(
    found: Mapping[Path, Claim | Refusal], *, made: Collection[Path] = ()
) -> tuple[dict[Path, Claim], list[Refusal]]:
    """Return the valid logs, one of each optimiser and seed under the same terms, and the refused ones.

    Args:
        made: logs of runs that were just made; two of them may be equal, because optimisers may propose the same.
    """
    claims: dict[Path, Claim] = {}
    refused: list[Refusal] = []
    runs: dict[str, Path] = {}
    first_paths: dict[tuple[Terms, str, str, int], Path] = {}
    for path, each in found.items():
        if isinstance(each, Refusal):
            refused.append(each)
        elif runs.setdefault(each.digest, path) != path and path not in made:
            refused.append(Refusal(path=str(path), fault=f"the same run as {runs[each.digest]}"))
        elif path != (first := first_paths.setdefault((each.terms, each.name, each.settings, each.seed), path)):
            fault = f"{first} has another run of {each.name}, seed {each.seed}"
            refused.append(Refusal(path=str(path), fault=fault))
        else:
            claims[path] = each
    return claims, refused


def boards_of(claims: Iterable[Claim], *, season: Terms | None = None) -> list[Board]:
    """Return the boards, the season's first; without `season`, the first claim sets its terms."""
    by_terms: dict[Terms, dict[tuple[str, str], list[Claim]]] = {}
    for claim in claims:
        by_terms.setdefault(claim.terms, {}).setdefault((claim.name, claim.settings), []).append(claim)
    season = season or next(iter(by_terms), None)
    boards = [
        Board(
            terms=terms,
            differs=_differences(terms, season or terms),
            lines=tuple(sorted(map(_line, entries.values()), key=_place)),
            has_several_objectives=any(each.has_several_objectives for claims in entries.values() for each in claims),
        )
        for terms, entries in by_terms.items()
    ]
    return sorted(boards, key=lambda board: bool(board.differs))


def _differences(terms: Terms, season: Terms) -> dict[str, tuple[object, object]]:
    pairs = {each.name: (getattr(terms, each.name), getattr(season, each.name)) for each in fields(Terms)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _place(line: Line) -> tuple[bool, bool, float]:
    return not np.isfinite(line.valid_error), line.has_chosen_seeds, line.valid_error


def are_chosen(seeds: Collection[int]) -> bool:
    """Return whether seeds are not 0, 1, 2 and so on: then they could have been selected."""
    return set(seeds) != set(range(len(seeds)))


def seeds_text(n_seeds: int, *, has_chosen_seeds: bool) -> str:
    """Return the number of seeds, and whether they could have been selected."""
    return f"{n_seeds} (not 0, 1, 2 ...)" if has_chosen_seeds else str(n_seeds)


def _line(claims: Sequence[Claim]) -> Line:
    names = ("valid_error", "test_error", "refit_error")
    valid, test, by_refits = (summarize(np.array([getattr(claim, name) for claim in claims])) for name in names)
    seeds = {claim.seed for claim in claims}
    return Line(
        name=claims[0].name,
        settings=claims[0].settings,
        fixed=_fixed(claims),
        n_seeds=len(seeds),
        has_chosen_seeds=are_chosen(seeds),
        valid_error=float(valid.mean),
        valid_se=float(valid.se),
        valid_median=float(valid.median),
        test_error=float(test.mean),
        test_se=float(test.se),
        refit_error=float(by_refits.mean),
        refit_se=float(by_refits.se),
    )


def _fixed(claims: Sequence[Claim]) -> str:
    names = sorted({name for claim in claims for name in claim.fixed})
    distinct = [(name, {claim.fixed.get(name) for claim in claims}) for name in names]
    return ", ".join(f"{name}={next(iter(each))}" if len(each) == 1 else f"{name} varies" for name, each in distinct)


def board_text(board: Board) -> str:
    """Return a board as a text table."""
    terms = board.terms
    budget = "no budget" if terms.budget_s is None else f"{terms.budget_s:.6g} s"
    n_trials = "any number of trials" if terms.n_trials is None else f"{terms.n_trials} trials"
    noise = "draws of training noise" if terms.is_noisy else "means of trainings"
    thinking = terms.thinking if isinstance(terms.thinking, str) else f"{terms.thinking:g} s"
    rules = f"{terms.mode}; continuation {terms.continuation}; failure rate {terms.failure_rate:g}; thinking {thinking}"
    heads = ("validation error (%)", "median", "by the refits (%)", "test error (%)")
    rows = [("", "optimiser", *heads, "seeds", "fixed", "settings")]
    for place, line in enumerate(board.lines, start=1):
        few = " (few)" if line.n_seeds < _FEW_SEEDS and not line.has_chosen_seeds else ""
        valid, test = estimate_text(line.valid_error, line.valid_se), estimate_text(line.test_error, line.test_se)
        by_refits = estimate_text(line.refit_error, line.refit_se)
        median = number_text(line.valid_median, digits_for(line.valid_se))
        seeds = seeds_text(line.n_seeds, has_chosen_seeds=line.has_chosen_seeds) + few
        fixed = line.fixed or "default values"
        rows.append((f"{place}", line.name, valid, median, by_refits, test, seeds, fixed, line.settings or "–"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    workers = f"{terms.workers} worker{'s' if terms.workers > 1 else ''}"
    sizes = "".join(f"{name}={value:g}; " for name, value in terms.sizes)
    head = (
        f"{terms.task}, release {terms.release[:16]}; {len(terms.searched)} keys searched; {sizes}fidelities "
        f"{', '.join(terms.fidelities)}; {workers}, {rules}; {budget}; {n_trials}; {noise}"
    )
    return "\n".join(
        [
            head,
            *(["ranked by validation error alone; `jahs compare` ranks by hypervolume"] * board.has_several_objectives),
            *([f"terms that differ from the season's: {differences_text(board)}"] if board.differs else []),
            *("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows),
        ]
    )


def differences_text(board: Board) -> str:
    """Return the terms that differ, with this board's value and the season's."""
    return "; ".join(
        f"{name}={_shown(mine)} (season: {_shown(season)})" for name, (mine, season) in board.differs.items()
    )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{each[0]}={each[1]:g}" if isinstance(each, tuple) else each for each in value) or "none"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def board_facts(board: Board) -> dict[str, object]:
    """Return a board as JSON."""
    differs = {name: {"here": mine, "season": season} for name, (mine, season) in board.differs.items()}
    return {"terms": asdict(board.terms), "differs": differs, "lines": list(map(known_facts, board.lines))}


def known_facts(of: Any) -> dict[str, Any]:  # Any: a dataclass of JSON values
    """Return a line, a standing or a pair as JSON, with null for NaN."""
    return json.loads(json.dumps(asdict(of)), parse_constant=lambda _: None)  # type: ignore[no-any-return]  # a dict
