"""REINFORCE (Williams, 1992): one categorical distribution for each key, moved towards what did better than expected.

As NAS-Bench-101's (its supplement S4), without a controller network. Floats are cut into bins of equal width on their
log scale and drawn uniformly within one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from experiments.optimizers.baseline import Baseline, Result
from experiments.optimizers.moves import movable
from experiments.optimizers.settings import require
from jahs.simulate import Visible
from jahs.spaces.configs import Config
from jahs.spaces.parameters import Parameter

__all__ = ["Reinforce", "ReinforceSettings"]

_Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReinforceSettings:
    """Settings of REINFORCE.

    Attributes:
        learning_rate: of the logits, for an advantage of one standard deviation.
        memory: share of the expected loss and its spread that stays at each result.
        n_bins: of a float's range.
    """

    learning_rate: float = 0.3
    memory: float = 0.9
    n_bins: int = 8

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (0 < self.learning_rate < math.inf, f"learning_rate={self.learning_rate} is not a positive number"),
            (0 <= self.memory < 1, f"memory={self.memory} is not in [0, 1)"),
            (self.n_bins >= 2, f"n_bins={self.n_bins} is not at least 2"),
        )


class Reinforce(Baseline):
    """Learns a distribution over configs; one objective."""

    name = "reinforce"

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: ReinforceSettings | None = None,
    ) -> None:
        self._settings = settings or ReinforceSettings()
        super().__init__(view, seed=seed, objectives=objectives, settings=self._settings)
        self._parameters = [view.space.parameters[key] for key in movable(view.space)]
        self._logits = [np.zeros(len(p.choices) or self._settings.n_bins) for p in self._parameters]
        self._mean: float | None = None
        self._variance = self._weight = 0.0

    def propose(self) -> tuple[Config, None, list[int]]:
        """Draw a config from the distributions."""
        drawn = [int(self.rng.choice(len(logits), p=_softmax(logits))) for logits in self._logits]
        values: dict[str, Any] = dict(self.view.space.default())
        for parameter, i in zip(self._parameters, drawn, strict=True):
            values[parameter.name] = self._in_bin(parameter, i) if parameter.kind == "float" else parameter.choices[i]
        return cast("Config", values), None, drawn

    def learn(self, result: Result) -> None:
        """Make what did better than expected more likely, and what did worse less."""
        if not result.is_known:
            return
        loss = float(result.losses[0])
        if self._mean is None:
            self._mean = loss
            return
        surprise = self._mean - loss
        forget = 1 - self._settings.memory
        self._mean -= forget * surprise
        self._variance += forget * (surprise**2 - self._variance)
        self._weight += forget * (1 - self._weight)  # of what the variance has seen
        advantage = surprise / math.sqrt(self._variance / self._weight) if self._variance > 0 else 0.0
        for k, i in enumerate(result.memo):
            gradient = -_softmax(self._logits[k])
            gradient[i] += 1
            self._logits[k] += self._settings.learning_rate * advantage * gradient

    def _in_bin(self, parameter: Parameter, i: int) -> float:
        share = (i + float(self.rng.random())) / self._settings.n_bins
        value = parameter.lower * float((parameter.upper / parameter.lower) ** share)
        return min(max(value, parameter.lower), parameter.upper)


def _softmax(logits: _Floats) -> _Floats:
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())
