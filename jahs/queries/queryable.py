"""What a search may rely on: the one Protocol that a `Benchmark` and every `View` of it satisfy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from jahs.queries.result import Result
from jahs.spaces.columns import Configs
from jahs.spaces.configs import Config
from jahs.spaces.space import Space
from jahs.tasks.metrics import Metric

__all__ = ["At", "Queryable"]

At: TypeAlias = int | Mapping[str, object]
"""How much is spent: an epoch, or values of some fidelities by name."""


class Queryable(Protocol):
    """What a search needs: a `Benchmark` is one, and so is every `View` of it."""

    @property
    def space(self) -> Space:
        """What is searched."""

    @property
    def fidelities(self) -> Mapping[str, tuple[float, ...]]:
        """The legal values of each fidelity, ascending."""

    @property
    def full(self) -> Mapping[str, float]:
        """The highest fidelity."""

    @property
    def max_epoch(self) -> int:
        """The last epoch."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """What a query answers, by name."""

    def fidelity(self, at: object = None) -> dict[str, float]:
        """Return a whole legal fidelity, its epoch rounded, half to even."""

    @overload
    def sample(self, n: None = None, *, seed: int | None) -> Config: ...
    @overload
    def sample(self, n: int, *, seed: int | None) -> list[Config]: ...
    def sample(self, n: int | None = None, *, seed: int | None) -> Config | list[Config]:
        """Return `n` random configs, or one if `n` is not given."""

    def query(
        self,
        config: Mapping[str, object],
        *,
        at: At | None = None,
        seed: int | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Result:
        """Return the metrics of one config at one fidelity (None: the highest)."""

    def query_many(
        self,
        configs: Configs,
        *,
        at: At | Sequence[At] | None = None,
        each_at: Sequence[At] | npt.NDArray[np.integer] | None = None,
        seed: int | npt.NDArray[np.integer] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> dict[str, npt.NDArray[np.float64]]:
        """Return the metrics of many configs as columns."""

    def trajectory(
        self,
        config: Mapping[str, object],
        *,
        frm: int = 1,
        to: int | None = None,
        step: int = 1,
        seed: int | None = None,
        metrics: Sequence[str] | None = None,
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the metrics of one config, epoch by epoch, with the column "epoch"."""
