"""The surrogate on the clock of the study `live`, epochs, and proposals that are answered report by report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.optimizers.registry import Optimizer
from jahs.queries.benchmark import Benchmark
from jahs.queries.queryable import At
from jahs.simulate import Proposal, Trial
from jahs.simulate.trial import AskedFidelity
from jahs.spaces.configs import Config
from jahs.tasks.metrics import METRICS, Metric

MEASURED: Final = ("valid_acc", "test_acc")


class SurrogateWorld:
    """A release whose time is epochs, so that a budget of epochs means the same here and on real trainings."""

    def __init__(self, bench: Benchmark) -> None:
        self._bench = bench
        self.task, self.space, self.release, self.refit = bench.task, bench.space, bench.release, bench.refit
        self.sample, self.fidelity = bench.sample, bench.fidelity
        self.max_epoch, self.fidelities = bench.max_epoch, bench.fidelities
        self.full: Mapping[str, float] = {"epoch": bench.max_epoch}
        self.metrics: Mapping[str, Metric] = {name: METRICS[name] for name in (*MEASURED, "runtime")}

    def query_many(
        self,
        configs: Sequence[Config],
        *,
        at: At | Sequence[At] | None = None,
        each_at: NDArray[np.int64],
        seed: int | None = None,
        metrics: Sequence[str] | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Return accuracies and, as the runtime, the epochs, as simulations ask for them."""
        assert at is None, "simulations give an epoch for each config"
        assert metrics is None or {*metrics} <= {*self.metrics}
        found = self._answer(configs, each_at, seed)
        return {**found, "runtime": np.asarray(each_at, dtype=np.float64)}

    def _answer(
        self, configs: Sequence[Config], epochs: NDArray[np.int64], seed: int | None
    ) -> dict[str, NDArray[np.float64]]:
        return self._bench.query_many(configs, each_at=epochs, seed=seed, metrics=MEASURED)


class Stepwise:
    """Proposes every report of a proposal as a trial of its own, each continuing the one before.

    So a training that is stopped at a report is not trained further: a simulation asks for a whole proposal at once.
    With one worker and continued trainings, time and results are those of the reports.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.name, self.settings = optimizer.name, optimizer.settings
        self._optimizer = optimizer
        self._current: Proposal | None = None
        self._left: list[AskedFidelity] = []

    def ask(self, n: int) -> list[Proposal]:
        """Return the next step of the current proposal, or the first one of the next."""
        assert n == 1, "one worker"
        if self._current is None:
            found = [each if isinstance(each, Proposal) else Proposal(config=each) for each in self._optimizer.ask(1)]
            if not found:
                return []
            self._current = found[0]
            self._left = [*found[0].reports, found[0].at]
        return [replace(self._current, at=self._left.pop(0), reports=())]

    def tell(self, trial: Trial) -> None:
        """Ask the optimiser whether to stop, or tell it the end of the current proposal."""
        if self._left:
            should_stop = getattr(self._optimizer, "should_stop", None)
            is_known = "valid_acc" in trial.metrics
            if is_known and not (should_stop and should_stop(replace(trial, status="running"))):
                return
            trial = replace(trial, status="stopped")
        self._current, self._left = None, []
        self._optimizer.tell(trial)
