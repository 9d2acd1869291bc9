"""Trade-offs between accuracy and cost, measured with reference points that no method can move."""

from __future__ import annotations

from typing import Final

from experiments.studies.study import Arm, Family, Study, ViewChoice

__all__ = ["COMBINATIONS", "MULTIOBJECTIVE"]

COMBINATIONS: Final = (
    ("valid_acc", "latency"),
    ("valid_acc", "n_macs"),
    ("valid_acc", "n_params"),
    ("valid_acc", "runtime"),
)

_EVERYTHING: Final = ViewChoice(search="sizes")

_OPTIMIZERS: Final[tuple[tuple[str, str, Family], ...]] = (
    ("random_search", "random search", "model-free"),
    ("nsga2", "NSGA-II", "model-free"),
    ("hyperband", "Hyperband", "model-free"),
    ("asha", "ASHA", "model-free"),
    ("optuna_tpe", "TPE (Optuna)", "model-based"),
)

MULTIOBJECTIVE: Final = Study(
    name="multiobjective",
    title="Accuracy against cost",
    question="Which optimiser finds the trade-offs between accuracy and latency, multiply-adds, parameters or runtime?",
    protocol=(
        "Hypervolume and IGD+ of everything that was evaluated at the highest fidelity, with the reference points and "
        "fronts that are frozen in the release. (JAHS-Bench-201 takes the worst values of each method's own runs, so "
        "that its numbers cannot be compared.) N, W and Resolution are searched: they decide about the cost."
    ),
    combinations=COMBINATIONS,
    arms=tuple(
        Arm(
            name=f"{optimizer}-{names[1].replace('_', '-')}",
            title=title,
            optimizer=optimizer,
            view=_EVERYTHING,
            objectives=names,
            family=family,
            chapter=names[1],
        )
        for names in COMBINATIONS
        for optimizer, title, family in _OPTIMIZERS
    ),
)
