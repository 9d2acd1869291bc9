"""Successive halving (Jamieson and Talwalkar, 2016) and Hyperband (Li et al., 2018), with brackets side by side.

A bracket trains some configs at a low rung and the best share of 1/eta at the next one, until the full fidelity. While
a rung waits for its last results, free workers begin the next bracket, so that none is idle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from experiments.optimizers.baseline import Baseline, Result
from experiments.optimizers.ranking import order
from experiments.optimizers.rungs import rungs
from experiments.optimizers.settings import require
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["Halving", "HalvingSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvingSettings:
    """Settings of successive halving and Hyperband.

    Attributes:
        eta: share of the configs that is promoted is 1/eta, and rungs are a factor of eta apart.
        n_rungs: at most so many; None: down to the lowest fidelity.
        brackets: "deepest": every bracket begins at the lowest rung (successive halving); "all": they begin at the
            lowest rung, the next one, and so on to the full fidelity, and again (Hyperband).
    """

    eta: float = 3.0
    n_rungs: int | None = None
    brackets: str = "all"

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (1.5 <= self.eta < math.inf, f"eta={self.eta} is not a finite number of at least 1.5"),
            (self.n_rungs is None or self.n_rungs >= 1, f"n_rungs={self.n_rungs} is not at least 1"),
            (self.brackets in ("deepest", "all"), f"brackets={self.brackets!r} is not 'deepest' or 'all'"),
        )


@dataclass(slots=True)
class _Bracket:
    """Configs on their way up.

    Attributes:
        rung: where they are trained now.
        n_random: random configs that are still to be drawn for the first rung.
        queue: configs that are still to be trained at this rung.
        n_open: trials that run.
        results: of this rung.
    """

    rung: int
    n_random: int
    queue: list[Config] = field(default_factory=list)
    n_open: int = 0
    results: list[Result] = field(default_factory=list)


class Halving(Baseline):
    """Promotes the best of each rung; one objective, or several by fronts and crowding."""

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: HalvingSettings | None = None,
    ) -> None:
        self._settings = settings or HalvingSettings()
        self.name = "hyperband" if self._settings.brackets == "all" else "successive_halving"
        super().__init__(view, seed=seed, objectives=objectives, settings=self._settings)
        self._rungs = rungs(view, eta=self._settings.eta, n_rungs=self._settings.n_rungs)
        self._open_brackets: list[_Bracket] = []
        self._bracket_numbers = count()

    def propose(self) -> tuple[Config, dict[str, float], _Bracket]:
        """Return what the oldest bracket wants next, or begin another one."""
        bracket = next((b for b in self._open_brackets if b.n_random or b.queue), None) or self._begin()
        if bracket.n_random:
            bracket.n_random -= 1
            config = self.random_config()
        else:
            config = bracket.queue.pop(0)
        bracket.n_open += 1
        return config, self._rungs[bracket.rung], bracket

    def learn(self, result: Result) -> None:
        """Promote the best of a rung when its last result is there."""
        bracket: _Bracket = result.memo
        bracket.n_open -= 1
        bracket.results.append(result)
        if bracket.n_open or bracket.n_random or bracket.queue:
            return
        n_best = max(1, int(len(bracket.results) / self._settings.eta))
        best = [bracket.results[i] for i in order([each.losses for each in bracket.results], n_best)]
        bracket.queue = [each.config for each in best if each.is_known]
        bracket.rung += 1
        bracket.results = []
        if bracket.rung == len(self._rungs) or not bracket.queue:
            self._open_brackets.remove(bracket)

    def _begin(self) -> _Bracket:
        n_rungs, eta = len(self._rungs), self._settings.eta
        first = next(self._bracket_numbers) % n_rungs if self._settings.brackets == "all" else 0
        n_above = n_rungs - 1 - first
        n = eta**n_above if self._settings.brackets == "deepest" else n_rungs / (n_above + 1) * eta**n_above
        bracket = _Bracket(rung=first, n_random=math.ceil(n - 1e-9))
        self._open_brackets.append(bracket)
        return bracket
