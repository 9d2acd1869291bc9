"""Write the page of all leaderboards of a season, from its packs.

python -m experiments.leaderboard data/studies/SEASON --data data --docs --out docs/studies/leaderboard
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import experiments.studies
from experiments.folder import read_folder
from experiments.imported import open_for_study
from experiments.packs import MANIFEST, check_season, season_of
from experiments.report.boards import fidelity_board, study_board
from experiments.report.incumbents import read_trained
from experiments.report.results import read_results
from experiments.report.writing import page_parser, run_page
from experiments.studies import FIDELITY, MULTIOBJECTIVE
from experiments.study import TaskFacts
from jahs.errors import MissingData
from jahs.tasks.definitions import TASKS, caveats_of
from workshop.command import add_release
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Block, Document, led_by_answer, sections_of


def leaderboard_page(packs: Path, *, release: Path | None, data: Path | None) -> Document:
    """Return the page of the packs of a season; it says which boards are missing because their study has no pack.

    Args:
        packs: the folder of the packs.
        release: the folder of a release, or of one per task; None: found by `jahs`.
        data: a folder with records of `experiments.retrain`, such as data; None: nothing is shown as trained.

    Raises:
        MissingData: the folder has no pack of a study with a board.
        ProtocolMismatch: the packs are of different seasons, or of another one than the releases.
    """
    declared = experiments.studies.STUDIES.values()
    # Where several worlds answer, there is no common order, so there is no board.
    titles = {study.name: study.title for study in declared if all(arm.world == "release" for arm in study.arms)}
    found = [name for name in titles if (packs / name / MANIFEST).is_file()]
    if not found:
        raise MissingData(f"{packs} has no pack of {', '.join(titles)}; python -m experiments.pack makes one")
    tasks = _tasks_of(packs)
    boards: list[str | Block] = []
    of_fidelities = {}
    for name in found:
        bench = {task: open_for_study(task, release) for task in read_folder(packs / name).tasks}
        results = read_results(packs / name, bench=bench)
        records = sorted(data.glob(f"*/retrained-{name}.json")) if data else []
        boards += study_board(results, titles[name], read_trained(results, records))
        if name in (FIDELITY.name, MULTIOBJECTIVE.name):
            of_fidelities[name] = results
    releases = (f"{task}: {facts.version} ({facts.source}, {facts.release[:16]})" for task, facts in tasks.items())
    document = Document(
        title="Leaderboard",
        subtitle="Final results of all optimisers, best first: by fidelity, as on the leaderboards of JAHS-Bench-201, "
        f"and by study. Season: {season_of(tasks)}.",
        caveats=(*_partial([name for name in titles if name not in found]), *caveats_of([TASKS[t] for t in tasks])),
        sections=sections_of([*(fidelity_board(of_fidelities) if of_fidelities else ()), *boards]),
        facts=(("releases", ", ".join(releases)), commit_fact(), versions_fact()),
    )
    return led_by_answer(document)


def _partial(missing: Sequence[str]) -> Iterator[str]:
    if missing:
        yield (
            f"This page is partial: the season has no pack of {', '.join(f'`{name}`' for name in missing)}. `python -m "
            "experiments.run STUDY --out DIR` runs a study, and `python -m experiments.pack DIR --out data/studies` "
            "packs it."
        )


def _tasks_of(packs: Path) -> dict[str, TaskFacts]:
    """Return the tasks of all packs; refuse packs of different seasons."""
    tasks: dict[str, TaskFacts] = {}
    for manifest in sorted(packs.glob(f"*/{MANIFEST}")):
        facts = read_folder(manifest.parent).tasks
        check_season(packs, season_of(facts), {task: of.release for task, of in facts.items()})
        tasks |= facts
    return dict(sorted(tasks.items()))


def _flags(given: argparse.Namespace) -> list[str]:
    return ["PACKS", *["--data", "DATA"] * bool(given.data)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of all leaderboards of a season."
    parser = page_parser("experiments.leaderboard", about, example="data/studies/SEASON")
    parser.add_argument("packs", type=Path, help="folder of the packs of a season, see python -m experiments.pack")
    parser.add_argument("--data", type=Path, help="folder with records of python -m experiments.retrain, such as data")
    add_release(parser)

    def make(given: argparse.Namespace) -> Document:
        return leaderboard_page(given.packs, release=given.release, data=given.data)

    return run_page(parser, argv, make, flags=_flags)


if __name__ == "__main__":
    sys.exit(main())
