"""The study `truth`: optimisers on recorded trainings and on the surrogate (NAS-Bench-301, section 5)."""

from __future__ import annotations

from typing import Final

from experiments.studies.baselines import OPTIMIZERS_OF_BASELINES
from experiments.studies.study import Study, arm_of
from jahs.comparison.views import ViewChoice

WORLDS: Final = (("table", "recorded trainings"), ("left_out", "surrogate fitted without them"))

TRUTH: Final = Study(
    name="truth",
    title="Recorded trainings against the surrogate",
    question="Do optimisers have the same curves and final order on recorded trainings and on the surrogate?",
    protocol=(
        "Both worlds know the recorded configs only, and both answer with one training. In one world, answers are "
        "recorded trainings. In the other, they are predictions for held-out configs with a draw of the release's "
        "training noise: the configs are divided into folds, and a surrogate fitted on the other folds predicts each "
        "fold. Optimisers propose recorded configs: random configs are drawn from them, and any other proposal becomes "
        "the nearest one that the run has not trained yet. Optimisers, settings and budget are those of `baselines`; a "
        "full evaluation, the unit of time, takes the mean runtime of the recorded configs. N, W and Resolution are "
        "searched as well, because too few recorded configs have one size. Most configs were trained once, so "
        "they have one result for all seeds, in both worlds: with many evaluations, optimisers find the luckiest "
        "config of each. Errors are those that the optimisers observed."
    ),
    n_refit_seeds=0,  # its worlds have surrogates of their own
    arms=tuple(
        arm_of(
            optimizer,
            name=f"{world.replace('_', '-')}-{optimizer}",
            view=ViewChoice(search="sizes"),
            chapter=title,
            world=world,
        )
        for world, title in WORLDS
        for optimizer in OPTIMIZERS_OF_BASELINES
    ),
)
