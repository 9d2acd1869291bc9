"""The collector with fake trainings, which need no torch, for tests of kills, signals and full disks.

A training takes a moment, but hardly any CPU time; its numbers follow from the config and the seed.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace

import numpy as np

import pipeline.collect
import pipeline.worker
from jahs.spaces.configs import config_id
from jahs.tasks.definitions import RESOLUTIONS

COMMAND = [sys.executable, "-c", "from tests.pipeline.light_collector import main; main()"]
"""Runs as `python -m pipeline.collect` does; to be started in the root of the repository."""

_TRAINING_S = 0.4


def collect_run(*job, **settings):
    """Call the real `collect_run` with the fake training; worker processes import this function by name."""
    training = ModuleType("pipeline.train")
    training.train = train
    sys.modules[training.__name__] = training
    pipeline.worker.images_of = lambda *_: dict.fromkeys(RESOLUTIONS)
    pipeline.worker.software = lambda *_: "0.0"
    return pipeline.worker.collect_run(*job, **settings)


def train(config, task, images, *, seed, **_):
    """Train nothing; accuracies are those of a number of test images, which divides the numbers of the other parts."""
    time.sleep(_TRAINING_S)
    rng = np.random.default_rng([config_id(config), seed])
    accuracies = 100 * rng.integers(task.n_test, size=(task.max_epoch, 3)) / task.n_test
    losses, runtime = rng.random((task.max_epoch, 3)), np.arange(1.0, task.max_epoch + 1)
    return SimpleNamespace(status="finished", epochs=np.column_stack([accuracies, losses, runtime]))


def main():
    pipeline.collect.collect_run = collect_run
    sys.exit(pipeline.collect.main())
