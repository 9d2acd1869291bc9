"""REINFORCE (Williams, 1992): a policy gradient on one categorical distribution per key.

Like NAS-Bench-101's (its supplement S4), without a controller network. Floats are divided into bins of equal width on
their log scale and drawn log-uniformly within a bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from jahs.adapters.values import shown_parameters
from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.moves import log_uniform
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config

_Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReinforceSettings(OptimizerSettings):
    """Settings of REINFORCE."""

    learning_rate: Annotated[float, Within(0, excluded=0)] = 0.3  # step of the logits for a unit advantage
    memory: Annotated[float, Within(0, 1, excluded=1)] = 0.9  # decay of the moving mean and variance of the loss
    n_bins: Annotated[int, Within(2)] = 8  # bins of a float


class Reinforce(Baseline[ReinforceSettings]):
    """Learns a distribution over configs. One objective."""

    name = "reinforce"

    def prepare(self) -> None:
        """Set up an empty search."""
        self._parameters = list(shown_parameters(self.view.space).values())
        self._logits = [np.zeros(len(p.choices) or self._settings.n_bins) for p in self._parameters]
        self._mean: float | None = None
        self._variance = self._weight = 0.0

    def propose(self) -> tuple[Config, None, list[int]]:
        """Draw a config from the distributions."""
        drawn = [int(self.rng.choice(len(logits), p=_softmax(logits))) for logits in self._logits]
        values: dict[str, Any] = dict(self.view.space.default())
        for parameter, i in zip(self._parameters, drawn, strict=True):
            if parameter.kind == "float":
                values[parameter.name] = log_uniform(parameter, (i + self.rng.random()) / self._settings.n_bins)
            else:
                values[parameter.name] = parameter.choices[i]
        return cast("Config", values), None, drawn

    def learn(self, result: TrialResult) -> None:
        """Follow the policy gradient; the baseline is the moving mean of the loss."""
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
        self._weight += forget * (1 - self._weight)  # corrects the variance for its start at zero
        advantage = surprise / math.sqrt(self._variance / self._weight) if self._variance > 0 else 0.0
        for k, i in enumerate(result.memo):
            gradient = -_softmax(self._logits[k])
            gradient[i] += 1
            self._logits[k] += self._settings.learning_rate * advantage * gradient


def _softmax(logits: _Floats) -> _Floats:
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())
