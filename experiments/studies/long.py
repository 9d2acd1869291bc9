"""The studies `long` and `workers`: ten thousand evaluations, and many simulated workers."""

from __future__ import annotations

from typing import Final

from experiments.optimizers import OPTIMIZERS
from experiments.studies.study import Study, arm_of

WORKER_COUNTS: Final = (1, 4, 16, 64)

LONG: Final = Study(
    name="long",
    title="Ten thousand evaluations",
    question="Which optimisers still improve in long runs?",
    protocol=(
        "Long runs as in the case study of NAS-Bench-301 on local search: the budget is 10,000 mean full evaluations. "
        "Every run draws its own training noise, and incumbents are reported by their means."
    ),
    n_evaluations=10_000,
    n_seeds=6,
    n_refit_seeds=0,
    arms=tuple(
        arm_of(name, chapter="optimisers")
        for name in ("random_search", "local_search", "regularized_evolution", "evolution")
    ),
)

WORKERS: Final = Study(
    name="workers",
    title="Many workers",
    question="What do 1, 4, 16 and 64 asynchronous workers cost and gain?",
    protocol=(
        "All runs do the same work: with w workers, the simulated time is that of 400 mean full evaluations divided by "
        "w. A free worker gets the next proposal at once, so an optimiser proposes before it knows the results of the "
        "other workers. Successive halving waits until a rung is complete; ASHA does not."
    ),
    n_evaluations=400,
    n_seeds=6,
    n_refit_seeds=0,
    arms=tuple(
        arm_of(
            name,
            f"workers-{workers}",
            title=f"{workers} worker{'s' * (workers > 1)}",
            chapter=OPTIMIZERS[name].title,
            workers=workers,
        )
        for name in ("random_search", "local_search", "regularized_evolution", "successive_halving", "asha")
        for workers in WORKER_COUNTS
    ),
)
