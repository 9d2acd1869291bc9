"""Write the page of all leaderboards of a season, from its packs.

python -m experiments.leaderboard data/studies/SEASON --data data --docs --out docs/studies/leaderboard

Final results are shown by fidelity, as on the leaderboards of JAHS-Bench-201, and by study.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np

import experiments.studies
from experiments.folder import read_folder
from experiments.imported import open_for_study
from experiments.optimizers import OPTIMIZERS
from experiments.packs import MANIFEST, check_season, season_of
from experiments.report.comparison import finals
from experiments.report.incumbents import BOARD_COLUMNS, board, read_trained
from experiments.report.results import Results, read_results
from experiments.report.single import final_mean
from experiments.report.writing import page_parser, run_page
from experiments.retrain import Incumbent
from experiments.studies import FIDELITY, MULTIOBJECTIVE
from experiments.study import Arm, TaskFacts
from jahs.comparison.standings import REFERENCE
from jahs.comparison.summaries import Interval
from jahs.errors import MissingData
from jahs.spaces.configs import config_id
from jahs.tasks.definitions import TASKS, caveats_of
from workshop.command import add_release
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Block, Document, Table, Text, answer, led_by_answer, sections_of
from workshop.resampling import rounded_interval_text

_Row: TypeAlias = tuple[tuple[str, ...], str]
"""The fidelities of an arm, none for black-box search, and the title of its optimiser."""

_FIDELITIES: Final = ((), *dict.fromkeys(arm.view.fidelities for arm in FIDELITY.arms))


class Standing(NamedTuple):
    """The final result of an arm: its mean validation error in percent, or share of the front's hypervolume."""

    mean: Interval
    n_seeds: int


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
        boards += _study_board(results, titles[name], read_trained(results, records))
        if name in (FIDELITY.name, MULTIOBJECTIVE.name):
            of_fidelities[name] = results
    releases = (f"{task}: {facts.version} ({facts.source}, {facts.release[:16]})" for task, facts in tasks.items())
    document = Document(
        title="Leaderboard",
        subtitle="Final results of all optimisers, best first: by fidelity, as on the leaderboards of JAHS-Bench-201, "
        f"and by study. Season: {season_of(tasks)}.",
        caveats=(*_partial([name for name in titles if name not in found]), *caveats_of([TASKS[t] for t in tasks])),
        sections=sections_of([*(_fidelity_board(of_fidelities) if of_fidelities else ()), *boards]),
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


def standings(results: Results, task: str, arms: Sequence[Arm]) -> dict[Arm, Standing]:
    """Return the final results of arms with the same objectives, best first, over the seeds that all have finished.

    A run without a result counts as an error of 100 %, or as a hypervolume of 0. The mapping is empty if the arms share
    no seed or the release has no front.
    """
    if not arms:
        return {}
    on_release, on_refits = finals(results, task, arms)
    if not on_release.size or np.isnan(on_release).any():
        return {}
    sign = 1.0 if len(arms[0].objectives) == 1 else -1.0  # final shares are negative, because all values are minimised
    found = {
        arm: Standing(final_mean(sign * values, sign * refits), len(values))
        for arm, values, refits in zip(arms, on_release, on_refits, strict=True)
    }
    return dict(sorted(found.items(), key=lambda entry: sign * entry[1].mean.value))


def _fidelity_board(by_study: Mapping[str, Results]) -> Iterator[str | Block]:
    """Yield the board by fidelity of each task, from the studies `fidelity` and `multiobjective` that are there."""
    yield "By fidelity"
    best, tables = [], []
    for task in dict.fromkeys(task for results in by_study.values() for task in results.tasks):
        errors, shares = (
            _by_fidelity(by_study[study.name], task) if study.name in by_study else {}
            for study in (FIDELITY, MULTIOBJECTIVE)
        )
        if errors or shares:
            best.append(f"on {TASKS[task].title} {_best_text(errors, shares)}")
            tables.append(_fidelity_table(task, errors, shares))
    if best:
        yield answer(f"Best by fidelity: {'; '.join(best)}.")
    yield from tables
    if len(by_study) > 1:
        one, other = (by_study[study.name].study for study in (FIDELITY, MULTIOBJECTIVE))
        yield Text(
            f"Errors and shares are not comparable with each other: runs of `{one.name}` have a budget of "
            f"{one.n_evaluations} mean full evaluations, runs of `{other.name}` one of {other.n_evaluations}."
        )
    yield Text(
        "Neither is comparable with the numbers of JAHS-Bench-201, which has other data sets and measures hypervolume "
        "from the worst values of the compared runs. Its leaderboards have three of these rows: black-box, the best "
        "single fidelity (there “multi-fidelity”) and all together (“multi multi-fidelity”). The reference front "
        "includes smaller networks, which these runs do not search, so no share reaches 1."
    )


def _best_text(errors: Mapping[_Row, Standing], shares: Mapping[_Row, Standing]) -> str:
    parts = []
    if errors:
        row = min(errors, key=lambda row: errors[row].mean.value)
        parts.append(f"{row[1]} ({_fidelity_title(row)}) with an error of {_cells(errors[row])[0]} %")
    if shares:
        row = max(shares, key=lambda row: shares[row].mean.value)
        parts.append(f"{row[1]} ({_fidelity_title(row)}) with {_cells(shares[row])[0]} of the front's hypervolume")
    return ", ".join(parts)


def _fidelity_table(task: str, errors: Mapping[_Row, Standing], shares: Mapping[_Row, Standing]) -> Table:
    rows = sorted({*errors, *shares}, key=lambda row: (_FIDELITIES.index(row[0]), row[1]))
    return Table(
        caption=f"{TASKS[task].title}: mean validation error of the incumbent, and share of the reference front's "
        "hypervolume of accuracy and latency, at the end of the budget, with 95 % intervals over seeds and refits. A "
        "dash: not run",
        columns=("fidelity", "optimiser", "validation error (%)", "seeds", "share of hypervolume", "seeds"),
        rows=tuple((_fidelity_title(row), row[1], *_cells(errors.get(row)), *_cells(shares.get(row))) for row in rows),
        n_labels=2,
    )


def _by_fidelity(results: Results, task: str) -> dict[_Row, Standing]:
    """Return the final results of the arms at full size by row."""
    found: dict[_Row, Standing] = {}
    for chapter in results.study.chapters:
        arms = [arm for arm in results.arms_of(chapter, task) if arm.view.search == "all"]
        for arm, standing in standings(results, task, arms).items():
            fidelities = () if arm.optimizer == REFERENCE else arm.view.fidelities
            found[fidelities, OPTIMIZERS[arm.optimizer].title] = standing
    return found


def _fidelity_title(row: _Row) -> str:
    fidelities = ", ".join(row[0]) or "black-box"
    return f"all together: {fidelities}" if len(row[0]) > 1 else fidelities


def _cells(found: Standing | None) -> tuple[str, str]:
    return ("–", "–") if found is None else (rounded_interval_text(found.mean), str(found.n_seeds))


def _study_board(results: Results, title: str, trained: Sequence[Incumbent]) -> Iterator[str | Block]:
    """Yield the boards of a study, by task; shares of hypervolume by problem where there are several objectives."""
    name, budget = results.study.name, f"{results.study.n_evaluations:,} mean full evaluations"
    yield title
    yield Text(f"[The study `{name}`](../{name}/report.md). The budget of a run is {budget}.")
    for task in results.tasks:
        yield _shares_table(results, task) if results.study.combinations else _errors_table(results, task, trained)


def _shares_table(results: Results, task: str) -> Table:
    rows = []
    for chapter in results.study.chapters:
        found = standings(results, task, results.arms_of(chapter, task))
        for place, (arm, standing) in enumerate(found.items(), start=1):
            rows.append((chapter, str(place), arm.title, *_cells(standing)))
    return Table(
        caption=f"{TASKS[task].title}: share of the reference front's hypervolume by problem, best first, with 95 % "
        "intervals over seeds and refits",
        columns=("problem", "place", "optimiser", "share of hypervolume", "seeds"),
        rows=tuple(rows),
        n_labels=3,
    )


def _errors_table(results: Results, task: str, trained: Sequence[Incumbent]) -> Table:
    caption = (
        f"{TASKS[task].title}: errors of final incumbents, mean ± standard error and median over seeds, best first"
    )
    rows, columns = [*board(results, task).items()], BOARD_COLUMNS
    as_trained = [_trained_text(results, task, arm, trained) for arm, _ in rows]
    texts = [row for _, row in rows]
    if any(as_trained):
        texts = [(*row, text or "–") for row, text in zip(texts, as_trained, strict=True)]
        columns = (*columns, "as trained (%)")
        caption += ". As trained: validation error of those incumbents of the arm that were trained, and as predicted"
    return Table(caption=caption, columns=columns, rows=tuple(texts), n_labels=3)


def _trained_text(results: Results, task: str, arm: Arm, trained: Sequence[Incumbent]) -> str:
    """Return the mean errors as trained and predicted of the trained incumbents of an arm; nothing without any."""
    ids = {config_id(result.configs[-1]) for result in results.of_chapter(task, arm) if result.configs}
    own = [one for one in trained if one.task == task and config_id(one.config) in ids]
    if not own:
        return ""
    error = np.mean([np.mean([*one.trained.values()]) for one in own])
    predicted = np.mean([one.predicted for one in own])
    return f"{error:.2f}, predicted {predicted:.2f} ({len(own)} config{'s' * (len(own) > 1)})"


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
