"""Evolution by mutation of tournament winners (Real et al., 2019); the oldest leaves or, non-regularized, the worst.

NAS-Bench-101 uses a population of 100 and tournaments of 10 for thousands of evaluations; the defaults here are for
about a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.optimizers.baseline import Baseline, Result
from experiments.optimizers.moves import movable, mutated
from experiments.optimizers.settings import require
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["Evolution", "EvolutionSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionSettings:
    """Settings of evolution.

    Attributes:
        population_size: configs that can be parents; so many are drawn at random first.
        tournament_size: members drawn, of which the best is the parent.
        n_mutations: keys that change in a child.
        decades: largest change of a float, in powers of ten.
        removes: who leaves a population that is too large: the "oldest" (regularized evolution) or the "worst".
    """

    population_size: int = 20
    tournament_size: int = 5
    n_mutations: int = 1
    decades: float = 0.5
    removes: Literal["oldest", "worst"] = "oldest"

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (self.population_size >= 1, f"population_size={self.population_size} is not at least 1"),
            (
                1 <= self.tournament_size <= self.population_size,
                f"tournament_size={self.tournament_size} is not in 1..population_size={self.population_size}",
            ),
            (self.n_mutations >= 1, f"n_mutations={self.n_mutations} is not at least 1"),
            (0 < self.decades <= 3, f"decades={self.decades} is not in (0, 3]"),
            (self.removes in ("oldest", "worst"), f"removes={self.removes!r} is not 'oldest' or 'worst'"),
        )


class Evolution(Baseline):
    """Mutates winners of tournaments; one objective."""

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: EvolutionSettings | None = None,
    ) -> None:
        self._settings = settings or EvolutionSettings()
        self.name = "regularized_evolution" if self._settings.removes == "oldest" else "evolution"
        super().__init__(view, seed=seed, objectives=objectives, settings=self._settings)
        self._keys = movable(view.space)
        self._population: list[tuple[float, Config]] = []  # the oldest first
        self._n_random = self._settings.population_size

    def propose(self) -> tuple[Config, None, None]:
        """Return a random config at first, then a mutation of a tournament's winner."""
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

    def learn(self, result: Result) -> None:
        """Let a config that was trained into the population."""
        if not result.is_known:
            return
        self._population.append((float(result.losses[0]), result.config))
        if len(self._population) > self._settings.population_size:
            ages = range(len(self._population))
            worst = max(ages, key=lambda i: self._population[i][0])
            self._population.pop(worst if self._settings.removes == "worst" else 0)
