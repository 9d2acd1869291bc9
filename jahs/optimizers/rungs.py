"""Optimisers that promote configs from rung to rung, which are fidelities on the view's path from cheap to full.

Successive halving (Jamieson and Talwalkar, 2016) and Hyperband (Li et al., 2018) have brackets side by side: a bracket
trains some configs at a low rung, promotes the best 1/eta to the next one, and so on up to the full fidelity. While a
rung waits for its last results, free workers begin the next bracket, so no worker is idle. ASHA (Li et al., 2020)
promotes a config as soon as it is in the best 1/eta of its rung so far.

The lowest rung is at the lowest fidelity, even if the next rung is less than a factor of eta above it: eta=4 gives the
epochs 1, 2, 7 and 27, where these papers have 2, 7 and 27 (`n_rungs=3`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.ranking import Ranking, order
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.simulate import Visible
from jahs.spaces.configs import Config

_TINY: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RungSettings(OptimizerSettings):
    """Settings of an optimiser that promotes configs from rung to rung."""

    eta: Annotated[float, Within(1.5)] = 3.0  # 1/eta of a rung's configs are promoted; rungs are a factor of eta apart
    n_rungs: Annotated[int | None, Within(1)] = None  # maximum number of rungs; None: down to the lowest fidelity


def rungs(view: Visible, *, eta: float, n_rungs: int | None = None) -> list[dict[str, float]]:
    """Return fidelities in ascending order: shares 1, 1/eta, 1/eta**2 and so on of the way to the full one.

    Several fidelities rise together (`view.path`). Shares that map to the same fidelity are one rung.
    """
    fidelities, lowest = [view.path(1.0)], view.path(_TINY)
    share = 1.0
    while fidelities[-1] != lowest and (n_rungs is None or len(fidelities) < n_rungs):
        share = max(share / eta, _TINY)
        fidelity = view.path(share)
        if fidelity != fidelities[-1]:
            fidelities.append(fidelity)
    return fidelities[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvingSettings(RungSettings):
    """Settings of successive halving and Hyperband.

    Attributes:
        brackets: "deepest": every bracket begins at the lowest rung (successive halving); "all": brackets begin at the
            lowest rung, the next one, and so on up to the full fidelity, in turn (Hyperband).
    """

    brackets: Literal["deepest", "all"] = "all"


@dataclass(slots=True)
class _Bracket:
    rung: int  # the current one
    n_random: int  # random configs still to be drawn for the first rung
    queue: list[Config] = field(default_factory=list)  # promoted configs still to be trained at this rung
    n_open: int = 0  # running trials
    results: list[TrialResult] = field(default_factory=list)  # at this rung
    fraction: float = 0.0  # of a config, by which the number at this rung was rounded down


class Halving(Baseline[HalvingSettings]):
    """Promotes the best of each complete rung. Several objectives are ranked by front and crowding distance."""

    def prepare(self) -> None:
        """Set up an empty search."""
        self.name = "hyperband" if self._settings.brackets == "all" else "successive_halving"
        self._rungs = rungs(self.view, eta=self._settings.eta, n_rungs=self._settings.n_rungs)
        self._open_brackets: list[_Bracket] = []
        self._n_brackets = 0

    def propose(self) -> tuple[Config, dict[str, float], _Bracket]:
        """Return the next config of the oldest bracket that has one, or begin another bracket."""
        bracket = next((b for b in self._open_brackets if b.n_random or b.queue), None) or self._begin()
        if bracket.n_random:
            bracket.n_random -= 1
            config = self.random_config()
        else:
            config = bracket.queue.pop(0)
        bracket.n_open += 1
        return config, self._rungs[bracket.rung], bracket

    def learn(self, result: TrialResult) -> None:
        """Promote the best of a rung once it is complete."""
        bracket: _Bracket = result.memo
        bracket.n_open -= 1
        bracket.results.append(result)
        if bracket.n_open or bracket.n_random or bracket.queue:
            return
        n = (len(bracket.results) + bracket.fraction) / self._settings.eta
        n_best = max(1, int(n + _TINY))
        bracket.fraction = max(0.0, n - n_best)
        best = [bracket.results[i] for i in order([each.losses for each in bracket.results], n_best)]
        bracket.queue = [each.config for each in best if each.is_known]
        bracket.rung += 1
        bracket.results = []
        if bracket.rung == len(self._rungs) or not bracket.queue:
            self._open_brackets.remove(bracket)

    def _begin(self) -> _Bracket:
        n_rungs, eta = len(self._rungs), self._settings.eta
        first = self._n_brackets % n_rungs if self._settings.brackets == "all" else 0
        self._n_brackets += 1
        n_above = n_rungs - 1 - first
        n = eta**n_above if self._settings.brackets == "deepest" else n_rungs / (n_above + 1) * eta**n_above
        bracket = _Bracket(rung=first, n_random=math.ceil(n - _TINY))
        self._open_brackets.append(bracket)
        return bracket


@dataclass(frozen=True, slots=True, kw_only=True)
class AshaSettings(RungSettings):
    """Settings of ASHA."""


@dataclass(slots=True)
class _Rung:
    """The results at one fidelity."""

    configs: list[Config] = field(default_factory=list)
    ranking: Ranking = field(default_factory=Ranking)


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
            i = rung.ranking.take(int(len(rung.ranking) / self._settings.eta))
            if i is not None:
                return rung.configs[i], self._fidelities[k + 1], k + 1
        return self.random_config(), self._fidelities[0], 0

    def learn(self, result: TrialResult) -> None:
        """Add a result to its rung."""
        rung = self._rungs[result.memo]
        rung.configs.append(result.config)
        rung.ranking.add(result.losses, is_known=result.is_known)
