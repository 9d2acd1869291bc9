"""Which fidelity is worth spending less of? Black-box search against multi-fidelity search, one by one and together."""

from __future__ import annotations

from typing import Final

from experiments.studies.study import Arm, Study, ViewChoice

__all__ = ["FIDELITY", "FIDELITY_VIEWS"]

FIDELITY_VIEWS: Final = (
    ("epoch", "epochs", ("epoch",)),
    ("N", "N (cells)", ("N",)),
    ("W", "W (channels)", ("W",)),
    ("Resolution", "Resolution", ("Resolution",)),
    ("diagonal", "all four, diagonal", ("epoch", "N", "W", "Resolution")),
)
"""Name, title and fidelities of each view. Those of N, W and Resolution alone train for every epoch."""

_OPTIMIZERS: Final = (
    ("successive_halving", "successive halving"),
    ("hyperband", "Hyperband"),
)

FIDELITY: Final = Study(
    name="fidelity",
    title="Black-box against multi-fidelity search",
    question="Which fidelity, alone or together with the others, finds good networks sooner?",
    protocol=(
        "Only results at the highest value of every fidelity may become incumbents. A network that is trained further "
        "costs the difference of its cumulative runtimes; a network of another size is another network and is trained "
        "from its first epoch. (JAHS-Bench-201 subtracts the cost of the smaller network on the diagonal, too.)"
    ),
    arms=(
        Arm(name="random_search", title="random search", optimizer="random_search", chapter="black box"),
        *(
            Arm(
                name=f"{optimizer}-{view}",
                title=f"{title}, {view_title}",
                optimizer=optimizer,
                view=ViewChoice(fidelities=fidelities),
                chapter=title,
            )
            for optimizer, title in _OPTIMIZERS
            for view, view_title, fidelities in FIDELITY_VIEWS
        ),
    ),
)
