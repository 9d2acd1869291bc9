"""An imported release under our rules: exact costs, one latency per config, strictly increasing runtimes.

The published models answer each epoch separately, so their runtime may fall from one epoch to the next, and their
latency changes with the epoch. Here the runtime of an epoch is the largest predicted up to that epoch, and exceeds the
previous one by at least a hundredth of the mean epoch; the latency is the last epoch's. Accuracies stay unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.queries.oracles.oracle import Codes, Kind, Numbers, Oracle
from jahs.queries.oracles.surrogate import EXACT, SurrogateOracle
from jahs.release.models import Costs
from jahs.spaces.seeds import Seeds
from jahs.tasks.metrics import METRICS, Metric

_LEAST_RISE: Final = 0.01
_RUNTIME: Final = (
    "Seconds from the start of training to the end of the queried epoch, as published but made strictly increasing."
)
_REPAIRED: Final = ("latency", "runtime", *EXACT)


class RepairedOracle(Oracle):
    """Queries an oracle of an imported release, and repairs its costs."""

    kind: Kind = "surrogate"
    costs: Costs = "repaired"

    def __init__(self, published: SurrogateOracle) -> None:
        self.published = published
        self.task = published.task
        self.max_epoch = published.max_epoch
        self.engine = published.engine
        metrics = {name: METRICS[name] for name in METRICS if name in published.metrics or name in EXACT}
        if "runtime" in metrics:
            metrics["runtime"] = replace(METRICS["runtime"], description=_RUNTIME)
        self.metrics: Mapping[str, Metric] = MappingProxyType(metrics)

    def query_many(
        self, codes: NDArray[np.float64], epochs: NDArray[np.int64], *, seed: Seeds, metrics: Sequence[str]
    ) -> Numbers:
        """Return the metrics of many configs; see `Oracle.query_many`."""
        answers: Numbers = {}
        if unrepaired := [name for name in metrics if name not in _REPAIRED]:
            answers |= self.published.query_many(codes, epochs, seed=seed, metrics=unrepaired)
        if "latency" in metrics:
            last_epochs = np.full(len(epochs), self.max_epoch)
            answers |= self.published.query_many(codes, last_epochs, seed=seed, metrics=["latency"])
        if "runtime" in metrics:
            answers["runtime"] = runtimes = np.empty(len(epochs))
            for row, places in _places(codes).items():
                runtimes[places] = self._runtimes(row, seed)[epochs[places] - 1]
        if any(name in EXACT for name in metrics):
            answers |= self.published.exact_costs(codes)
        return {name: answers[name] for name in metrics}

    def _runtimes(self, codes: Codes, seed: Seeds) -> NDArray[np.float64]:
        """Return the repaired runtime of every epoch, (max_epoch,)."""
        if seed is not None and not isinstance(seed, int):
            seed = int(seed[0])  # an imported release has no noise: the query below raises for any seed
        epochs = np.arange(1, self.max_epoch + 1)
        runtimes = self.published.trajectory(codes, epochs, seed=seed, metrics=["runtime"])["runtime"]
        rise = _LEAST_RISE * runtimes.max() / self.max_epoch * epochs
        return np.asarray(np.maximum.accumulate(runtimes - rise) + rise)


def _places(codes: NDArray[np.float64]) -> dict[tuple[float, ...], list[int]]:
    """Group rows by config: one trajectory answers all rows of a config."""
    places: dict[tuple[float, ...], list[int]] = {}
    for i, row in enumerate(codes.tolist()):
        places.setdefault(tuple(row), []).append(i)
    return places
