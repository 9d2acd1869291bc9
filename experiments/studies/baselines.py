"""The study `baselines`: many rollouts, test regret and robustness, by the protocol of NAS-Bench-101."""

from __future__ import annotations

from typing import Any, Final

from experiments.optimizers import OPTIMIZERS
from experiments.studies.study import Study, arm_of

MAIN: Final = "optimisers"
"""The chapter of optimisers with their default settings."""

OPTIMIZERS_OF_BASELINES: Final = (
    *("random_search", "local_search", "regularized_evolution", "evolution", "reinforce"),
    *("successive_halving", "hyperband", "asha"),
)

_SENSITIVITY: Final[tuple[tuple[str, str, tuple[Any, ...]], ...]] = (
    ("regularized_evolution", "population_size", (10, 20, 50)),
    ("regularized_evolution", "tournament_size", (2, 5, 10)),
    ("successive_halving", "eta", (2.0, 3.0, 4.0)),
    ("local_search", "n_initial", (1, 10, 50)),
    ("hyperband", "eta", (2.0, 3.0, 4.0)),
    ("reinforce", "learning_rate", (0.1, 0.3, 0.9)),
)
"""Optimiser, name of the setting, and its values."""

BASELINES: Final = Study(
    name="baselines",
    title="Baselines over many rollouts",
    question="Which optimisers are good, which are robust, and how much do their settings matter?",
    protocol=(
        "As in NAS-Bench-101: the incumbent is selected by validation accuracy, and its test regret is the best known "
        "mean test accuracy minus its own. Optimisers never see a test accuracy. Every rollout draws its own training "
        "noise."
    ),
    n_seeds=100,
    arms=(
        *(arm_of(optimizer, chapter=MAIN) for optimizer in OPTIMIZERS_OF_BASELINES),
        *(
            arm_of(
                optimizer,
                setting.replace("_", "-"),
                str(value),
                title=f"{setting}={value}",
                settings=((setting, value),),
                chapter=f"{OPTIMIZERS[optimizer].title}: {setting}",
            )
            for optimizer, setting, values in _SENSITIVITY
            for value in values
        ),
    ),
)
