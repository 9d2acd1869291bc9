"""NSGA-II (Deb et al., 2002): parents and children are selected by front, then by crowding distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.moves import crossed, movable, mutated
from jahs.optimizers.ranking import order
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config

__all__ = ["Nsga2", "Nsga2Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nsga2Settings(OptimizerSettings):
    """Settings of NSGA-II."""

    population_size: Annotated[int, Within(2)] = 20  # parents, children of a generation, random configs at the start
    crossover_rate: Annotated[float, Within(0, 1)] = 0.9  # share of children with two parents
    decades: Annotated[float, Within(0, 3, excluded=0)] = 0.5  # largest change of a float, in powers of ten


class Nsga2(Baseline[Nsga2Settings]):
    """Any number of objectives. Children are made while others are still trained."""

    name = "nsga2"

    def prepare(self) -> None:
        """Set up an empty search."""
        self._keys = movable(self.view.space)
        self._n_random = self._settings.population_size
        self._parents: list[TrialResult] = []  # the best first
        self._children: list[TrialResult] = []

    def propose(self) -> tuple[Config, None, None]:
        """Return a random config at first, then a child."""
        if self._n_random or not self._parents:
            self._n_random = max(self._n_random - 1, 0)
            return self.random_config(), None, None
        child = self._parent()
        if self.rng.random() < self._settings.crossover_rate:
            child = crossed(child, self._parent(), self.rng, keys=self._keys)
        is_mutated = self.rng.random(len(self._keys)) < 1 / len(self._keys)
        keys = [key for key, is_chosen in zip(self._keys, is_mutated, strict=True) if is_chosen]
        return mutated(self.view.space, child, self.rng, keys=keys, decades=self._settings.decades), None, None

    def learn(self, result: TrialResult) -> None:
        """Select the next parents once a generation is complete."""
        self._children.append(result)
        if len(self._children) < self._settings.population_size:
            return
        rivals = [each for each in self._parents + self._children if each.is_known]
        ranked = order([each.losses for each in rivals])
        self._parents = [rivals[i] for i in ranked[: self._settings.population_size]]
        self._children = []

    def _parent(self) -> Config:
        """Return the better of two random parents."""
        return self._parents[int(self.rng.integers(len(self._parents), size=2).min())].config
