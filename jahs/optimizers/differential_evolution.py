"""Differential evolution (Storn and Price, 1997): a child mixes a member with the difference of two others.

A config is a point in the unit cube, one axis for each key: a choice owns an interval of its axis, a float is
log-uniform (Awad, Mallik and Hutter, 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast

import numpy as np
import numpy.typing as npt

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.moves import log_share, log_uniform, movable
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config

__all__ = ["DifferentialEvolution", "DifferentialEvolutionSettings"]

_Point = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentialEvolutionSettings(OptimizerSettings):
    """Settings of differential evolution (rand/1/bin)."""

    population_size: Annotated[int, Within(4)] = 20  # members, which are random configs at first
    mutation_factor: Annotated[float, Within(0, 2, excluded=0)] = 0.5  # scale of the difference of two members
    crossover_rate: Annotated[float, Within(0, 1)] = 0.5  # share of keys, one at least, from the mutant


class DifferentialEvolution(Baseline[DifferentialEvolutionSettings]):
    """Each member in turn is replaced by its child if the child is as good. One objective."""

    name = "differential_evolution"

    def prepare(self) -> None:
        """Set up an empty search."""
        self._parameters = [self.view.space.parameters[key] for key in movable(self.view.space)]
        self._points: list[_Point] = []
        self._loss_of: list[float] = []
        self._n_random = self._settings.population_size
        self._turn = 0

    def propose(self) -> tuple[Config, None, tuple[int | None, _Point]]:
        """Return a random config until the population is complete, then the child of the next member."""
        if self._n_random or len(self._points) < self._settings.population_size:
            self._n_random = max(self._n_random - 1, 0)
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
        if target is None:
            self._points.append(point)
            self._loss_of.append(loss)
        elif loss <= self._loss_of[target]:
            self._points[target], self._loss_of[target] = point, loss

    def _child(self, target: int) -> _Point:
        """Return the child of a member; coordinates outside the cube are drawn anew."""
        others = self.rng.choice(len(self._points) - 1, 3, replace=False)
        a, b, c = (self._points[i + (i >= target)] for i in others.tolist())
        mutant = a + self._settings.mutation_factor * (b - c)
        mutant = np.where((mutant >= 0) & (mutant < 1), mutant, self.rng.random(len(mutant)))
        is_mutated = self.rng.random(len(mutant)) < self._settings.crossover_rate
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
