"""NSGA-II (Deb et al., 2002): parents and children compete by front, then by how lonely they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.optimizers.baseline import Baseline, Result
from experiments.optimizers.moves import crossed, movable, mutated
from experiments.optimizers.ranking import order
from experiments.optimizers.settings import require
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["Nsga2", "Nsga2Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nsga2Settings:
    """Settings of NSGA-II.

    Attributes:
        population_size: parents, and children before parents are chosen again; so many are drawn at random first.
        crossover_rate: share of children that have two parents.
        decades: largest change of a float by a mutation, in powers of ten.
    """

    population_size: int = 20
    crossover_rate: float = 0.9
    decades: float = 0.5

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (self.population_size >= 2, f"population_size={self.population_size} is not at least 2"),
            (0 <= self.crossover_rate <= 1, f"crossover_rate={self.crossover_rate} is not in [0, 1]"),
            (0 < self.decades <= 3, f"decades={self.decades} is not in (0, 3]"),
        )


class Nsga2(Baseline):
    """Keeps a spread of trade-offs; any number of objectives. Children are made while others are still trained."""

    name = "nsga2"

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: Nsga2Settings | None = None,
    ) -> None:
        self._settings = settings or Nsga2Settings()
        super().__init__(view, seed=seed, objectives=objectives, settings=self._settings)
        self._keys = movable(view.space)
        self._n_random = self._settings.population_size
        self._parents: list[Result] = []  # the best first
        self._children: list[Result] = []

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

    def learn(self, result: Result) -> None:
        """Let a generation compete once it is whole."""
        self._children.append(result)
        if len(self._children) < self._settings.population_size:
            return
        rivals = [each for each in self._parents + self._children if each.is_known]
        ranked = order([each.losses for each in rivals])
        self._parents = [rivals[i] for i in ranked[: self._settings.population_size]]
        self._children = []

    def _parent(self) -> Config:
        """The better of two members."""
        return self._parents[int(self.rng.integers(len(self._parents), size=2).min())].config
