"""The contract of everything that answers queries. `tests/contracts/oracle.py` is its test suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.release.models import Costs
from jahs.spaces.configs import Config
from jahs.spaces.seeds import Seeds
from jahs.spaces.space import space
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import Metric

Kind: TypeAlias = Literal["surrogate", "table", "live"]

Codes: TypeAlias = Sequence[float]
"""The 14 numbers of a valid config, `jahs.spaces.configs.config_codes`."""

Numbers: TypeAlias = dict[str, NDArray[np.float64]]
"""One column per metric."""


class Oracle(Protocol):
    """Answers queries about one task. Its inputs are already checked: configs as codes, epochs in 1..max_epoch."""

    kind: Kind
    task: Task
    metrics: Mapping[str, Metric]  # metrics of the answers, in order
    max_epoch: int  # the last epoch that it answers
    costs: Costs

    def query(self, codes: Codes, epoch: int, *, seed: int | None, metrics: Sequence[str]) -> dict[str, float]:
        """Return the metrics of one config at one epoch, bit for bit as in a batch. NotRecorded if none are recorded.

        By default, this queries a batch of one; faster oracles override it.
        """
        answers = self.query_many(np.array([codes]), np.array([epoch]), seed=seed, metrics=metrics)
        return {name: values.item() for name, values in answers.items()}

    def query_many(
        self, codes: NDArray[np.float64], epochs: NDArray[np.int64], *, seed: Seeds, metrics: Sequence[str]
    ) -> Numbers:
        """Return the metrics of many configs, (n, 14), each at its epoch, (n,)."""
        ...

    def trajectory(
        self, codes: Codes, epochs: NDArray[np.int64], *, seed: int | None, metrics: Sequence[str]
    ) -> Numbers:
        """Return the metrics of one training at ascending epochs, by default as a batch that repeats its config."""
        return self.query_many(np.repeat([codes], len(epochs), axis=0), epochs, seed=seed, metrics=metrics)

    def sample(self, n: int, *, seed: int | None) -> list[Config]:
        """Return random configs that it can answer: by default, of the whole space."""
        return space().sample(n, seed=seed)
