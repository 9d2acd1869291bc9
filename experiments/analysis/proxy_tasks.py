"""What a folder of runs says of its scored configs: scores by seed, learning curves and costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.proxy_orders import seeds_of
from jahs.comparison.logs import Floats
from jahs.files.runs import (
    is_timed,
    read_configs,
    read_profile,
    read_protocol,
    read_proxies,
    read_runs,
    timing_machine,
)
from jahs.files.tables import Table, take
from jahs.models.cost import n_macs
from jahs.schema import CONFIG_KEYS, PROXIES, PROXY_TIMES, SPLIT_PARTS
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import Task
from jahs.tasks.own import task_of_protocol
from splits.kinship import fidelity_groups
from splits.split import read_split


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredTask:
    """The configs of a folder that have scores and a finished run, sorted by id; n of them.

    Attributes:
        task: what they were trained on.
        n_recorded: how many configs have a finished run.
        X: encoded, (n, 15).
        group: fidelity group of each.
        part: of the split, as a position in `SPLIT_PARTS`; -1 without a split.
        accuracy: validation accuracy of the first finished run, (n, epochs).
        runtime_s: its cumulative CPU seconds, (n, epochs); NaN where it was not timed on the one processor.
        scores: (n_seeds, n) by proxy, NaN where missing.
        cpu_s: mean CPU seconds of each proxy, (n,).
        versions: of torch, and the processors.
    """

    task: Task
    n_recorded: int
    configs: Table
    X: NDArray[np.float32]
    group: NDArray[np.intp]
    part: NDArray[np.int64]
    accuracy: Floats
    runtime_s: Floats
    scores: dict[str, Floats]
    cpu_s: dict[str, Floats]
    versions: tuple[str, ...]

    @property
    def baselines(self) -> dict[str, Floats]:
        """What costs nothing or one epoch, (1, n) each."""
        return {
            "multiply-adds": np.asarray(n_macs(self.X, self.task), dtype=np.float64)[None],
            "accuracy after one epoch": self.accuracy[None, :, 0],
        }


def read_scored(folder: Path) -> ScoredTask:
    """Read a folder of runs, and the split beside it if there is one."""
    of_task = task_of_protocol(read_protocol(folder).facts)
    runs, configs, scored = read_runs(folder), read_configs(folder), read_proxies(folder)
    runs["runtime"] = np.where(is_timed(runs, timing_machine(runs, read_profile(folder))), runs["runtime"], np.nan)
    runs = take(runs, runs["status"] == "finished")
    recorded, first = np.unique(runs["config_id"], return_index=True)
    ids = np.intersect1d(recorded, scored["config_id"])
    n_epochs = int(max(runs["epoch"], default=of_task.max_epoch))
    rows = first[np.searchsorted(recorded, ids)][:, None] + np.arange(n_epochs)  # a run's epochs are in order
    table = take(configs, np.argsort(configs["config_id"]))
    table = take(table, np.isin(table["config_id"], ids))
    split = folder.parent / "split.json"
    return ScoredTask(
        task=of_task,
        n_recorded=len(recorded),
        configs=table,
        X=encode({key: table[key] for key in CONFIG_KEYS}, n_epochs),
        group=fidelity_groups(table)[0] if len(ids) else np.empty(0, np.intp),
        part=read_split(split).parts_of(ids).astype(np.int64) if split.exists() else np.full(len(ids), -1),
        accuracy=runs["valid_acc"][rows].astype(np.float64),
        runtime_s=runs["runtime"][rows].astype(np.float64),
        scores={name: seeds_of(scored, name, ids) for name in PROXIES},
        cpu_s={name: _mean_over_seeds(seeds_of(scored, column, ids)) for name, column in PROXY_TIMES.items()},
        versions=(*sorted(set(scored["torch_version"].tolist())), *sorted(set(scored["machine"].tolist()))),
    )


def is_test(scored: ScoredTask) -> NDArray[np.bool_]:
    """Return which configs are in the test part of the split."""
    return np.asarray(scored.part == SPLIT_PARTS.index("test"))


def _mean_over_seeds(values: Floats) -> Floats:
    known = np.isfinite(values)
    return np.asarray(np.where(known, values, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))
