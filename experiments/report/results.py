"""A study's logs, reduced to what its page shows. Time is in mean full evaluations from here on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from experiments.analysis.logs import FINISHED, Floats, trial_log
from experiments.analysis.steps import Steps, incumbents
from experiments.benches import release_facts
from experiments.folder import StudyFolder, TaskFacts, read_folder
from experiments.studies.study import Arm, Cell, Study
from jahs.errors import CorruptFile, MissingData, ProtocolMismatch
from jahs.queries.benchmark import Benchmark
from jahs.simulate import read_log
from jahs.spaces.configs import Config
from workshop.jobs import in_processes

__all__ = ["CellResult", "Results", "read_cell", "read_results"]

_FEW: Final = 64  # logs; more are worth starting processes for


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellResult:
    """One log, reduced.

    Attributes:
        cell: which.
        incumbents: validation error over time, in mean full evaluations.
        configs: of each incumbent.
        full_times: when each trial at the highest fidelity was known, (n,).
        full_metrics: what it measured, minimised; only the metrics that were asked for.
        n_trials, n_finished: how many there were, and how many ended as they should.
        busy: share of the workers' time that was spent on trials.
        settings: all of the optimiser's but for its seed.
    """

    cell: Cell
    incumbents: Steps
    configs: tuple[Config, ...]
    full_times: Floats
    full_metrics: Mapping[str, Floats]
    n_trials: int
    n_finished: int
    busy: float
    settings: Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Results:
    """A folder of a study with everything that was read from it.

    Attributes:
        folder: where, and with what it was run.
        study: its declaration.
        tasks, arms: those with at least one result, in order.
        cells: by task and arm, in order of seeds.
        bench: by task, to ask for test accuracies and reference points.
    """

    folder: StudyFolder
    study: Study
    tasks: tuple[str, ...]
    arms: tuple[Arm, ...]
    cells: Mapping[tuple[str, str], tuple[CellResult, ...]]
    bench: Mapping[str, Benchmark]

    def arms_of(self, chapter: str, task: str | None = None) -> tuple[Arm, ...]:
        """The arms of a chapter with at least one result: on this task, or on any."""
        return tuple(
            arm for arm in self.arms if arm.chapter == chapter and (task is None or (task, arm.name) in self.cells)
        )

    def seeds(self, task: str, arms: Sequence[Arm]) -> list[int]:
        """The seeds that every one of the arms has finished on a task: what can be compared in pairs."""
        sets = [{result.cell.seed for result in self.cells.get((task, arm.name), ())} for arm in arms]
        return sorted(set.intersection(*sets)) if sets else []

    def of(self, task: str, arm: Arm, seeds: Sequence[int] | None = None) -> list[CellResult]:
        """Results of an arm on a task, of some seeds or all, in order of seeds."""
        found = self.cells.get((task, arm.name), ())
        return [result for result in found if seeds is None or result.cell.seed in seeds]

    def steps(self, task: str, arm: Arm, seeds: Sequence[int] | None = None) -> list[Steps]:
        """Validation error over time for each seed."""
        return [result.incumbents for result in self.of(task, arm, seeds)]


def read_results(path: Path, *, bench: Mapping[str, Benchmark], workers: int = 1) -> Results:
    """Read every log of a study's folder.

    Args:
        path: the folder.
        bench: what answers for each task.
        workers: processes that read.

    Raises:
        MissingData: it is no study, or has no finished cell.
        ProtocolMismatch: a benchmark is of another release than the logs, or logs of one arm are of other settings.
        CorruptFile: a log cannot be read, or is of another study.
    """
    folder = read_folder(path)
    study = folder.study
    for task, facts in folder.tasks.items():
        if facts.release not in (found := release_facts(bench[task])).answers_as:
            raise ProtocolMismatch(
                f"{task}: the logs asked release {facts.release[:16]}, this one is {found.sha256[:16]}"
            )
    wanted = study.cells(tasks=[*folder.tasks], arms=folder.arms, n_seeds=folder.n_seeds)
    cells = [cell for cell in wanted if (path / cell.path).exists()]
    if not cells:
        raise MissingData(f"{path} has no finished cell; python -m experiments.run goes on with it")
    metrics = tuple(dict.fromkeys(name for names in study.combinations for name in names))
    digests = {name: study.digest_of(name) for name in folder.arms}
    calls = [
        {"path": path, "cell": cell, "facts": folder.tasks[cell.task], "digest": digests[cell.arm], "metrics": metrics}
        for cell in cells
    ]
    read = in_processes(read_cell, calls, workers=workers if len(calls) > _FEW else 1)
    _check_settings(read)
    by_key: dict[tuple[str, str], list[CellResult]] = {}
    for result in read:
        by_key.setdefault((result.cell.task, result.cell.arm), []).append(result)
    return Results(
        folder=folder,
        study=study,
        tasks=tuple(task for task in folder.tasks if any(key[0] == task for key in by_key)),
        arms=tuple(arm for arm in study.arms if any(key[1] == arm.name for key in by_key)),
        cells={key: tuple(sorted(results, key=lambda r: r.cell.seed)) for key, results in by_key.items()},
        bench=bench,
    )


def read_cell(path: Path, cell: Cell, facts: TaskFacts, *, digest: str, metrics: Sequence[str]) -> CellResult:
    """Read and reduce one log.

    Raises:
        CorruptFile: the log was cut short, or its header says that it is of another cell.
    """
    source = path / cell.path
    log = read_log(source)
    said = {key: log.header.get(key) for key in ("task", "arm", "seed", "release", "arm_digest")}
    expected = {"task": cell.task, "arm": cell.arm, "seed": cell.seed, "release": facts.release, "arm_digest": digest}
    if wrong := [f"{key}={said[key]!r} instead of {expected[key]!r}" for key in said if said[key] != expected[key]]:
        raise CorruptFile(f"{source} is not the log of its place: {', '.join(wrong)}; remove it and run again")
    if log.ending is None:
        raise CorruptFile(f"{source} was cut short; remove it and run again")
    found = trial_log(log.header, log.trials)
    best, unit = incumbents(found), facts.mean_runtime_s
    settings = log.header.get("optimizer_settings")
    spent = float((found.end - found.start).sum())
    available = float(log.header["workers"]) * float(log.ending["clock"])  # type: ignore[arg-type]  # JSON numbers
    return CellResult(
        cell=cell,
        incumbents=best.steps.scaled(unit),
        configs=tuple(found.trials[row].config for row in best.rows.tolist()),
        full_times=found.end[found.is_full] / unit,
        full_metrics={name: found.minimised(name)[found.is_full] for name in metrics if name in found.metrics},
        n_trials=len(found),
        n_finished=int(np.sum(found.status == FINISHED)),
        busy=spent / available if available else 0.0,
        settings={k: v for k, v in settings.items() if k != "seed"} if isinstance(settings, Mapping) else {},
    )


def _check_settings(read: Sequence[CellResult]) -> None:
    """Refuse an arm whose optimiser was not the same in every cell, as after a default of its settings has changed."""
    first: dict[str, CellResult] = {}
    for result in read:
        other = first.setdefault(result.cell.arm, result)
        if result.settings != other.settings:
            names = sorted({*result.settings, *other.settings})
            one, two = ({name: each.settings.get(name) for name in names} for each in (other, result))
            differing = "; ".join(f"{name}={one[name]!r} and {two[name]!r}" for name in names if one[name] != two[name])
            raise ProtocolMismatch(
                f"the arm {result.cell.arm} was run with several settings of its optimiser: {differing}, in "
                f"{other.cell.path} and {result.cell.path}; remove all logs with one of them and run again"
            )
