"""Do settings tuned on a part of the space, or on another task, serve the whole? Section 4.2 of NAS-Bench-101.

The declared part fixes one edge of the cell to "none", as NAS-Bench-Mini has fewer vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from experiments.analysis.subjects import Subject, answers
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, mean_interval
from jahs.optimizers.baseline import Baseline
from jahs.optimizers.evolution import Evolution, EvolutionSettings
from jahs.optimizers.random_search import RandomSearch, RandomSearchSettings
from jahs.queries.exhaustive import LARGEST
from jahs.queries.views import View
from jahs.simulate import Visible
from jahs.spaces.cell.operations import ZERO
from jahs.spaces.configs import Config
from surrogate.models.optima import MAIN, search_with
from workshop.ranks import kendall_tau

PART: Final = {"Op2": ZERO}
"""The declared part of the space."""

SPACES: Final[Mapping[str, Mapping[str, object]]] = {"part": {**LARGEST, **PART}, "whole": dict(LARGEST)}
"""The fixed keys of both spaces."""

_Make = Callable[[Visible, int], Baseline[Any]]  # Any: their settings


def _evolution(**settings: Any) -> _Make:  # Any: fields of EvolutionSettings
    return lambda view, seed: Evolution(view, seed=seed, settings=EvolutionSettings(**settings))


ARMS: Final[Mapping[str, _Make]] = {
    "RS": lambda view, seed: RandomSearch(view, seed=seed, settings=RandomSearchSettings()),
    "NRE": _evolution(removes="worst"),
    "RE": _evolution(),
    "RE, 2 mutations": _evolution(n_mutations=2),
    "RE, 3 mutations": _evolution(n_mutations=3),
    "RE, tournament 2": _evolution(tournament_size=2),
    "RE, tournament 10": _evolution(tournament_size=10),
}
"""Random search, non-regularized and regularized evolution, and the settings that are tuned."""

TUNED: Final = tuple(name for name in ARMS if name.startswith("RE"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """Where searches end.

    Attributes:
        own: (n_arms, n_seeds), the best value of each search on the released models.
        on_refits: the values of the same configs by the mean of the refits; NaN without refits.
    """

    own: Floats
    on_refits: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transferred:
    """How a choice on one problem serves on another.

    Attributes:
        chosen: the arm of `TUNED` with the best mean where it was tuned.
        best: the arm with the best mean where it is tested.
        loss: the mean of the best one less that of the chosen one there.
        tau: Kendall's tau of all arms' means on both problems.
    """

    chosen: str
    best: str
    loss: Interval
    tau: float


def measure_ends(subject: Subject, *, n_seeds: int, n_trials: int) -> dict[str, Ends]:
    """Return where every arm ends on both spaces of a task."""
    found = {}
    for name, fixed in SPACES.items():
        view = View(subject.bench, fixed=fixed)
        ends = [[_search(view, make, n=n_trials, seed=seed) for seed in range(n_seeds)] for make in ARMS.values()]
        configs = [config for arm in ends for config, _ in arm]
        others = [answers(refit, configs) for refit in subject.refits]
        mean = np.mean(others, axis=0) if others else np.full(len(configs), np.nan)
        own = np.array([[value for _, value in arm] for arm in ends])
        found[name] = Ends(own=own, on_refits=mean.reshape(own.shape))
    return found


def _search(view: View, make: _Make, *, n: int, seed: int) -> tuple[Config, float]:
    """Return the best config of one search without training noise, and its value."""

    def ask(configs: list[Config]) -> Floats:
        return np.array([view.query(config, metrics=(MAIN,)).values[MAIN] for config in configs])

    visited, values = search_with(make(cast("Visible", view), seed), ask, n=n)
    best = int(np.argmax(values))
    return visited[best], values[best]


def transferred(tuned: Floats, tested: Floats) -> Transferred:
    """Return how the best of `TUNED` by `tuned` serves by `tested`, both (n_arms, n_seeds)."""
    names = list(ARMS)
    places = [names.index(name) for name in TUNED]
    chosen, best = (max(places, key=lambda i, of=of: float(of[i].mean())) for of in (tuned, tested))  # type: ignore[misc]
    lost = mean_interval(tested[best] - tested[chosen])
    tau = kendall_tau(tuned.mean(axis=1), tested.mean(axis=1))
    return Transferred(chosen=names[chosen], best=names[best], loss=lost, tau=tau)
