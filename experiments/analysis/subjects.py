"""What the studies of released models ask: a benchmark and the refits of its release."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jahs
from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.logs import Floats
from jahs.errors import MissingData
from jahs.spaces.columns import Configs
from jahs.tasks.definitions import Task

MAIN = "valid_acc"
"""The metric of every study."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """One task of a study.

    Attributes:
        refits: the refits of the release; empty if it has none.
    """

    task: Task
    bench: jahs.Benchmark
    refits: tuple[jahs.Benchmark, ...]

    @property
    def models(self) -> tuple[jahs.Benchmark, ...]:
        """The released models, then the refits."""
        return (self.bench, *self.refits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a study reads besides releases.

    Attributes:
        data: folder of recorded data, such as data; None: none is read.
    """

    seed: int
    data: Path | None = None

    @property
    def packs(self) -> Path | None:
        """The folder of the packs of studies, by season."""
        return None if self.data is None else self.data / "studies"

    def runs_of(self, task: str) -> Path | None:
        """Return the folder of a task's runs, if there is one."""
        folder = None if self.data is None else self.data / task / "runs"
        return folder if folder is not None and folder.is_dir() else None


def open_subject(task: str, release: Path | None) -> Subject:
    """Return a task with its release and the refits."""
    bench = open_benchmark(task, release)
    found = release_of(bench)
    try:
        n_refits = found.refits.n_refits if MAIN in found.refits.metrics else 0
    except MissingData:
        n_refits = 0
    refits = tuple(open_benchmark(task, release, refit=k) for k in range(n_refits))
    return Subject(task=bench.task, bench=bench, refits=refits)


def answers(bench: jahs.Benchmark, configs: Configs, metric: str = MAIN) -> Floats:
    """Return a metric of every config at the last epoch."""
    return bench.query_many(configs, metrics=(metric,))[metric]
