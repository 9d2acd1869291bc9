"""Evolution (Real et al., 2019): mutates tournament winners, removes the oldest or, if not regularized, the worst.

NAS-Bench-101 uses a population of 100 and tournaments of 10 for thousands of evaluations. The defaults here suit about
a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.moves import movable, mutated
from jahs.optimizers.settings import OptimizerSettings, Within, require
from jahs.spaces.configs import Config

__all__ = ["Evolution", "EvolutionSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionSettings(OptimizerSettings):
    """Settings of evolution."""

    population_size: Annotated[int, Within(1)] = 20  # possible parents, and random configs at the start
    tournament_size: Annotated[int, Within(1)] = 5  # members in a tournament; the best becomes the parent
    n_mutations: Annotated[int, Within(1)] = 1  # keys that change in a child
    decades: Annotated[float, Within(0, 3, excluded=0)] = 0.5  # largest change of a float, in powers of ten
    removes: Literal["oldest", "worst"] = "oldest"  # from a full population; the oldest: regularized evolution

    def __post_init__(self) -> None:
        """Also refuse a tournament larger than the population."""
        OptimizerSettings.__post_init__(self)  # a dataclass with slots has no super() before Python 3.14
        if self.tournament_size > (most := self.population_size):
            require(f"tournament_size={self.tournament_size} must be at most population_size={most}")


class Evolution(Baseline[EvolutionSettings]):
    """Mutates the winners of tournaments. One objective."""

    def prepare(self) -> None:
        """Set up an empty search."""
        self.name = "regularized_evolution" if self._settings.removes == "oldest" else "evolution"
        self._keys = movable(self.view.space)
        self._population: list[tuple[float, Config]] = []  # the oldest first
        self._n_random = self._settings.population_size

    def propose(self) -> tuple[Config, None, None]:
        """Return a random config at first, then a mutated tournament winner."""
        if self._n_random or not self._population:
            self._n_random = max(self._n_random - 1, 0)
            return self.random_config(), None, None
        size = min(self._settings.tournament_size, len(self._population))
        drawn = self.rng.choice(len(self._population), size, replace=False)
        _, parent = min((self._population[i] for i in sorted(drawn.tolist())), key=lambda member: member[0])
        n_mutations = min(self._settings.n_mutations, len(self._keys))
        keys = [self._keys[i] for i in self.rng.choice(len(self._keys), n_mutations, replace=False)]
        child = mutated(self.view.space, parent, self.rng, keys=keys, decades=self._settings.decades)
        return child, None, None

    def learn(self, result: TrialResult) -> None:
        """Add a trained config to the population."""
        if not result.is_known:
            return
        self._population.append((float(result.losses[0]), result.config))
        if len(self._population) > self._settings.population_size:
            ages = range(len(self._population))
            worst = max(ages, key=lambda i: self._population[i][0])
            self._population.pop(worst if self._settings.removes == "worst" else 0)
