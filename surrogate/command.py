"""What the commands have in common: the arguments that say which runs, and how a user's mistake ends."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from jahs.errors import JahsError
from jahs.stdout import write_stdout
from surrogate.dataset import FEWEST

__all__ = ["add_fewest", "add_workers", "answer", "new_parser"]


def new_parser(name: str, about: str | None, *, example: str) -> argparse.ArgumentParser:
    """The parser of `python -m surrogate.<name>`, with the folder of runs and its split."""
    parser = argparse.ArgumentParser(
        prog=f"python -m surrogate.{name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"example: python -m surrogate.{name} {example}",
    )
    parser.add_argument("runs", type=Path, help="a folder of runs")
    parser.add_argument("--split", type=Path, required=True, help="the split of its configs")
    return parser


def add_fewest(parser: argparse.ArgumentParser) -> None:
    """Let the caller say how small a fidelity group may be."""
    parser.add_argument("--fewest", type=int, default=FEWEST, help="training configs every group needs (%(default)s)")


def add_workers(parser: argparse.ArgumentParser, default: int) -> None:
    """Let the caller say how many processes work."""
    parser.add_argument("--workers", type=int, default=default, help="processes (%(default)s)")


def answer(name: str, work: Callable[[], str]) -> int:
    """Print what `work` returns and return 0; for a user's mistake print the message on stderr and return 2."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    try:
        found = work()
    except JahsError as err:
        sys.stderr.write(f"surrogate.{name}: {err}\n")
        return 2
    write_stdout(found)
    return 0
