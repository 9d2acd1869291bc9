"""Local search: climb from the best of some random configs to a local optimum, then restart.

White, Nolen and Savani (2020) evaluate all neighbours before they move. Here the first better neighbour is taken: a
config has about 35 neighbours, and a run about a hundred evaluations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.moves import values_of
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config
from jahs.spaces.space import STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSearchSettings(OptimizerSettings):
    """Settings of local search."""

    n_initial: Annotated[int, Within(1)] = 10  # random configs before each climb, which starts at the best of them
    factor: Annotated[float, Within(1.001)] = STEP  # ratio between a float and its neighbours


class LocalSearch(Baseline[LocalSearchSettings]):
    """Hill climbing with restarts. One objective."""

    name = "local_search"

    def prepare(self) -> None:
        """Begin a climb."""
        self._n_random = self._settings.n_initial
        self._n_open = self._n_results = 0
        self._best: Config | None = None
        self._loss = math.inf
        self._queue: list[Config] = []
        self._seen: set[tuple[object, ...]] = set()
        self._climbed: set[tuple[object, ...]] = set()

    def propose(self) -> tuple[Config, None, None] | None:
        """Return a random config, then neighbours of the best one; None while the last neighbours are trained."""
        if self._n_random:
            self._n_random -= 1
            config = self.random_config()
        elif self._queue:
            config = self._queue.pop()
        elif self._n_open:
            return None
        else:
            self.prepare()
            return self.propose()
        self._n_open += 1
        self._seen.add(values_of(config))
        return config, None, None

    def learn(self, result: TrialResult) -> None:
        """Move to a config that is better than the best one of this climb."""
        self._n_open -= 1
        self._n_results += 1
        if result.losses[0] < self._loss:
            self._best, self._loss = result.config, float(result.losses[0])
            self._queue = []
        if self._best is None or self._queue or self._n_results < self._settings.n_initial:
            return
        if values_of(self._best) not in self._climbed:
            self._climbed.add(values_of(self._best))
            neighbors = self.view.space.neighbors(self._best, factor=self._settings.factor)
            neighbors = [config for config in neighbors if values_of(config) not in self._seen]
            self._queue = [neighbors[i] for i in self.rng.permutation(len(neighbors))]
