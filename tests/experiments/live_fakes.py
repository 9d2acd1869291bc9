"""A trainer that takes no time and gives the same numbers for the same config and seed, and a study small enough."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import experiments.live.trajectories
import pipeline.train
from experiments.live.command import LiveSettings
from experiments.live.declared import LIVE
from jahs.spaces.configs import config_id
from pipeline.train import TrainedRun

OPTIMIZERS = ("random_search", "regularized_evolution", "local_search", "successive_halving")
TASK = "digits"
N_EVALUATIONS = 8
STAGES = (3, 8)
N_SEEDS = 2

STUDY = replace(
    LIVE,
    tasks=(TASK,),
    n_seeds=N_SEEDS,
    n_evaluations=N_EVALUATIONS,
    arms=tuple(arm for arm in LIVE.arms if arm.optimizer in OPTIMIZERS),
)


def fake_train(config, task, images, *, seed, epochs=None, checkpoint=None, **_) -> TrainedRun:
    """Train nothing, epoch by epoch, with a checkpoint that counts them."""
    last = epochs or task.max_epoch
    done = int(checkpoint.read_text()) if checkpoint is not None and checkpoint.exists() else 0
    for epoch in range(done + 1, last + 1):
        time.sleep(2e-4)
        if checkpoint is not None:
            beside = checkpoint.with_suffix(f".{os.getpid()}")
            beside.write_text(str(epoch))
            beside.replace(checkpoint)
    rng = np.random.default_rng([config_id(config), seed])
    final = 30 + 40 * rng.random() + 5 * np.log10(config["LearningRate"])
    wanted = np.maximum(final * np.linspace(0.5, 1, task.max_epoch) + rng.normal(0, 0.5, task.max_epoch), 1)
    n_right = np.round(wanted * task.n_test / 100)  # of n_test images, which divides the numbers of the other parts
    accuracy, test = 100 * n_right / task.n_test, 100 * (n_right - 1) / task.n_test
    columns = [accuracy, accuracy, test, *np.full((3, task.max_epoch), 1.0), np.arange(1.0, task.max_epoch + 1)]
    return TrainedRun(status="finished", epochs=np.stack(columns, axis=1)[:last], network=None)  # type: ignore[arg-type]


def without_training(patch: pytest.MonkeyPatch) -> None:
    """Put the fake in place of every training."""
    for module in (pipeline.train, experiments.live.trajectories):
        patch.setattr(module, "train", fake_train)
    patch.setattr("experiments.live.command.STAGES", STAGES)


def settings(out: Path, release: Path, **more: object) -> LiveSettings:
    """Return settings of the small study."""
    return LiveSettings(out=out, release=release, workers=1, study=STUDY, **more)  # type: ignore[arg-type]
