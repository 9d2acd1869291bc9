"""Transfer between the releases of two tasks: fronts, and the order of optimisers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from experiments.analysis.carried import split_half_of_two
from experiments.analysis.critical_differences import rank_agreement
from experiments.studies import COMBINATIONS
from jahs.comparison.compare import BASELINES
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.comparison.terms import StudyTerms
from jahs.errors import MissingData, UnknownName
from jahs.optimizers import make
from jahs.queries.benchmark import Benchmark
from jahs.simulate import visible
from jahs.spaces.space import space
from jahs.tasks.pareto import hypervolume

OPTIMIZERS: Final = tuple(name for name in BASELINES if name != "nsga2")  # optimisers whose order is compared
_N_SAMPLES: Final = 20


class FrontTransfer(NamedTuple):
    """The front of one release, evaluated on the other."""

    source: int  # position of the release
    target: int
    metrics: tuple[str, ...]
    n_configs: int  # size of the source's front
    share: float  # hypervolume of these configs on the target, as a share of the hypervolume of the target's front
    random: float  # the mean share of equally many random configs


class OrderTransfer(NamedTuple):
    """Final results of optimisers on both releases."""

    errors: Floats  # final validation errors (%), (2, n_optimizers, n_seeds)
    tau: Interval  # Kendall's tau of the mean errors, with a bootstrap interval over seeds
    split_half: float  # mean tau between two halves of the seeds; geometric mean over both tasks


def front_transfers(benches: Sequence[Benchmark]) -> Iterator[FrontTransfer]:
    """Yield the transfer of every combination of metrics for which both releases have a front."""
    for names in COMBINATIONS:
        try:
            fronts = [bench.front(names) for bench in benches]
        except (MissingData, UnknownName):
            continue
        for source, target in ((0, 1), (1, 0)):
            configs = fronts[source].configs
            chance = [space().sample(len(configs), seed=seed) for seed in range(_N_SAMPLES)]
            front = fronts[target]
            share, *random = (
                hypervolume(benches[target].objectives(sample, metrics=names), front.reference_point)
                / front.hypervolume
                for sample in (configs, *chance)
            )
            yield FrontTransfer(source, target, names, len(configs), share, float(np.mean(random)))


def order_transfer(terms: Sequence[StudyTerms], *, n_seeds: int) -> OrderTransfer:
    """Run every optimiser on both tasks under the terms of a study and compare their orders."""
    errors = np.array(
        [[[_final_error(t, name, seed) for seed in range(n_seeds)] for name in OPTIMIZERS] for t in terms]
    )
    tau = rank_agreement(*errors, has_same_seeds=True)
    return OrderTransfer(errors, tau, split_half_of_two(*errors))


def _final_error(terms: StudyTerms, name: str, seed: int) -> float:
    """Return the mean error (%) of the config with the best observed accuracy at the highest fidelity."""
    optimizer = make(name, visible(terms.view), seed=seed, objectives=terms.rules.objectives)
    trials = terms.simulation(seed).run(optimizer)
    full = [trial for trial in trials if trial.status == "finished" and trial.fidelity == dict(terms.view.full)]
    if not full:
        return 100.0
    incumbent = max(full, key=lambda trial: trial.metrics["valid_acc"])
    return 100 - terms.bench.query(incumbent.config, metrics=("valid_acc",)).valid_acc
