"""Is it worth searching the architecture and the hyperparameters together? (JAHS-Bench-201, Tables 9 and 10.)"""

from __future__ import annotations

from typing import Final

from experiments.studies.study import Arm, Family, Study, ViewChoice

__all__ = ["JOINT"]

_VIEWS: Final = (
    ("jahs", "JAHS", ViewChoice(search="all")),
    ("nas_default", "NAS only, default hyperparameters", ViewChoice(search="nas")),
    ("nas_random", "NAS only, random hyperparameters", ViewChoice(search="nas", fixed_part="random")),
    ("hpo_default", "HPO only, default cell", ViewChoice(search="hpo")),
    ("hpo_random", "HPO only, random cell", ViewChoice(search="hpo", fixed_part="random")),
)
_OPTIMIZERS: Final[tuple[tuple[str, str, Family], ...]] = (
    ("random_search", "random search", "model-free"),
    ("regularized_evolution", "regularized evolution", "model-free"),
    ("optuna_tpe", "TPE (Optuna)", "model-based"),
)

JOINT: Final = Study(
    name="joint",
    title="Joint search against architecture or hyperparameters alone",
    question="How much sooner does joint search reach what searching only one part reaches in the end?",
    protocol=(
        "Best validation error over simulated runtime divided by the mean runtime of a full evaluation, until 100 of "
        "them. N=5, W=16 and Resolution=1.0 throughout. The part that is not searched is the default of the space or "
        "a random sample for each seed. JAHS-Bench-201 names its scripts after defaults and samples: both are here."
    ),
    arms=tuple(
        Arm(
            name=f"{optimizer}-{view}",
            title=view_title,
            optimizer=optimizer,
            view=choice,
            family=family,
            chapter=title,
        )
        for optimizer, title, family in _OPTIMIZERS
        for view, view_title, choice in _VIEWS
    ),
)
