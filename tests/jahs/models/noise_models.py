"""A noise law for tests, uneven in everything that it depends on."""

from __future__ import annotations

import numpy as np

from jahs.models.noise import NoiseModel
from jahs.models.noise.spread import LEVELS, RATES, Correlation, Spread, TimeSpread
from jahs.tasks.definitions import TASKS

ACCURACIES = ("train_acc", "valid_acc", "test_acc")


def spread(factor: float = 1.0, *, max_epoch: int = 12) -> Spread:
    level = np.interp(LEVELS, [0, 12, 30, 60, 80, 100], [0.03, 0.03, 0.35, 0.2, 0.06, 0.05])
    last = np.interp(LEVELS, [0, 12, 30, 60, 80, 100], [0.03, 0.03, 0.4, 0.2, 0.055, 0.045])
    return Spread(
        level=tuple((factor * level).tolist()),
        last=tuple((factor * last).tolist()),
        epoch=tuple(np.linspace(2, 1, max_epoch).tolist()),
        N=(0.8, 1.0, 1.25),
        W=(1.1, 1.0, 0.9),
        Resolution=(1.05, 1.0, 0.95),
        rate=tuple(np.linspace(0.7, 1.6, len(RATES)).tolist()),
        tail=0.08,
    )


def noise_model(task: str = "made-up", *, max_epoch: int | None = None) -> NoiseModel:
    if max_epoch is None:
        max_epoch = TASKS[task].max_epoch if task in TASKS else 12
    factors = dict(zip(ACCURACIES, (0.6, 1.0, 1.0), strict=True))
    return NoiseModel(
        task=task,
        max_epoch=max_epoch,
        accuracies={
            name: {kind: spread(by * f, max_epoch=max_epoch) for kind, by in (("seed", 1), ("outcome", 2))}
            for name, f in factors.items()
        },
        runtime={"seed": TimeSpread(spread=0.06, tail=0.05), "outcome": TimeSpread(spread=0.1)},
        correlation=Correlation(halving=0.8, train=(0.9, 0.98), evaluation=(0.2, 0.9), twins=(0.97, 0.97)),
        counts={"configs": 3},
    )
