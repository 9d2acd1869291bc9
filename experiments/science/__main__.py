"""Write the page of a study of the released models.

    python -m experiments.science hyperparameters --out out/hyperparameters

Each study queries the releases of all chosen tasks and their refits, whose spread widens the intervals. `papers`
instead reads the pages of all studies, and compares the figures of papers with ours on one page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from experiments.report.writing import page_parser, run_page
from experiments.science import bootstrap, cells, encodings, hyperparameters, optimum, parameter_free, repeats
from experiments.science.papers import papers_page
from experiments.science.subjects import Subject, open_subject
from jahs.comparison.benches import release_of
from jahs.errors import InvalidArgument, UnknownName
from jahs.tasks.definitions import caveats_of
from workshop.command import add_release
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Document

_PAPERS: Final = "papers"
_TASKS: Final = ("fashion_mnist_mini", "cifar10_mini")

STUDIES: Final[Mapping[str, Callable[[Sequence[Subject]], Document]]] = {
    "hyperparameters": hyperparameters.hyperparameters_page,
    "optimum": optimum.optimum_page,
    "cells": cells.cells_page,
    "repeats": repeats.repeats_page,
    "encodings": encodings.encodings_page,
    "bootstrap": bootstrap.bootstrap_page,
    "parameter_free": parameter_free.parameter_free_page,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = page_parser(
        "experiments.science", "Write the page of a study of the released models.", example="hyperparameters"
    )
    parser.add_argument("study", metavar="STUDY", help=f"one of {', '.join([*STUDIES, _PAPERS])}")
    parser.add_argument("--task", nargs="+", default=_TASKS, help="tasks (default: %(default)s)")
    add_release(parser)
    parser.add_argument("--data", type=Path, help="folder of recorded runs and packs of studies, such as data")
    table_help = "repeats: folders of the runs of imported tables, whose recorded FLOPS are compared with exact ones"
    parser.add_argument("--table", type=Path, nargs="+", default=(), help=table_help)
    pages_help = "papers: folder of the pages of all studies, beside data, the pages of the data (default: %(default)s)"
    parser.add_argument("--pages", type=Path, default=Path("docs/studies"), help=pages_help)
    return run_page(parser, argv, _document, flags=_flags)


def _flags(given: argparse.Namespace) -> list[str]:
    if given.study == _PAPERS:
        return [_PAPERS, "--pages", str(given.pages)]
    data, table = ["--data", "DATA"] * bool(given.data), ["--table", "TABLE"] * bool(given.table)
    return [given.study, "--task", *given.task, *data, *table]


def _document(given: argparse.Namespace) -> Document:
    if given.study == _PAPERS:
        return papers_page(given.pages)
    if given.study not in STUDIES:
        raise UnknownName.of("study", given.study, (*STUDIES, _PAPERS))
    if given.table and given.study != "repeats":
        raise InvalidArgument(f"--table is an option of repeats, not of {given.study}; leave it out")
    page = partial(repeats.repeats_page, tables=given.table) if given.table else STUDIES[given.study]
    subjects = [open_subject(task, given.release, data=given.data) for task in given.task]
    releases = [release_of(subject.bench) for subject in subjects]
    versions = ", ".join(f"{r.task.name}: {r.facts.get('version')} ({r.sha256[:16]})" for r in releases)
    facts = (commit_fact(), ("releases", versions), versions_fact())
    return replace(page(subjects), caveats=caveats_of([r.task for r in releases]), facts=facts)


if __name__ == "__main__":
    sys.exit(main())
