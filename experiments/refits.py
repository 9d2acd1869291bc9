"""Surrogates fitted again to the runs that a release has recorded, or to most of them.

What a release's surrogate says of the space depends on which configs happened to be trained. Models that leave out a
tenth of them, each another one, tell how much.
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
from splits.folds import k_folds
from splits.split import Split
from surrogate.dataset import Measurements, Rows, assemble
from surrogate.model import Settings as ModelSettings
from surrogate.model import Surrogate, fit_surrogate

__all__ = ["Refit", "every_row", "recorded_measurements", "refits"]


class Refit:
    """Answers one metric, as a benchmark does, from a surrogate fitted to most recorded configs."""

    def __init__(self, bench: Benchmark, metric: str, model: Surrogate) -> None:
        self.metrics: Mapping[str, Metric] = {metric: bench.metrics[metric]}
        self.max_epoch = bench.max_epoch
        self._model = model

    def query_many(self, configs: Configs, *, at: int, metrics: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """Return the metric of many configs at one epoch."""
        (metric,) = metrics
        return {metric: self._model.predict(encode(configs, at))}


def refits(bench: Benchmark, metric: str, *, n_folds: int, seed: int) -> Iterator[Refit]:
    """Yield surrogates that leave out one fold of the recorded configs each, with the release's settings.

    Raises:
        MissingData: the release has no recorded runs, or does not say how its models were fitted.
        InvalidArgument: there are fewer configs than folds.
    """
    recorded = read_release(bench.release).table if bench.release is not None else None
    if recorded is None:
        raise MissingData(f"{bench!r} has no recorded runs that a surrogate could be fitted to")
    settings = ModelSettings.from_dict(bench.quality()["metrics"][metric]["settings"])
    measured = recorded_measurements(recorded, bench.task)
    rows = every_row(metric, measured)
    for _, held_out in k_folds(measured.configs, n_folds, seed=seed):
        kept = rows.take(~np.isin(rows.config_id, measured.configs["config_id"][held_out]))
        yield Refit(bench, metric, fit_surrogate(metric, kept, bench.task, settings=settings))


def recorded_measurements(recorded: RecordedTable, of_task: Task) -> Measurements:
    """Return what a release has recorded, as surrogates are fitted to it."""
    configs = take(recorded.configs, np.argsort(recorded.configs["config_id"], kind="stable"))
    protocol = str(recorded.runs["protocol"][0]) if len(recorded.runs["protocol"]) else ""
    return Measurements(task=of_task, protocol=protocol, configs=configs, runs=recorded.runs, profile=recorded.profile)


def every_row(metric: str, measured: Measurements) -> Rows:
    """Return every row that a model of this metric can be fitted to."""
    ids = np.unique(measured.configs["config_id"]).astype(np.uint64)
    nobody = Split(
        config_ids=ids,
        parts=np.zeros(len(ids), dtype=np.int8),
        seed=0,
        task=measured.task.name,
        protocol=measured.protocol,
    )
    return assemble(metric, measured, nobody)["train"]
