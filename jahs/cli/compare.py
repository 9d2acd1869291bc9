"""The commands compare, leaderboard and serve: optimisers under the terms of a study, and trial logs of any origin."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

from jahs.cli.arguments import Commands, add_task, names, to_json
from jahs.cli.signals import on_sigterm
from jahs.cli.stdout import format_table, leave_stdout, write_stdout
from jahs.comparison.benches import open_benchmark
from jahs.comparison.compare import BASELINES, compare
from jahs.comparison.leaderboard import Refusal, board_facts, board_text, find_logs, leaderboard
from jahs.comparison.page import HEAD, few_seeds, standing_row
from jahs.comparison.terms import STUDIES, open_terms
from jahs.errors import InvalidArgument, JahsError, MissingData
from jahs.tasks.definitions import DEFAULT_TASK


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.add("compare", _compare, "jahs compare mine.py:Climber --study baselines --seeds 20 --out out")
    parser.add_argument("entries", nargs="+", metavar="FILE.py:NAME", help="your optimisers, or logs and their folders")
    parser.add_argument("--out", type=Path, default=Path("compared"), help="folder to write to (default: %(default)s)")
    parser.add_argument("--study", help=f"study: {', '.join(STUDIES)} (default: the log's, or baselines)")
    parser.add_argument("--task", help=f"name of the task (default: the log's or the release's, or {DEFAULT_TASK})")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds: 0, 1, 2 and so on (default: 20)")
    about_against = f"baselines to run, such as {','.join(BASELINES[:3])} (default: the results of the study)"
    parser.add_argument("--against", type=names, help=about_against)
    about_beside = "shipped results to show, such as dehb,syne_tune_bohb (default: all without a prior)"
    parser.add_argument("--beside", type=names, help=about_beside)
    parser.add_argument("--workers", type=int, default=2, help="number of processes (default: 2)")
    parser.add_argument("--limit-s", type=float, default=600.0, help="maximum seconds per run (default: 600)")
    parser.add_argument("--release", type=Path, help="folder of a release, or of one per task (default: found by jahs)")
    parser = commands.add("leaderboard", _leaderboard, "jahs leaderboard out/joint my-optimiser.jsonl")
    parser.add_argument("logs", type=Path, nargs="+", help="trial logs, or folders with logs")
    parser.add_argument("--release", type=Path, help="folder of a release, or of one per task (default: found by jahs)")
    parser.add_argument("--rerun", metavar="FILE.py:NAME", help="run the optimiser again, and compare trial by trial")
    parser = commands.add("serve", _serve, """echo '{"do": "space"}' | jahs serve --log run.jsonl""")
    parser.add_argument("--log", type=Path, metavar="FILE", help="trial log, which is resumed (default: none)")
    parser.add_argument("--client", default="client", metavar="NAME", help="name in the log (default: client)")
    parser.add_argument("--study", default="baselines", help=f"study: {', '.join(STUDIES)} (default: baselines)")
    add_task(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of training noise and failures (default: 0)")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="simulated seconds (default: the study's)")
    parser.add_argument("--workers", type=int, help="simulated workers (default: the study's)")
    parser.add_argument("--blind", type=int, metavar="SEED", help="neutral names and permuted choices, from this seed")
    parser.add_argument("--mcp", action="store_true", help="speak the Model Context Protocol; needs the package mcp")


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _compare(arguments: argparse.Namespace) -> str:
    """Compare your optimiser or logs with the results of a study: run, check, rank and write a page."""
    options = ("out", "study", "task", "seeds", "workers", "limit_s", "release", "against", "beside")
    progress = _show_progress if sys.stderr.isatty() else None
    given = {name: getattr(arguments, name) for name in options}
    with on_sigterm(_end):
        comparison = compare(*arguments.entries, **given, progress=progress)
    rows = [standing_row(place, each) for place, each in enumerate(comparison.standings, 1)]
    others = [board_text(board) for board in comparison.boards[1:]]
    parts = [format_table(HEAD, rows), *others, few_seeds(comparison), f"The page: {comparison.out / 'index.html'}"]
    text = "\n\n".join(filter(None, parts))
    return _result(arguments, text, comparison.facts(), comparison.refused)


def _leaderboard(arguments: argparse.Namespace) -> str:
    """Check trial logs against the release that they name, and compare the valid ones."""
    if arguments.release is not None and not arguments.release.is_dir():
        raise MissingData(
            f"--release {arguments.release} is not a folder; give the folder of a release, or a folder with one "
            "release per task"
        )
    boards, refused = leaderboard(
        find_logs(arguments.logs),
        opened=lambda task: open_benchmark(task, arguments.release),
        rerun=arguments.rerun,
    )
    facts = {"boards": [*map(board_facts, boards)], "refused": [*map(asdict, refused)]}
    return _result(arguments, "\n\n".join(map(board_text, boards)), facts, refused)


def _result(arguments: argparse.Namespace, text: str, facts: Mapping[str, object], refused: Sequence[Refusal]) -> str:
    """Return the result; if some logs were refused, print it and raise an error that names them: exit code 1."""
    if arguments.json:
        text = to_json(facts)
    if refused:
        write_stdout(text)
        raise JahsError("\n".join(f"refused {each.path}: {each.fault}" for each in refused))
    return text


def _show_progress(n_done: int, n_all: int) -> None:
    sys.stderr.write(f"\r{n_done}/{n_all} runs" + ("\n" if n_done == n_all else ""))
    sys.stderr.flush()


def _serve(arguments: argparse.Namespace) -> str:
    """Run an optimiser in any language in simulated time: JSON lines on stdin, replies on stdout."""
    from jahs.serve.conversation import Conversation
    from jahs.serve.transport import serve_lines, serve_tools

    if sys.stdin is None:  # Python sets it to None after `<&-` in a shell
        raise InvalidArgument("stdin is closed; write requests to it, one JSON object per line")
    terms = open_terms(arguments.study, arguments.task, arguments.release, arguments.budget)
    if arguments.workers is not None:
        terms = replace(terms, rules=replace(terms.rules, workers=arguments.workers))
    options = {name: getattr(arguments, name) for name in ("seed", "client", "log", "blind")}
    with Conversation(terms, **options) as conversation:
        if arguments.mcp:
            serve_tools(conversation)
        else:
            try:
                serve_lines(conversation, sys.stdin.buffer, sys.stdout.buffer)
            except BrokenPipeError:
                leave_stdout()
    return ""
