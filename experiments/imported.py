"""Imported releases as studies query them: accuracies between 0 and 100 %, and a runtime where none was published.

The authors' pre-release model of CIFAR-10 has no runtimes, and its predictions may exceed 100 %. Without runtimes, a
config takes the runtimes of `cifar10_mini`: at epoch e of 200, the share e/200 of its runtime at the last epoch there.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.benches import open_benchmark, release_of
from jahs.queries.benchmark import Benchmark
from jahs.queries.completing import search_references
from jahs.queries.references import References
from jahs.spaces.seeds import Seeds
from jahs.tasks.metrics import ACCURACIES, METRICS, read_metrics

CLOCK: Final = "cifar10_mini"  # the task whose embedded release supplies runtimes to imported releases without any
_RUNTIME: Final = "runtime"
_log: Final = logging.getLogger(__name__)


@functools.lru_cache(maxsize=24)
def open_for_study(task: str, release: Path | None, *, refit: int | None = None, model: str | None = None) -> Benchmark:
    """Return the benchmark of a task as studies query it; it is opened once per process."""
    bench = open_benchmark(task, release, refit=refit, model=model)
    return ImportedBenchmark(task, release) if release_of(bench).facts.get("source") == "imported" else bench


def source_of(bench: Benchmark) -> str:
    """Return the source of a benchmark's release, and the release of its runtimes if that is another one."""
    clock = getattr(bench, "clock", None)
    runtimes = "" if clock is None else f", runtimes of {clock.task.name} {release_of(clock).facts.get('version')}"
    return f"{release_of(bench).facts.get('source')}{runtimes}"


class ImportedBenchmark(Benchmark):
    """The benchmark of an imported release; `query_many`, which simulations use, answers as described above.

    If the release has no front, one is searched for when it is first needed, as `jahs import --with-front` does.

    Attributes:
        clock: the benchmark that supplies the runtimes; None: this one.
    """

    def __init__(self, task: str, release: Path | None) -> None:
        super().__init__(task, release=release)
        self.clock: Benchmark | None = None
        if _RUNTIME not in self.metrics:
            self.clock = open_benchmark(CLOCK, None)
            self.metrics = MappingProxyType({**self.metrics, _RUNTIME: METRICS[_RUNTIME]})

    @functools.cached_property
    def _references(self) -> References:
        return super()._references if self._has_references else search_references(self, report=_log.info)

    def _answer(
        self, X: NDArray[np.float64], epochs: NDArray[Any], *, seed: Seeds, metrics: Sequence[str] | None
    ) -> dict[str, NDArray[np.float64]]:
        names = tuple(self.metrics) if metrics is None else read_metrics(metrics, known=self.metrics)
        predicted = [name for name in names if name != _RUNTIME or self.clock is None]
        answers = super()._answer(X, epochs, seed=seed, metrics=predicted) if predicted else {}
        answers |= {name: np.clip(answers[name], 0.0, 100.0) for name in predicted if name in ACCURACIES}
        if self.clock is not None and _RUNTIME in names:
            last = np.full(len(X), self.clock.max_epoch)
            whole = self.clock._answer(X, last, seed=None, metrics=(_RUNTIME,))[_RUNTIME]
            answers[_RUNTIME] = whole * epochs / self.max_epoch
        return {name: answers[name] for name in names}
