"""The protocol of NAS-Bench-101: many rollouts, test regret after selection on validation, and robustness."""

from __future__ import annotations

from typing import Any, Final

from experiments.studies.study import Arm, Study

__all__ = ["BASELINES"]

_OPTIMIZERS: Final = (
    ("random_search", "random search"),
    ("local_search", "local search"),
    ("regularized_evolution", "regularized evolution"),
    ("evolution", "non-regularized evolution"),
    ("reinforce", "REINFORCE"),
    ("successive_halving", "successive halving"),
    ("hyperband", "Hyperband"),
    ("asha", "ASHA"),
)

_SENSITIVITY: Final[tuple[tuple[str, str, str, tuple[Any, ...]], ...]] = (
    ("regularized_evolution", "regularized evolution", "population_size", (10, 20, 50)),
    ("regularized_evolution", "regularized evolution", "tournament_size", (2, 5, 10)),
    ("successive_halving", "successive halving", "eta", (2.0, 3.0, 4.0)),
    ("local_search", "local search", "n_initial", (1, 10, 50)),
    ("hyperband", "Hyperband", "eta", (2.0, 3.0, 4.0)),
    ("reinforce", "REINFORCE", "learning_rate", (0.1, 0.3, 0.9)),
)
"""Optimiser, title, name of the setting and its values."""

BASELINES: Final = Study(
    name="baselines",
    title="Baselines, many times over",
    question="Which optimiser is good, which one is good every time, and what do its settings change?",
    protocol=(
        "As in NAS-Bench-101: the incumbent is chosen by validation, its regret is the best mean test accuracy that is "
        "known minus its own, and an optimiser never sees a test accuracy. Every rollout draws its own training noise."
    ),
    n_seeds=500,
    noise="seeded",
    arms=(
        *(
            Arm(
                name=optimizer,
                title=title,
                optimizer=optimizer,
                chapter="optimisers",
            )
            for optimizer, title in _OPTIMIZERS
        ),
        *(
            Arm(
                name=f"{optimizer}-{setting.replace('_', '-')}-{value}",
                title=f"{setting}={value}",
                optimizer=optimizer,
                settings=((setting, value),),
                chapter=f"{title}: {setting}",
            )
            for optimizer, title, setting, values in _SENSITIVITY
            for value in values
        ),
    ),
)
