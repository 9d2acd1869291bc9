"""The rows that one metric's model is fitted and scored on, and the parts of a split as labels on them.

A row is one measurement: an accuracy for each (config, seed, epoch), an epoch time for each (config, seed), a latency
for each config. `assemble` knows no split; `by_part` divides rows by one. Configs that are profiled but not trained yet
are in no part. Their latencies count as training rows, and are never used for validation or test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable, UnknownName
from jahs.files.runs import sorted_runs
from jahs.files.tables import Table, take
from jahs.models.cost import n_macs, n_params
from jahs.models.features import FeatureBuilder, FeatureSet
from jahs.schema import COLUMNS, SIZE_KEYS, SPLIT_PARTS
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES, LEARNED
from splits.kinship import group_name
from splits.split import Split
from surrogate.data.measurements import Measurements, trained_configs
from workshop.measured import halves_of_visits, last_rows
from workshop.numbered import FIDELITY_GROUPS, REPEATED_EVERY

Facts: TypeAlias = dict[str, Any]  # JSON: facts for quality.json, figures and cards
FEWEST: Final = 4  # default of `fewest`: training configs that every fidelity group needs
FEWEST_TO_FIT: Final = 2  # fewest training configs that a model is fitted to
EXACT: Final = MappingProxyType({"n_params": n_params, "n_macs": n_macs})
"""The metrics that are computed exactly, with their functions."""

_MOST_EXAMPLES: Final = 3
_FEWEST_REPEATS: Final = 20

GROUP_VALUES: Final = tuple(dict(zip(SIZE_KEYS, values, strict=True)) for values in FIDELITY_GROUPS)
"""N, W and Resolution of each fidelity group, by its number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Measurements of one metric, in order of config, seed and epoch."""

    X: NDArray[np.float32]  # encoded configs and epochs, (n_rows, 15) float32
    y: NDArray[np.float64]  # measurements, (n_rows,) float64, in the metric's unit
    config_id: NDArray[np.uint64]  # (n_rows,) uint64
    seed: NDArray[np.int64]  # (n_rows,) int64; 0 for metrics without a seed

    def __len__(self) -> int:
        return len(self.y)

    @property
    def epoch(self) -> NDArray[np.int64]:
        """The epoch of each row; for an epoch time, the number of epochs that were averaged."""
        return self.X[:, -1].astype(np.int64)

    @property
    def n_configs(self) -> int:
        """The number of configs."""
        return len(np.unique(self.config_id))

    @property
    def config_means(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """The ids of the configs, in order, and the mean measurement of each."""
        ids, place, counts = np.unique(self.config_id, return_inverse=True, return_counts=True)
        return ids, np.bincount(place, weights=self.y) / counts

    def take(self, rows: NDArray[np.bool_ | np.integer]) -> Rows:
        """Return some rows: positions or a mask."""
        return Rows(X=self.X[rows], y=self.y[rows], config_id=self.config_id[rows], seed=self.seed[rows])


ROW_ARRAYS: Final = ("X", "y", "config_id", "seed")  # the arrays of `Rows`, in order


def join_rows(several: Sequence[Rows]) -> Rows:
    """Return the rows of several parts one after another."""
    return Rows(**{name: np.concatenate([getattr(rows, name) for rows in several]) for name in ROW_ARRAYS})


def assemble(metric: str, measured: Measurements) -> Rows:
    """Return the rows that a model of a learned or exact metric is fitted to.

    `runtime` is in CPU seconds per epoch: each run's last runtime divided by its epochs. `latency`, `n_params` and
    `n_macs` have one row for each config, at epoch 1.

    Raises:
        InvalidTable: it was not measured at all.
    """
    if metric in EXACT:
        table = _as_runs({"config_id": trained_configs(measured)["config_id"]}, seed=0)
        table[metric] = EXACT[metric](measured.encode(table["config_id"], table["epoch"]), measured.task)
    elif metric == "latency":
        table = _as_runs(measured.profile, seed=0)
    elif metric == "runtime":
        table = last_rows(sorted_runs(measured.timed_runs))
        table["runtime"] = table["runtime"].astype(np.float64) / table["epoch"].astype(np.float64)
    else:
        table = measured.valid_runs
    if not len(table["config_id"]):
        source = "profile.parquet; run python -m pipeline.profile" if metric == "latency" else "the runs"
        raise InvalidTable(f"{metric}: there is no measurement in {source}")
    return _rows(measured, table, metric)


def assemble_answered(metric: str, measured: Measurements) -> Rows:
    """Return the rows that a model's answers are compared with: as `assemble`, but cumulative seconds of `runtime`."""
    return _rows(measured, measured.timed_runs, metric) if metric == "runtime" else assemble(metric, measured)


def assemble_repeats(metric: str, measured: Measurements) -> Rows:
    """Return the rows that noise ceilings come from, where repeated configs have several seeds.

    For accuracies, only configs that were repeated whatever their results, if there are enough: the best ones, repeated
    because they are good, differ less, and have a lower ceiling. A latency has no seeds. Its even visits count as one
    and its odd visits as another; there are no rows where the visits are not known.
    """
    if metric in ACCURACIES and (chosen := unselected_repeats(measured)) is not None:
        rows = assemble(metric, measured)
        return rows.take(np.isin(rows.config_id, chosen))
    if metric != "latency":
        return assemble_answered(metric, measured)
    halves = halves_of_visits(measured.visits)
    return join_rows([_rows(measured, _as_runs(half, seed=seed), metric) for seed, half in enumerate(halves)])


def uniform_configs(measured: Measurements) -> NDArray[np.uint64]:
    """Return the ids of the configs that were drawn uniformly, from all sizes."""
    ids: NDArray[np.uint64] = measured.configs["config_id"][measured.configs["source"] == "uniform"]
    return ids


def unselected_repeats(measured: Measurements) -> NDArray[np.uint64] | None:
    """Return the ids of the configs that were repeated whatever their results; None if they are fewer than 20."""
    is_scheduled = measured.configs["config_index"] % REPEATED_EVERY == 0
    ids, n_seeds = np.unique(last_rows(sorted_runs(measured.runs))["config_id"], return_counts=True)
    scheduled = np.intersect1d(measured.configs["config_id"][is_scheduled], ids[n_seeds > 1])
    found = np.intersect1d(scheduled, uniform_configs(measured))
    return found if len(found) >= _FEWEST_REPEATS else None


def by_part(rows: Rows, split: Split) -> dict[str, Rows]:
    """Return the rows of each part; configs in no part, which are only profiled, count as training."""
    parts = split.parts_of(rows.config_id)
    return {part: rows.take((parts == i) | (i == 0) & (parts < 0)) for i, part in enumerate(SPLIT_PARTS)}


def development_rows(metric: str, measured: Measurements, split: Split) -> Rows:
    """Return the rows of a metric outside the test part: first train, then valid."""
    parts = by_part(assemble(metric, measured), split)
    return join_rows([parts["train"], parts["valid"]])


def training_rows(
    metrics: Sequence[str], measured: Measurements, split: Split, *, fewest: int
) -> dict[str, dict[str, Rows]]:
    """Return the rows of several learned metrics by part; refuse too few rows to fit every metric.

    Raises:
        UnknownName: a metric is not learned.
        InvalidTable: a metric was not measured, or `check_groups` refuses its training part.
    """
    if unknown := [metric for metric in metrics if metric not in LEARNED]:
        raise UnknownName.of("metric", unknown[0], LEARNED)
    parts = {metric: by_part(assemble(metric, measured), split) for metric in dict.fromkeys(metrics)}
    for metric, rows in parts.items():
        check_groups(metric, rows["train"], fewest=fewest)
    return parts


def unmeasured(measured: Measurements, split: Split) -> dict[str, str]:
    """Return the learned metrics that were measured for too few training configs to fit a model, and why."""
    machine, missing = measured.timing_machine, {}
    n_profiled, n_timed = (
        int((split.parts_of(ids) <= 0).sum())  # -1: only profiled; 0: train
        for ids in (measured.profile["config_id"], np.unique(measured.timed_runs["config_id"]))
    )
    if not len(measured.profile["config_id"]):
        missing["latency"] = "there is no profile yet; python -m pipeline.profile measures it"
    elif n_profiled < FEWEST_TO_FIT:
        missing["latency"] = f"{n_profiled} training configs were profiled"
    if n_timed < FEWEST_TO_FIT:
        missing["runtime"] = f"{n_timed} training configs were timed on {machine}" if machine else "no run was on a CPU"
    return missing


def diverged_runs(measured: Measurements, split: Split) -> dict[str, int]:
    """Return the number of diverged runs in each part."""
    runs = last_rows(sorted_runs(measured.runs))
    parts = split.parts_of(runs["config_id"][runs["status"] == "diverged"])
    return {name: int((parts == number).sum()) for number, name in enumerate(SPLIT_PARTS)}


def group_numbers(X: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the fidelity group of each encoded row: the position of its (N, W, Resolution) in `GROUP_VALUES`."""
    places = [np.searchsorted(PARAMETERS[key].codes, X[:, COLUMNS.index(key)]) for key in SIZE_KEYS]
    return (places[0] * 9 + places[1] * 3 + places[2]).astype(np.int64)


def is_full_size(X: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which encoded rows are of the largest networks, which are the last fidelity group."""
    return np.asarray(group_numbers(X) == len(GROUP_VALUES) - 1, dtype=np.bool_)


def configs_by_group(rows: Rows) -> NDArray[np.int64]:
    """Return the number of configs in each fidelity group, (27,)."""
    _, first = np.unique(rows.config_id, return_index=True)
    return np.bincount(group_numbers(rows.X[first]), minlength=27).astype(np.int64)


def check_groups(metric: str, rows: Rows, *, fewest: int = FEWEST) -> None:
    """Refuse training rows with fewer than `fewest` configs in a fidelity group."""
    counts = configs_by_group(rows)
    if not (few := np.flatnonzero(counts < fewest)).size:
        return
    texts = [f"{group_name(FIDELITY_GROUPS[g])} has {counts[g]}" for g in few[:_MOST_EXAMPLES].tolist()]
    raise InvalidTable(
        f"{metric}: {len(few)} of 27 fidelity groups have fewer than {fewest} training configs: {', '.join(texts)}; "
        "collect more, or lower --fewest"
    )


def _rows(measured: Measurements, table: Table, column: str) -> Rows:
    table = take(table, np.lexsort((table["epoch"], table["seed"], table["config_id"])))
    config_id = table["config_id"].astype(np.uint64)
    return Rows(
        X=measured.encode(config_id, table["epoch"]),
        y=table[column].astype(np.float64),
        config_id=config_id,
        seed=table["seed"].astype(np.int64),
    )


def _as_runs(columns: Mapping[str, NDArray[np.generic]], *, seed: int) -> Table:
    """Return rows of configs with a seed and the epoch 1."""
    n_rows = len(columns["config_id"])
    return {**columns, "seed": np.full(n_rows, seed, np.int64), "epoch": np.ones(n_rows, np.int64)}


def features_of(X: NDArray[np.float32], features: FeatureSet, of_task: Task) -> NDArray[np.float32]:
    """Return the features of encoded configs and epochs, (n, n_features)."""
    return _builder(features, of_task).build(X)


@lru_cache(maxsize=8)
def _builder(features: FeatureSet, of_task: Task) -> FeatureBuilder:
    """Return a builder; its look-up tables take as long as thousands of configs."""
    return FeatureBuilder(features, of_task)
