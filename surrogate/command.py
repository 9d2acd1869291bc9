"""Arguments that several commands share, and the check of integers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from jahs.release.models import FAMILIES
from surrogate.data.rows import FEWEST
from workshop.command import new_parser


def runs_parser(name: str, about: str | None, *, example: str, before: str = "") -> argparse.ArgumentParser:
    """Return a parser of `python -m surrogate.<name>` with the arguments RUNS and --split; `before` comes first."""
    parser = new_parser(f"surrogate.{name}", about, example=example)
    if before:
        parser.add_argument(before)
    parser.add_argument("runs", type=Path, help="a folder of runs")
    parser.add_argument("--split", type=Path, required=True, help="the split of the configs in RUNS")
    return parser


def add_release_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how a release is made: --distilled, --families and --rates."""
    add_distilled(parser, default=None)
    parser.add_argument(
        "--families", nargs="*", default=[], help=f"other model families to fit as well: {', '.join(FAMILIES)} (none)"
    )
    about = "grid points of either rate in an exhaustive search (16 take minutes); 0: no search (%(default)s)"
    parser.add_argument("--rates", type=int, default=0, help=about)


def add_distilled(parser: argparse.ArgumentParser, *, default: int | None) -> None:
    """Add --distilled; None: as many as the settings say."""
    otherwise = "as many as the settings say" if default is None else default
    about = f"random configs that a Gaussian process labels for the models of accuracies ({otherwise})"
    parser.add_argument("--distilled", type=int, default=default, help=about)


def add_fewest(parser: argparse.ArgumentParser) -> None:
    """Add --fewest."""
    parser.add_argument(
        "--fewest", type=int, default=FEWEST, help="fewest training configs in each group (%(default)s)"
    )


def integer_faults(values: Mapping[str, object], **least: int) -> list[str]:
    """Return a line for each value that is not an integer from its `least` to 2**31 - 1."""
    return [
        f"{name}={values[name]!r} must be an integer in {fewest}..2**31-1"
        for name, fewest in least.items()
        if type(value := values[name]) is not int or not fewest <= value < 2**31
    ]
