"""Surrogates fitted again to the recorded runs of a release, or to most of them.

A landscape depends on the configs that the surrogate was fitted to. Models that each leave out one fold show how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from jahs.errors import MissingData
from jahs.files.tables import take
from jahs.queries.benchmark import Benchmark
from jahs.release import RecordedTable, read_release
from jahs.spaces.columns import Configs
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import Metric
from surrogate.data.measurements import Measurements
from surrogate.data.rows import assemble
from surrogate.models.folds import leave_folds_out
from surrogate.models.model import ForestSettings, Surrogate

__all__ = ["Refit", "recorded_measurements", "refits"]


class Refit:
    """A benchmark of one metric, answered by a surrogate fitted to most recorded configs."""

    def __init__(self, bench: Benchmark, metric: str, model: Surrogate) -> None:
        self.metrics: Mapping[str, Metric] = {metric: bench.metrics[metric]}
        self.max_epoch = bench.max_epoch
        self._model = model

    def query_many(self, configs: Configs, *, at: int, metrics: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """Return the metric of many configs at one epoch."""
        (metric,) = metrics
        return {metric: self._model.predict(encode(configs, at))}


def refits(bench: Benchmark, metric: str, *, n_folds: int, seed: int) -> Iterator[Refit]:
    """Yield surrogates that each leave out one fold of the recorded configs, fitted with the release's settings.

    Raises:
        MissingData: the release has no recorded runs, or no settings of its models.
        InvalidArgument: there are fewer configs than folds.
    """
    recorded = read_release(bench.release).table if bench.release is not None else None
    if recorded is None:
        raise MissingData(f"{bench!r} has no recorded runs to fit a surrogate to")
    settings = ForestSettings.from_dict(bench.quality()["metrics"][metric]["settings"])
    measured = recorded_measurements(recorded, bench.task)
    rows = assemble(metric, measured)
    for fitted in leave_folds_out(metric, rows, measured, n_folds=n_folds, seed=seed, settings=settings):
        yield Refit(bench, metric, fitted)


def recorded_measurements(recorded: RecordedTable, of_task: Task) -> Measurements:
    """Return the recorded runs of a release as measurements to fit."""
    configs = take(recorded.configs, np.argsort(recorded.configs["config_id"], kind="stable"))
    protocol = str(recorded.runs["protocol"][0]) if len(recorded.runs["protocol"]) else ""
    return Measurements(task=of_task, protocol=protocol, configs=configs, runs=recorded.runs, profile=recorded.profile)
