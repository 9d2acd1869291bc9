"""ASHA (Li et al., 2020): promotes a config as soon as it is in the best 1/eta of its rung so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.ranking import Ranking
from jahs.optimizers.rungs import RungSettings, rungs
from jahs.spaces.configs import Config

__all__ = ["Asha", "AshaSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AshaSettings(RungSettings):
    """Settings of ASHA."""


@dataclass(slots=True)
class _Rung:
    """The results at one fidelity."""

    configs: list[Config] = field(default_factory=list)
    ranking: Ranking = field(default_factory=Ranking)
    is_open: list[bool] = field(default_factory=list)  # trained to the end, and not promoted


class Asha(Baseline[AshaSettings]):
    """Promotes at once. Several objectives are ranked by front and crowding distance."""

    name = "asha"

    def prepare(self) -> None:
        """Set up an empty search."""
        self._fidelities = rungs(self.view, eta=self._settings.eta, n_rungs=self._settings.n_rungs)
        self._rungs = [_Rung() for _ in self._fidelities]

    def propose(self) -> tuple[Config, dict[str, float], int]:
        """Promote the best open config of the highest rung that has one, or draw a new config."""
        for k in range(len(self._rungs) - 2, -1, -1):
            rung = self._rungs[k]
            i = rung.ranking.first(int(len(rung.ranking) / self._settings.eta), rung.is_open)
            if i is not None:
                rung.is_open[i] = False
                return rung.configs[i], self._fidelities[k + 1], k + 1
        return self.random_config(), self._fidelities[0], 0

    def learn(self, result: TrialResult) -> None:
        """Add a result to its rung."""
        rung = self._rungs[result.memo]
        rung.configs.append(result.config)
        rung.ranking.add(result.losses)
        rung.is_open.append(result.is_known)
