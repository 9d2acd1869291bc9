"""The study `fidelity`: black-box search against multi-fidelity search, for each fidelity and for all together."""

from __future__ import annotations

from typing import Final

from experiments.optimizers import OPTIMIZERS
from experiments.studies.study import Study, arm_of
from jahs.comparison.views import ViewChoice

FIDELITY_VIEWS: Final = (
    ("epoch", "epochs", ("epoch",)),
    ("N", "N (cells)", ("N",)),
    ("W", "W (channels)", ("W",)),
    ("Resolution", "Resolution", ("Resolution",)),
    ("diagonal", "all four, diagonal", ("epoch", "N", "W", "Resolution")),
)
"""Name, title and fidelities of each view. Without the epoch as a fidelity, trainings run to the last epoch."""

FIDELITY: Final = Study(
    name="fidelity",
    title="Black-box against multi-fidelity search",
    question="Which fidelity, alone or together with the others, finds good networks sooner?",
    protocol=(
        "Only results at the highest value of every fidelity can become incumbents. Continuing a training costs the "
        "difference of its cumulative runtimes. A network of another size is a different network and is trained from "
        "the first epoch. (On the diagonal, JAHS-Bench-201 subtracts the cost of the smaller network as well.)"
    ),
    arms=(
        arm_of("random_search", chapter="black box"),
        *(
            arm_of(
                optimizer,
                view,
                title=f"{(chapter := OPTIMIZERS[optimizer].title)}, {view_title}",
                view=ViewChoice(fidelities=fidelities),
                chapter=chapter,
            )
            for optimizer in ("successive_halving", "hyperband")
            for view, view_title, fidelities in FIDELITY_VIEWS
        ),
    ),
)
