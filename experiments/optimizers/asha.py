"""ASHA (Li et al., 2020): successive halving without waiting: what is in the best share so far is promoted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.optimizers.baseline import Baseline, Result
from experiments.optimizers.ranking import order
from experiments.optimizers.rungs import rungs
from experiments.optimizers.settings import require
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["Asha", "AshaSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AshaSettings:
    """Settings of ASHA.

    Attributes:
        eta: share of a rung that is promoted is 1/eta, and rungs are a factor of eta apart.
        n_rungs: at most so many; None: down to the lowest fidelity.
    """

    eta: float = 3.0
    n_rungs: int | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (1.5 <= self.eta < math.inf, f"eta={self.eta} is not a finite number of at least 1.5"),
            (self.n_rungs is None or self.n_rungs >= 1, f"n_rungs={self.n_rungs} is not at least 1"),
        )


@dataclass(slots=True)
class _Rung:
    """What has been trained at one fidelity, and which of it has gone on."""

    results: list[Result] = field(default_factory=list)
    has_gone_on: list[bool] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # promotable, the best first


class Asha(Baseline):
    """Promotes at once; one objective, or several by fronts and crowding."""

    name = "asha"

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: AshaSettings | None = None,
    ) -> None:
        self._settings = settings or AshaSettings()
        super().__init__(view, seed=seed, objectives=objectives, settings=self._settings)
        self._fidelities = rungs(view, eta=self._settings.eta, n_rungs=self._settings.n_rungs)
        self._rungs = [_Rung() for _ in self._fidelities]

    def propose(self) -> tuple[Config, dict[str, float], int]:
        """Promote the best config of the highest rung that has one to promote, or draw a new one."""
        for k in range(len(self._rungs) - 2, -1, -1):
            rung = self._rungs[k]
            if rung.waiting:
                i = rung.waiting.pop(0)
                rung.has_gone_on[i] = True
                return rung.results[i].config, self._fidelities[k + 1], k + 1
        return self.random_config(), self._fidelities[0], 0

    def learn(self, result: Result) -> None:
        """Find out who of this rung may go on."""
        rung = self._rungs[result.memo]
        rung.results.append(result)
        rung.has_gone_on.append(False)
        n_best = int(len(rung.results) / self._settings.eta)
        best = order([each.losses for each in rung.results], n_best)
        rung.waiting = [i for i in best if not rung.has_gone_on[i] and rung.results[i].is_known]
