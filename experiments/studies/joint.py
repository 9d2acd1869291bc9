"""The study `joint`: joint search against architecture or hyperparameters alone (JAHS-Bench-201, Tables 9 and 10)."""

from __future__ import annotations

from typing import Final

from experiments.optimizers import OPTIMIZERS
from experiments.studies.study import Study, arm_of
from jahs.comparison.views import ViewChoice

_VIEWS: Final = (
    ("jahs", "JAHS", ViewChoice(search="all")),
    ("nas_default", "NAS only, default hyperparameters", ViewChoice(search="nas")),
    ("nas_random", "NAS only, random hyperparameters", ViewChoice(search="nas", fixed_part="random")),
    ("hpo_default", "HPO only, default cell", ViewChoice(search="hpo")),
    ("hpo_reference", "HPO only, reference cell", ViewChoice(search="hpo", fixed_part="reference")),
    ("hpo_random", "HPO only, random cell", ViewChoice(search="hpo", fixed_part="random")),
)
_OPTIMIZERS: Final = ("random_search", "regularized_evolution", "optuna_tpe")

JOINT: Final = Study(
    name="joint",
    title="Joint search against architecture or hyperparameters alone",
    question="How much sooner does joint search reach the final result of searching only one part?",
    protocol=(
        "JAHS searches the architecture and the hyperparameters jointly, NAS the architecture only, HPO the "
        "hyperparameters only. The best validation error so far is plotted over simulated runtime, in units of the "
        "mean runtime of a full evaluation; the budget is 100. N=5, W=16 and Resolution=1.0 are fixed. The part that "
        "is not searched is the default of the space or a random sample for each seed, as in the scripts of "
        "JAHS-Bench-201. The default cell has six identities, so HPO is also run in the cell of the release's "
        "reference config: a good cell, but not the best known."
    ),
    arms=tuple(
        arm_of(optimizer, view, title=title, view=choice, chapter=OPTIMIZERS[optimizer].title)
        for optimizer in _OPTIMIZERS
        for view, title, choice in _VIEWS
    ),
)
