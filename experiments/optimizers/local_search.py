"""Local search: from the best of some random configs, move to a better neighbour until there is none, then begin again.

White, Nolen and Savani (2020) evaluate all neighbours before they move; here the first better one is taken, as a config
of this space has about 35 neighbours and a run a hundred evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.optimizers.baseline import Baseline, Result
from experiments.optimizers.moves import values_of
from experiments.optimizers.settings import require
from jahs.simulate import Visible
from jahs.spaces.configs import Config
from jahs.spaces.space import STEP

__all__ = ["LocalSearch", "LocalSearchSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSearchSettings:
    """Settings of local search.

    Attributes:
        n_initial: random configs before each climb, which begins at the best of them.
        factor: between a float and its neighbours.
    """

    n_initial: int = 10
    factor: float = STEP

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (self.n_initial >= 1, f"n_initial={self.n_initial} is not at least 1"),
            (1.001 <= self.factor < math.inf, f"factor={self.factor} is not a finite number of at least 1.001"),
        )


class LocalSearch(Baseline):
    """Climbs hills; one objective."""

    name = "local_search"

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: LocalSearchSettings | None = None,
    ) -> None:
        self._settings = settings or LocalSearchSettings()
        super().__init__(view, seed=seed, objectives=objectives, settings=self._settings)
        self._climb = 0
        self._best: Config | None = None
        self._loss = math.inf
        self._queue: list[Config] = []
        self._begin()

    def propose(self) -> tuple[Config, None, int] | None:
        """Return a random config, a neighbour of the best one, or nothing while the last neighbours are trained."""
        if self._n_random:
            self._n_random -= 1
            config = self.random_config()
        elif self._queue:
            config = self._queue.pop()
        elif self._n_open:
            return None
        else:
            self._begin()
            return self.propose()
        self._n_open += 1
        self._seen.add(values_of(config))
        return config, None, self._climb

    def learn(self, result: Result) -> None:
        """Move to a config that is better than the best of this climb."""
        assert result.memo == self._climb  # a climb ends when nothing is open
        self._n_open -= 1
        self._n_told += 1
        if result.losses[0] < self._loss:
            self._best, self._loss = result.config, float(result.losses[0])
            self._queue = []
        if self._best is None or self._queue or self._n_told < self._settings.n_initial:
            return
        if values_of(self._best) not in self._climbed:
            self._climbed.add(values_of(self._best))
            near = self.view.space.neighbors(self._best, factor=self._settings.factor)
            near = [config for config in near if values_of(config) not in self._seen]
            self._queue = [near[i] for i in self.rng.permutation(len(near))]

    def _begin(self) -> None:
        self._climb += 1
        self._n_random = self._settings.n_initial
        self._n_open = self._n_told = 0
        self._best = None
        self._loss = math.inf
        self._queue = []
        self._seen: set[tuple[object, ...]] = set()
        self._climbed: set[tuple[object, ...]] = set()
