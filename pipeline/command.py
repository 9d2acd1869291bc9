"""What the commands that add to a folder of runs have in common: their arguments, and how a mistake or a stop ends."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from jahs.errors import JahsError
from jahs.stdout import write_stdout

__all__ = ["answer", "new_parser"]


def new_parser(name: str, about: str, *, seed_of: str) -> argparse.ArgumentParser:
    """The parser of `python -m pipeline.<name>`, with task, runs, folder of images and the seed of what it says."""
    parser = argparse.ArgumentParser(
        prog=f"python -m pipeline.{name}",
        description=about,
        epilog=f"Example: python -m pipeline.{name} --task digits --runs out/digits",
    )
    parser.add_argument("--task", required=True)
    parser.add_argument("--runs", type=Path, required=True, metavar="FOLDER", help="folder of runs")
    parser.add_argument("--data-dir", type=Path, metavar="FOLDER", help="folder of the original images")
    parser.add_argument("--seed", type=int, default=0, help=f"of {seed_of} (default: %(default)s)")
    return parser


def answer(name: str, work: Callable[[], dict[str, object]]) -> int:
    """Print what `work` returns as JSON and return 0; 2 for a user's mistake, 130 where it was stopped."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        found = work()
    except JahsError as err:
        print("\n".join(f"pipeline.{name}: {line}" for line in str(err).splitlines()), file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print(f"pipeline.{name}: stopped; start again to go on", file=sys.stderr)  # noqa: T201
        return 130
    write_stdout(json.dumps(found))
    return 0
