"""The subjects of studies of released models: a benchmark and the refits of its release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jahs
from experiments.science.moves import SHAPE
from jahs.comparison.benches import open_benchmark, refits_of, release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import MissingData
from jahs.queries.queryable import Queryable
from jahs.spaces.cell import all_ops
from jahs.spaces.columns import Configs
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from surrogate.data.rows import GROUP_VALUES
from workshop.exhaustive import cells_on_grid

MAIN = "valid_acc"  # the metric of every study


class Subject(NamedTuple):
    """One task of a study."""

    bench: jahs.Benchmark
    refits: tuple[jahs.Benchmark, ...]  # the refits of the release; empty if it has none
    data: Path | None  # folder of recorded runs and packs of studies, such as data; None: none is read

    @property
    def title(self) -> str:
        """The title of the task."""
        return self.bench.task.title

    @property
    def slug(self) -> str:
        """The name of the task in names of figures."""
        return self.bench.task.name.replace("_", "-")

    @property
    def models(self) -> tuple[jahs.Benchmark, ...]:
        """The released models, then the refits."""
        return (self.bench, *self.refits)

    @property
    def on_lightgbm(self) -> tuple[Subject, ...]:
        """The task on the second family of the release, which has no refits; empty if the release has none."""
        if not release_of(self.bench).has("lightgbm.json"):
            return ()
        return (Subject(open_benchmark(self.bench.task.name, self.bench.release, model="lightgbm"), (), self.data),)


class Spread(NamedTuple):
    """Values on the released models, and 1.96 standard deviations between refits (NaN with fewer than two)."""

    values: Floats
    errors: Floats

    def at(self, *place: int, scale: float = 1.0) -> Interval:
        """Return the value at a place with its interval, both times `scale`."""
        value, error = (scale * float(array[place]) for array in self)
        return Interval(value=value, low=value - error, high=value + error)


def spread_of(found: Sequence[Floats]) -> Spread:
    """Return the spread of values of the released models, which are the first, and of each refit."""
    values, *refits = map(np.asarray, found)
    return Spread(values, 1.96 * np.std(refits, axis=0, ddof=1) if len(refits) > 1 else np.full(values.shape, np.nan))


def open_subject(task: str, release: Path | None, *, data: Path | None = None) -> Subject:
    """Return a task with its release and the refits."""
    if data is not None and not data.is_dir():
        raise MissingData(f"data={data} does not exist or is not a folder; give one with TASK/runs and TASK/split.json")
    bench = open_benchmark(task, release)
    return Subject(bench, refits_of(bench, MAIN), data)


def answers(bench: Queryable, configs: Configs, metric: str = MAIN, *, epoch: int | None = None) -> Floats:
    """Return a metric of every config at an epoch; None: the last one."""
    return bench.query_many(configs, at=epoch, metrics=(metric,))[metric]


def fidelities_of(bench: jahs.Benchmark) -> list[dict[str, Any]]:  # Any: int or float
    """Return all sizes at the last epoch, then full size at a 27th, a ninth and a third of the epochs."""
    epochs = sorted({max(bench.max_epoch // share, 1) for share in (27, 9, 3)} - {bench.max_epoch})
    at_last = [{**size, "epoch": bench.max_epoch} for size in GROUP_VALUES]
    return at_last + [{**LARGEST, "epoch": epoch} for epoch in epochs]


def values_of_cells(bench: jahs.Benchmark, metric: str, fidelity: Mapping[str, Any]) -> Floats:  # Any: int or float
    """Return a metric of every cell with the hyperparameters of the reference config, or else the default ones.

    Args:
        fidelity: N, W, Resolution and the epoch, without which it is the last one.
    """
    sizes = {name: value for name, value in fidelity.items() if name != "epoch"}
    setting = space({**(bench.reference_config or space().default()), **sizes})
    return answers(bench, cells_on_grid(all_ops(), setting), metric, epoch=fidelity.get("epoch")).reshape(SHAPE)
