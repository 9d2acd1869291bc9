"""The declaration of the study `live`, and the layout of its folder.

DIR/study.json                                  as for every study (`experiments.folder`); time is counted in epochs
DIR/release/                                    the release stored with the trainings
DIR/runs/                                       a folder of runs: every full training, source `live`
DIR/checkpoints/                                the newest trainings that stopped before the last epoch
DIR/<task>/<arm>/seed-0000.jsonl                the log of a trajectory, which grows; complete with its last line
DIR/surrogate/<arm>/seed-0000.npz               the optimiser's runs on the release, see `experiments.live.beside`
DIR/surrogate/<arm>/refit-0/seed-0000.npz       the same on a refit
DIR/surrogate/<arm>/left-out.npz                the same on a surrogate that was not fitted to its trainings, all seeds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from experiments.study import Repetition, Study, TaskFacts, arm_of
from jahs.comparison.logs import trial_log
from jahs.comparison.steps import incumbents
from jahs.simulate import Log, Trial, read_log

RUNS: Final = "runs"
RELEASE: Final = "release"
SURROGATE: Final = "surrogate"
CHECKPOINTS: Final = "checkpoints"

CORNER: Final[Mapping[str, float]] = MappingProxyType({"N": 1, "W": 16, "Resolution": 0.25})
"""The fixed keys: of the groups with about 16 core-seconds per full evaluation, the one with the best accuracies.

Resolution=0.5 takes 33 core-seconds, twice as many."""

STAGES: Final = (25, 50, 100)
"""Numbers of evaluations at which optimisers are compared. All of them reach one stage before any begins the next."""

LIVE: Final = Study(
    name="live",
    title="Optimiser trajectories with real training",
    question="Does an optimiser's run on the surrogate look like its run on real trainings?",
    protocol=(
        "Every proposal is trained, in the corner N=1, W=16, Resolution=0.25. A run has the epochs of 100 full "
        "evaluations; continuing a training costs only the further epochs. An optimiser's seed is also that of its "
        "trainings: optimisers with the same seed begin with the same random configs, trained once for all of them, so "
        "they differ by their later proposals only. A config that is proposed again costs its epochs again and is "
        "answered with its recorded run. On the surrogate, the same optimiser with the same seed begins with the same "
        "configs; 20 runs draw 20 different training noises. Time is counted in epochs in both."
    ),
    tasks=("cifar10_mini",),
    n_seeds=6,
    n_refit_seeds=6,
    n_evaluations=STAGES[-1],
    arms=tuple(
        arm_of(optimizer, chapter="trained", world="trained")
        for optimizer in (
            *("random_search", "optuna_tpe", "regularized_evolution", "local_search"),
            *("successive_halving", "syne_tune_bohb"),
        )
    ),
)
"""Random search comes first and TPE, which shares no config with it, second: processes seldom want the same config."""


def log_path(path: Path, task: str, arm: str, seed: int) -> Path:
    """Return the path of a trajectory's log."""
    return path / Repetition(task=task, arm=arm, seed=seed).path


def beside_path(path: Path, arm: str, seed: int, refit: int | None) -> Path:
    """Return the path of an optimiser's runs on the release, or on a refit of it."""
    return (path / Repetition(task=SURROGATE, arm=arm, seed=seed, refit=refit).path).with_suffix(".npz")


def left_out_path(path: Path, arm: str) -> Path:
    """Return the path of an optimiser's runs on the surrogate that was not fitted to its trainings."""
    return path / SURROGATE / arm / "left-out.npz"


def read_trajectory(path: Path) -> Log | None:
    """Read the log of a trajectory as far as it goes; None if nothing is recorded yet."""
    return read_log(path) if path.is_file() and b"\n" in path.read_bytes() else None


def n_evaluations_of(log: Log | None, facts: TaskFacts) -> float:
    """Return how many full evaluations a trajectory has spent so far; partial trainings count by their epochs."""
    if log is None:
        return 0.0
    end = facts.budget_s if log.ending is not None else max((trial.end for trial in log.trials), default=0.0)
    return end / facts.mean_runtime_s


def curve(trials: Sequence[Trial], facts: TaskFacts, full_epoch: int) -> NDArray[np.float64]:
    """Return the incumbent's observed validation error after 1, 2, ... full evaluations; NaN before the first result.

    It says nothing about times after the last trial: the error there is that of the last incumbent.
    """
    log = trial_log({"view": {"fidelities": {"epoch": full_epoch}}}, trials)
    n_evaluations = round(facts.budget_s / facts.mean_runtime_s)
    return incumbents(log).steps.at(np.arange(1.0, n_evaluations + 1) * facts.mean_runtime_s)
