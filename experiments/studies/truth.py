"""Does the surrogate tell the same story as the recorded trainings? (NAS-Bench-301, section 5.)"""

from __future__ import annotations

from typing import Final

from experiments.studies.study import Arm, Study, ViewChoice

__all__ = ["TRUTH", "WORLDS"]

WORLDS: Final = (("table", "recorded trainings"), ("left_out", "surrogate fitted without them"))

_OPTIMIZERS: Final = (
    ("random_search", "random search"),
    ("local_search", "local search"),
    ("regularized_evolution", "regularized evolution"),
    ("evolution", "non-regularized evolution"),
    ("successive_halving", "successive halving"),
    ("hyperband", "Hyperband"),
)

TRUTH: Final = Study(
    name="truth",
    title="Recorded trainings against the surrogate",
    question="Do optimisers go the same way and end in the same order on recorded trainings and on the surrogate?",
    protocol=(
        "Both worlds answer for the recorded configs only: a proposal is answered as the nearest of them. In one world "
        "the answers are the recorded ones. In the other they come from surrogates that never saw the config: the "
        "configs are divided into folds, and each fold is answered by a surrogate fitted on all the others."
    ),
    n_evaluations=20,  # a hundred would visit most of what has been recorded
    arms=tuple(
        Arm(
            name=f"{world.replace('_', '-')}-{optimizer}",
            title=title,
            optimizer=optimizer,
            view=ViewChoice(search="sizes"),
            chapter=world_title,
            world="table" if world == "table" else "left_out",
        )
        for world, world_title in WORLDS
        for optimizer, title in _OPTIMIZERS
    ),
)
