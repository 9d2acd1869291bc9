"""The study `truth`: optimisers on recorded trainings and on the surrogate (NAS-Bench-301, section 5)."""

from __future__ import annotations

from typing import Final

from experiments.studies.study import Study, ViewChoice, arm_of

__all__ = ["TRUTH", "WORLDS"]

WORLDS: Final = (("table", "recorded trainings"), ("left_out", "surrogate fitted without them"))

_OPTIMIZERS: Final = (
    *("random_search", "local_search", "regularized_evolution", "evolution"),
    *("successive_halving", "hyperband"),
)

TRUTH: Final = Study(
    name="truth",
    title="Recorded trainings against the surrogate",
    question="Do optimisers have the same curves and final order on recorded trainings and on the surrogate?",
    protocol=(
        "Both worlds know the recorded configs only; any other config gets the answer of the nearest recorded one. In "
        "one world, the answers are the recorded values. In the other, they are predictions for held-out configs: the "
        "configs are divided into folds, and a surrogate fitted on the other folds predicts each fold."
    ),
    noise="mean",  # both worlds answer with means
    n_refit_seeds=0,  # its worlds have surrogates of their own
    n_evaluations=20,  # a hundred would visit most recorded configs
    arms=tuple(
        arm_of(
            optimizer,
            name=f"{world.replace('_', '-')}-{optimizer}",
            view=ViewChoice(search="sizes"),
            chapter=title,
            world=world,
        )
        for world, title in WORLDS
        for optimizer in _OPTIMIZERS
    ),
)
