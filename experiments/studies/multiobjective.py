"""The study `multiobjective`: trade-offs between accuracy and cost, with reference points frozen in the release."""

from __future__ import annotations

from typing import Final

from experiments.studies.study import Study, arm_of
from jahs.comparison.views import ViewChoice

COMBINATIONS: Final = (
    ("valid_acc", "latency"),
    ("valid_acc", "n_macs"),
    ("valid_acc", "n_params"),
    ("valid_acc", "runtime"),
)

_OPTIMIZERS: Final = ("random_search", "nsga2", "hyperband", "asha", "optuna_tpe", "smac_black_box")

MULTIOBJECTIVE: Final = Study(
    name="multiobjective",
    title="Accuracy against cost",
    question="Which optimisers find the trade-offs of accuracy with latency, multiply-adds, parameters and runtime?",
    protocol=(
        "Hypervolume and IGD+ of all evaluations at the highest fidelity, with the reference points and fronts that "
        "are frozen in the release. (JAHS-Bench-201 uses the worst values of each method's own runs as the reference "
        "point, so its numbers are not comparable between methods.) N, W and Resolution are searched, because they "
        "determine most of the cost."
    ),
    combinations=COMBINATIONS,
    n_seeds=10,
    n_refit_seeds=0,
    arms=tuple(
        arm_of(
            optimizer, names[1].replace("_", "-"), view=ViewChoice(search="sizes"), objectives=names, chapter=names[1]
        )
        for names in COMBINATIONS
        for optimizer in _OPTIMIZERS
    ),
)
