"""The command `jahs serve`: the simulation for agents and other languages, over stdin and stdout."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from jahs.cli.arguments import Commands
from jahs.cli.stdout import leave_stdout
from jahs.comparison.terms import STUDIES, open_terms
from jahs.errors import InvalidArgument

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    added = commands.add(
        "serve",
        _serve,
        "Run an optimiser in any language in simulated time: JSON lines on stdin, replies on stdout.",
        """echo '{"do": "space"}' | jahs serve --log run.jsonl""",
    )
    added.add_argument("--log", type=Path, metavar="FILE", help="trial log, which is resumed (default: none)")
    added.add_argument(
        "--client", default="client", metavar="NAME", help="the optimiser's name in the log (default: client)"
    )
    added.add_argument("--study", default="baselines", help=f"whose terms: {', '.join(STUDIES)} (default: baselines)")
    added.add_argument("--task", default="fashion_mnist_mini", help="which task (default: fashion_mnist_mini)")
    added.add_argument("--seed", type=int, default=0, help="of training noise and failures (default: 0)")
    added.add_argument("--budget", type=float, metavar="SECONDS", help="simulated seconds (default: the study's)")
    added.add_argument("--workers", type=int, help="simulated workers (default: the study's)")
    added.add_argument("--blind", type=int, metavar="SEED", help="neutral names and permuted choices, by this seed")
    added.add_argument(
        "--release", type=Path, metavar="FOLDER", help="the release that answers (default: the task's own)"
    )
    added.add_argument("--mcp", action="store_true", help="speak the Model Context Protocol; needs jahs[mcp]")


def _serve(arguments: argparse.Namespace) -> str:
    from jahs.serve.conversation import Conversation
    from jahs.serve.transport import serve_lines

    if sys.stdin is None:  # as Python has it where a shell says <&-
        raise InvalidArgument("stdin is closed; write requests to it, one JSON object per line")
    terms = open_terms(arguments.study, arguments.task, arguments.release, arguments.budget)
    if arguments.workers is not None:
        terms = replace(terms, rules=replace(terms.rules, workers=arguments.workers))
    given = {name: getattr(arguments, name) for name in ("seed", "client", "log", "blind")}
    with Conversation(terms, **given) as conversation:
        if arguments.mcp:
            from jahs.serve.transport import make_server

            make_server(conversation).run()
        else:
            try:
                serve_lines(conversation, sys.stdin.buffer, sys.stdout.buffer)
            except BrokenPipeError:
                leave_stdout()
    return ""
