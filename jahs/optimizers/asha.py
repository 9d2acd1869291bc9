"""ASHA (Li et al., 2020): promotes a config as soon as it is in the best 1/eta of its rung so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.ranking import order
from jahs.optimizers.rungs import RungSettings, rungs
from jahs.spaces.configs import Config

__all__ = ["Asha", "AshaSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AshaSettings(RungSettings):
    """Settings of ASHA."""


@dataclass(slots=True)
class _Rung:
    """The results at one fidelity."""

    results: list[TrialResult] = field(default_factory=list)
    is_promoted: list[bool] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # positions of results to promote, the best first


class Asha(Baseline[AshaSettings]):
    """Promotes at once. Several objectives are ranked by front and crowding distance."""

    name = "asha"

    def prepare(self) -> None:
        """Set up an empty search."""
        self._fidelities = rungs(self.view, eta=self._settings.eta, n_rungs=self._settings.n_rungs)
        self._rungs = [_Rung() for _ in self._fidelities]

    def propose(self) -> tuple[Config, dict[str, float], int]:
        """Promote the best waiting config of the highest rung that has one, or draw a new config."""
        for k in range(len(self._rungs) - 2, -1, -1):
            rung = self._rungs[k]
            if rung.waiting:
                i = rung.waiting.pop(0)
                rung.is_promoted[i] = True
                return rung.results[i].config, self._fidelities[k + 1], k + 1
        return self.random_config(), self._fidelities[0], 0

    def learn(self, result: TrialResult) -> None:
        """Update which configs of this rung are to be promoted."""
        rung = self._rungs[result.memo]
        rung.results.append(result)
        rung.is_promoted.append(False)
        n_best = int(len(rung.results) / self._settings.eta)
        best = order([each.losses for each in rung.results], n_best)
        rung.waiting = [i for i in best if not rung.is_promoted[i] and rung.results[i].is_known]
