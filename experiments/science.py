"""Studies of the released models themselves, without a race of optimisers: a page each, beside the papers' figures.

    python -m experiments.science hyperparameters --out out/hyperparameters

Each study asks the releases of all chosen tasks, and their refits, whose spread widens the intervals.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import matplotlib as mpl

from experiments.analysis.subjects import Inputs, Subject, open_subject
from experiments.report.bootstrap_page import bootstrap_page
from experiments.report.build import add_page_arguments, check_target, write_document, written
from experiments.report.cells_page import cells_page
from experiments.report.encodings_page import encodings_page
from experiments.report.findings import Page
from experiments.report.hyperparameters_page import hyperparameters_page
from experiments.report.optimum_page import optimum_page
from experiments.report.repeats_page import repeats_page
from jahs.comparison.benches import release_of
from jahs.errors import UnknownName
from jahs.tasks.definitions import caveats_of
from workshop.command import new_parser, run_command
from workshop.folders import commit, package_versions, versions_text
from workshop.pages.document import Document
from workshop.pages.style import style

_TASKS: Final = ("fashion_mnist_mini", "cifar10_mini")

STUDIES: Final[Mapping[str, Callable[[Sequence[Subject], Inputs], Page]]] = MappingProxyType(
    {
        "hyperparameters": hyperparameters_page,
        "optimum": optimum_page,
        "cells": cells_page,
        "repeats": repeats_page,
        "encodings": encodings_page,
        "bootstrap": bootstrap_page,
    }
)
"""The page of each study, from its tasks and inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScienceSettings:
    """Settings of `write_study`: one field per flag, which `--help` explains."""

    study: str
    task: Sequence[str]
    seed: int
    release: Path | None
    data: Path | None
    out: Path
    docs: bool


def write_study(settings: ScienceSettings) -> Path:
    """Measure one study, write its page and return the page's path.

    Raises:
        JahsError: the settings are invalid, or there is no release.
    """
    if settings.study not in STUDIES:
        raise UnknownName.of("study", settings.study, STUDIES)
    target = check_target(settings.out)
    subjects = [open_subject(task, settings.release) for task in settings.task]
    with mpl.rc_context(dict(style())):
        page = STUDIES[settings.study](subjects, Inputs(seed=settings.seed, data=settings.data))
    found = {subject.task.name: release_of(subject.bench) for subject in subjects}
    releases = (f"{name}: {one.facts.get('version')} ({one.sha256[:16]})" for name, one in found.items())
    tasks = ("--task", *settings.task)
    data = () if settings.data is None else ("--data", "DATA")
    command = ["python", "-m", "experiments.science", settings.study, *tasks, "--seed", str(settings.seed), *data]
    document = Document(
        title=page.title,
        caveats=caveats_of([subject.task for subject in subjects]),
        subtitle=page.finding,
        sections=page.sections,
        facts=(
            ("command", shlex.join([*command, "--out", "DIR"])),
            ("commit", str(commit())),
            ("releases", ", ".join(releases)),
            ("versions", versions_text(package_versions())),
        ),
    )
    return write_document(document, target, is_for_docs=settings.docs)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of a study of the released models."
    parser = new_parser("experiments.science", about, example="hyperparameters --out out/hyperparameters")
    parser.add_argument("study", metavar="STUDY", help=f"one of {', '.join(STUDIES)}")
    parser.add_argument("--task", nargs="+", default=_TASKS, help="tasks (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws (default: %(default)s)")
    parser.add_argument("--release", type=Path, help="folder of a release, or of one per task (default: found by jahs)")
    parser.add_argument("--data", type=Path, help="folder of recorded runs and packs of studies, such as data")
    add_page_arguments(parser)
    settings = ScienceSettings(**vars(parser.parse_args(argv)))
    return run_command("experiments.science", lambda: written(write_study(settings)))


if __name__ == "__main__":
    sys.exit(main())
