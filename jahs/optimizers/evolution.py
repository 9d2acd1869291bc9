"""Optimisers with a population: evolution, NSGA-II and differential evolution.

Evolution (Real et al., 2019) mutates tournament winners and removes the oldest member or, if not regularized, the
worst. NAS-Bench-101 uses a population of 100 and tournaments of 10 for thousands of evaluations; the defaults here suit
about a hundred. NSGA-II (Deb et al., 2002) selects parents and children by front, then by crowding distance. In
differential evolution (Storn and Price, 1997), a child mixes a member with the difference of two others: a config is a
point in the unit cube, one axis for each key, where a choice owns an interval of its axis and a float is log-uniform
(Awad, Mallik and Hutter, 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from jahs.adapters.values import shown_parameters
from jahs.errors import InvalidArgument
from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.moves import crossed, log_share, log_uniform, mutated
from jahs.optimizers.ranking import order
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionSettings(OptimizerSettings):
    """Settings of evolution."""

    population_size: Annotated[int, Within(1)] = 20  # possible parents, and random configs at the start
    tournament_size: Annotated[int, Within(1)] = 5  # members in a tournament; the best becomes the parent
    n_mutations: Annotated[int, Within(1)] = 1  # keys that change in a child
    decades: Annotated[float, Within(0, 3, excluded=0)] = 0.5  # largest change of a float, in powers of ten
    removes: Literal["oldest", "worst"] = "oldest"  # "oldest" is regularized evolution

    def __post_init__(self) -> None:
        """Also refuse a tournament larger than the population."""
        OptimizerSettings.__post_init__(self)  # a dataclass with slots has no super() before Python 3.14
        if self.tournament_size > (most := self.population_size):
            raise InvalidArgument(f"tournament_size={self.tournament_size} must be at most population_size={most}")


class Evolution(Baseline[EvolutionSettings]):
    """Mutates the winners of tournaments. One objective."""

    def prepare(self) -> None:
        """Set up an empty search."""
        self.name = "regularized_evolution" if self._settings.removes == "oldest" else "evolution"
        self._keys = list(shown_parameters(self.view.space))
        self._population: list[tuple[float, Config]] = []  # the oldest first

    def propose(self) -> tuple[Config, None, None]:
        """Return a random config at first, then a mutated tournament winner."""
        if self._n_proposed < self._settings.population_size or not self._population:
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
        self._keys = list(shown_parameters(self.view.space))
        self._parents: list[TrialResult] = []  # the best first
        self._children: list[TrialResult] = []

    def propose(self) -> tuple[Config, None, None]:
        """Return a random config at first, then a child."""
        if self._n_proposed < self._settings.population_size or not self._parents:
            return self.random_config(), None, None
        child = self._parent()
        if self.rng.random() < self._settings.crossover_rate:
            child = crossed(child, self._parent(), self.rng, keys=self._keys)
        is_mutated = self.rng.random(len(self._keys)) < 1 / max(len(self._keys), 1)
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


_Point = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentialEvolutionSettings(OptimizerSettings):
    """Settings of differential evolution (rand/1/bin)."""

    population_size: Annotated[int, Within(4)] = 20  # members, which are random configs at first
    mutation_factor: Annotated[float, Within(0, 2, excluded=0)] = 0.5  # scale of the difference of two members
    crossover_rate: Annotated[float, Within(0, 1)] = 0.5  # share of keys from the mutant, at least one key


class DifferentialEvolution(Baseline[DifferentialEvolutionSettings]):
    """Each member in turn is replaced by its child if the child is as good. One objective."""

    name = "differential_evolution"

    def prepare(self) -> None:
        """Set up an empty search."""
        self._parameters = list(shown_parameters(self.view.space).values())
        self._points: list[_Point] = []
        self._loss_of: list[float] = []
        self._turn = 0

    def propose(self) -> tuple[Config, None, tuple[int | None, _Point]]:
        """Return a random config until the population is complete, then the child of the next member."""
        if min(self._n_proposed, len(self._points)) < self._settings.population_size:
            config = self.random_config()
            return config, None, (None, self._encoded(config))
        target = self._turn % len(self._points)
        self._turn += 1
        point = self._child(target)
        return self._decoded(point), None, (target, point)

    def learn(self, result: TrialResult) -> None:
        """Add a member, or replace one by its child."""
        if not result.is_known:
            return
        (target, point), loss = result.memo, float(result.losses[0])
        if target is None and len(self._points) < self._settings.population_size:
            self._points.append(point)
            self._loss_of.append(loss)
            return
        if target is None:  # a random config that ends after the population is complete, with several workers
            target = int(np.argmax(self._loss_of))
        if loss <= self._loss_of[target]:
            self._points[target], self._loss_of[target] = point, loss

    def _child(self, target: int) -> _Point:
        """Return the child of a member; coordinates outside the cube are drawn anew."""
        others = self.rng.choice(len(self._points) - 1, 3, replace=False)
        a, b, c = (self._points[i + (i >= target)] for i in others.tolist())
        mutant = a + self._settings.mutation_factor * (b - c)
        mutant = np.where((mutant >= 0) & (mutant < 1), mutant, self.rng.random(len(mutant)))
        is_mutated = self.rng.random(len(mutant)) < self._settings.crossover_rate
        if len(mutant):
            is_mutated[int(self.rng.integers(len(mutant)))] = True
        return np.where(is_mutated, mutant, self._points[target])

    def _encoded(self, config: Config) -> _Point:
        """Return a point of a config: random within the intervals of its choices."""
        values, point = cast("dict[str, Any]", config), self.rng.random(len(self._parameters))
        for i, parameter in enumerate(self._parameters):
            value, choices = values[parameter.name], parameter.choices
            if parameter.kind == "float":
                point[i] = log_share(parameter, value)
            else:
                point[i] = (choices.index(value) + point[i]) / len(choices)
        return point

    def _decoded(self, point: _Point) -> Config:
        values: dict[str, Any] = dict(self.view.space.default())
        for parameter, x in zip(self._parameters, point.tolist(), strict=True):
            choices = parameter.choices
            values[parameter.name] = (
                log_uniform(parameter, x) if parameter.kind == "float" else choices[int(x * len(choices))]
            )
        return cast("Config", values)
