"""The command `jahs explore`: a page on which one release is explored in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from jahs.cli.arguments import Commands, to_json
from jahs.errors import InvalidArgument

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    added = commands.add(
        "explore",
        _explore,
        "Write one HTML file on which a release is explored in a browser, without a network.",
        "jahs explore --out explorer.html",
    )
    added.add_argument("--out", type=Path, required=True, metavar="FILE", help="the page, .html")
    added.add_argument("--task", default="fashion_mnist_mini", help="which task (default: fashion_mnist_mini)")
    added.add_argument("--release", metavar="FOLDER", help="a release, or a folder of runs (default: the task's own)")


def _explore(arguments: argparse.Namespace) -> str:
    out: Path = arguments.out
    if out.suffix.lower() != ".html":
        raise InvalidArgument(f"--out {out}: write a name that ends in .html")
    if not out.parent.is_dir():
        raise InvalidArgument(f"--out {out}: there is no folder {out.parent}")
    from jahs.explorer import read_subject, write_page

    subject = read_subject(arguments.task, arguments.release)
    n_bytes = write_page(subject, out)
    if arguments.json:
        facts = {
            "bytes": n_bytes,
            "page": str(out),
            "task": subject.task.name,
            "without_models": subject.without_models,
        }
        return to_json(facts)
    note = f"\n{subject.without_models} The page shows what was recorded." if subject.without_models else ""
    return f"{out} ({n_bytes / 1e6:.1f} MB){note}"
