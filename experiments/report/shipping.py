"""Write the results of a study that `jahs compare` shows, for comparison with other runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.packs import season_of
from experiments.report.comparison import curve
from experiments.report.refits import last_by_refits
from experiments.report.results import RepetitionResult, Results
from experiments.report.single import test_errors
from experiments.studies import find_study
from experiments.study import Arm
from jahs.comparison.shipped import ShippedResults
from jahs.comparison.standings import REFERENCE, Rollout
from jahs.comparison.steps import Steps
from jahs.comparison.terms import SAME_TERMS, STUDIES
from jahs.files.atomic import write_beside
from jahs.files.sealed_json import sealed_text


def ship(results: Results, folder: Path) -> list[Path]:
    """Write the results of a study under terms of `jahs.terms`; return the files, one for each task.

    These are the results of arms under these terms with default settings, and of random search of the same space. A
    prior is not a setting: each of them counts as an optimiser, with the name of the arm. A study that shares the
    terms of another one has only the arms that the other study lacks.
    """
    study, season = results.study.name, season_of(results.folder.tasks)
    written = []
    for task in results.tasks if SAME_TERMS.get(study, study) in STUDIES else ():
        rollouts = {
            arm.name if arm.settings else arm.optimizer: dict(_rollouts(results, task, arm))
            for arm in _arms(results, task)
        }
        release = results.folder.tasks[task].release
        shipped = ShippedResults(study=study, task=task, season=season, release=release, rollouts=rollouts)
        written.append(write_shipped(shipped, folder))
    return written


def write_shipped(shipped: ShippedResults, folder: Path) -> Path:
    """Write results, times with six and errors with four decimals; return the file."""
    runs = {
        name: {
            str(seed): {
                "times": np.round(run.steps.times, 6).tolist(),
                "values": np.round(run.steps.values, 4).tolist(),
                "test_error": _known(run.test_error),
                "refit_error": _known(run.refit_error),
            }
            for seed, run in by_seed.items()
        }
        for name, by_seed in shipped.rollouts.items()
    }
    facts: dict[str, Any] = {"season": shipped.season, "release": shipped.release, "optimizers": runs}  # Any: JSON
    path = folder / f"{shipped.study}-{shipped.task}.json"
    folder.mkdir(parents=True, exist_ok=True)
    with write_beside(path) as beside:
        beside.write_text(sealed_text(facts), encoding="utf-8")
    return path


def _known(error: float) -> float | None:
    return None if np.isnan(error) else round(error, 4)


def _arms(results: Results, task: str) -> Iterator[Arm]:
    study = results.study.name
    rules = STUDIES[SAME_TERMS.get(study, study)]
    known = {arm.name for arm in find_study(SAME_TERMS[study]).arms} if study in SAME_TERMS else set()
    for arm in results.arms:
        views = [rules.view, *([replace(rules.view, fidelities=("epoch",))] if arm.optimizer == REFERENCE else [])]
        has_default_settings = {name for name, _ in arm.settings} <= {"prior"}
        is_usual = arm.objectives == rules.objectives and arm.view in views and has_default_settings
        if is_usual and arm.name not in known and (task, arm.name) in results.by_arm:
            yield arm


def _rollouts(results: Results, task: str, arm: Arm) -> Iterator[tuple[int, Rollout]]:
    repetitions = results.of(task, arm)
    test = test_errors(results, task, arm, repetitions).tolist()
    refits = last_by_refits(results.bench[task], repetitions).tolist()
    for result, test_error, refit_error in zip(repetitions, test, refits, strict=True):
        steps = _steps(results, task, arm, result)
        yield result.repetition.seed, Rollout(steps=steps, test_error=test_error, refit_error=refit_error)


def _steps(results: Results, task: str, arm: Arm, result: RepetitionResult) -> Steps:
    """Return the result so far over shares of the budget."""
    steps = curve(results, task, arm, result).scaled(float(results.study.n_evaluations))
    if len(arm.objectives) == 1:
        return steps
    missing = 100 * (1 + steps.values)  # values are minus the attained share
    return Steps(times=np.concatenate([[0.0], steps.times]), values=np.concatenate([[100.0], missing]))
