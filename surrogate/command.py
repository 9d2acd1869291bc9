"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from surrogate.data.rows import FEWEST
from workshop.command import new_parser

__all__ = ["add_fewest", "add_workers", "runs_parser"]


def runs_parser(name: str, about: str | None, *, example: str) -> argparse.ArgumentParser:
    """Return a parser of `python -m surrogate.<name>` with the arguments RUNS and --split."""
    parser = new_parser(f"surrogate.{name}", about, example=example)
    parser.add_argument("runs", type=Path, help="a folder of runs")
    parser.add_argument("--split", type=Path, required=True, help="the split of its configs")
    return parser


def add_fewest(parser: argparse.ArgumentParser) -> None:
    """Add --fewest."""
    parser.add_argument("--fewest", type=int, default=FEWEST, help="training configs every group needs (%(default)s)")


def add_workers(parser: argparse.ArgumentParser, default: int) -> None:
    """Add --workers."""
    parser.add_argument("--workers", type=int, default=default, help="processes (%(default)s)")
