"""The rows that one metric's model is fitted and scored on, from runs, profile and split.

A row is one measurement: accuracies one per (config, seed, epoch), epoch times one per (config, seed), latencies one
per config. Everything is checked before anything is fitted, and what is left out is counted:

- A diverged run gives its rows before the epoch in which it diverged; they were measured like any other. That epoch
  and what would have followed it are no measurements of a trained network, and are not made up. Models therefore answer
  for trainings that finish; how many did not is counted, in all and for each part.
- Accuracies and losses of any device count. Runtimes are those of one processor, the profile's: another one's seconds
  are not its, and runs on an accelerator have none. Such runs give no epoch time.
- A config that is profiled and not trained yet stands in no split. Its latency was measured like any other, so it helps
  to fit: it counts as training, and neither validates nor tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable, ProtocolMismatch, UnknownName
from jahs.files.hashing import digest_bytes
from jahs.files.runs import (
    halves_of_visits,
    is_timed,
    last_rows,
    read_configs,
    read_profile,
    read_protocol,
    read_runs,
    read_visits,
    sorted_runs,
    timing_machine,
    visits_of_profile,
)
from jahs.files.tables import Table, empty_table, sort_by, take
from jahs.models.cost import n_macs, n_params
from jahs.schema import (
    COLUMNS,
    CONFIG_COLUMNS,
    CONFIG_KEYS,
    PROFILE_COLUMNS,
    RUN_COLUMNS,
    RUN_KEY,
    SPLIT_PARTS,
    VISIT_COLUMNS,
    VISIT_KEY,
)
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import Task, task
from jahs.tasks.metrics import ACCURACIES, LEARNED, METRICS
from splits.split import Split

__all__ = [
    "EXACT",
    "FEWEST",
    "FEWEST_TO_FIT",
    "GROUP_VALUES",
    "Measurements",
    "Rows",
    "assemble",
    "assemble_answered",
    "assemble_cumulative",
    "assemble_exact",
    "assemble_repeats",
    "check_groups",
    "configs_by_group",
    "digest_measurements",
    "group_name",
    "group_numbers",
    "join_rows",
    "read_measurements",
    "trained_configs",
    "unmeasured",
]

FEWEST: Final = 4
"""Training configs that every fidelity group needs, unless told otherwise."""

FEWEST_TO_FIT: Final = 2
"""Training configs that a model needs at least."""

EXACT: Final = MappingProxyType({"n_params": n_params, "n_macs": n_macs})
"""Metrics that are computed, by their function."""

_MOST_EXAMPLES: Final = 3
_ID: Final = ("config_id",)
_GROUP_COLUMNS: Final = [COLUMNS.index(key) for key in ("N", "W", "Resolution")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurements:
    """Everything that was measured under one protocol: the tables of a folder of runs, and their task.

    Visits are what the profile is made of; there may be none where only the profile is known.
    """

    task: Task
    protocol: str
    configs: Table
    runs: Table
    profile: Table
    visits: Table = field(default_factory=lambda: empty_table(VISIT_COLUMNS))

    @property
    def timing_machine(self) -> str | None:
        """The processor whose seconds are the runtimes."""
        return timing_machine(self.runs, self.profile)

    @property
    def profile_machine(self) -> str | None:
        """The processor whose seconds are the latencies."""
        return str(self.profile["machine"][0]) if len(self.profile["machine"]) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Measurements of one metric, in order of config, seed and epoch.

    Attributes:
        X: encoded configs and epochs, (n_rows, 15) float32.
        y: what was measured, (n_rows,) float64, in the metric's unit.
        config_id: (n_rows,) uint64.
        seed: (n_rows,) int64; 0 where there is none.
    """

    X: NDArray[np.float32]
    y: NDArray[np.float64]
    config_id: NDArray[np.uint64]
    seed: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def epoch(self) -> NDArray[np.int64]:
        """The epoch of each row; of an epoch time, the number of epochs it is the mean of."""
        return self.X[:, -1].astype(np.int64)

    def take(self, rows: NDArray[np.bool_ | np.integer]) -> Rows:
        """Return some rows: positions or a mask."""
        return Rows(X=self.X[rows], y=self.y[rows], config_id=self.config_id[rows], seed=self.seed[rows])


def join_rows(several: Sequence[Rows]) -> Rows:
    """Return the rows of several parts one after another."""
    return Rows(
        X=np.concatenate([rows.X for rows in several]),
        y=np.concatenate([rows.y for rows in several]),
        config_id=np.concatenate([rows.config_id for rows in several]),
        seed=np.concatenate([rows.seed for rows in several]),
    )


def read_measurements(folder: Path) -> Measurements:
    """Read a folder of runs.

    Raises:
        MissingData, CorruptFile, UnknownFormat, InvalidTable, ProtocolMismatch: as `jahs.files.runs`.
        UnknownName: its task does not exist.
    """
    protocol = read_protocol(folder)
    facts = protocol.facts.get("task")
    return Measurements(
        task=task(facts["name"] if isinstance(facts, dict) and "name" in facts else str(facts)),
        protocol=protocol.digest,
        configs=read_configs(folder),
        runs=read_runs(folder),
        profile=(profile := read_profile(folder)),
        visits=visits_of_profile(read_visits(folder), profile),
    )


def assemble(metric: str, measured: Measurements, split: Split) -> dict[str, Rows]:
    """Return the rows of a learned metric for each part of the split.

    Accuracies are as measured. `runtime` gives CPU seconds per epoch: what a run took in all, by its epochs. `latency`
    gives the profile's seconds, at epoch 1; configs that are profiled and in no part count as training.

    Raises:
        UnknownName: the metric is not learned.
        InvalidTable: columns are missing, rows stand twice, values are NaN or out of the metric's bounds, or configs
            are unknown to the config table or to the split; every fault at once.
        ProtocolMismatch: tables and split are not all of one protocol.
    """
    if metric not in LEARNED:
        raise UnknownName.of("metric", metric, LEARNED)
    _check_tables(measured, split)
    table = measured.profile if metric == "latency" else measured.runs
    column = metric
    if metric == "latency":
        table = _as_runs(table, seed=0)
    else:
        is_kept = _is_measured(table)
        if metric == "runtime":
            is_kept &= is_timed(table, measured.timing_machine)
        table = take(table, is_kept)
        if metric == "runtime":
            table = _epoch_times(table)
    return _parts(metric, table, column, measured, split)


def unmeasured(measured: Measurements, split: Split) -> dict[str, str]:
    """The learned metrics that were measured of too few training configs for a model, and why."""
    missing = {}
    profiled, machine = measured.profile["config_id"], measured.timing_machine
    timed = measured.runs["config_id"][_is_measured(measured.runs) & is_timed(measured.runs, machine)]
    n_profiled, n_timed = (
        int((_parts_of(np.unique(ids), split) == SPLIT_PARTS.index("train")).sum()) for ids in (profiled, timed)
    )
    if not len(profiled):
        missing["latency"] = "there is no profile yet; python -m pipeline.profile measures it"
    elif n_profiled < FEWEST_TO_FIT:
        missing["latency"] = f"{n_profiled} training configs were profiled"
    if n_timed < FEWEST_TO_FIT:
        missing["runtime"] = f"{n_timed} training configs were timed on {machine}" if machine else "no run was on a CPU"
    return missing


def trained_configs(measured: Measurements) -> Table:
    """The configs that have a run, in order of config_id."""
    return sort_by(take(measured.configs, np.isin(measured.configs["config_id"], measured.runs["config_id"])), _ID)


def digest_measurements(measured: Measurements) -> str:
    """16 hex digits that stand for everything that was measured, however it is divided into files."""
    configs = trained_configs(measured)
    tables = (
        {name: configs[name] for name in CONFIG_COLUMNS},  # not what they were trained for
        measured.runs,
        sort_by(measured.profile, _ID),
        sort_by(measured.visits, VISIT_KEY),
    )
    columns = [table[name] for table in tables for name in sorted(table)]
    texts = [
        "\0".join(values.tolist()).encode() if values.dtype.kind == "U" else values.tobytes() for values in columns
    ]
    return digest_bytes(b"".join(texts))


def assemble_answered(metric: str, measured: Measurements, split: Split) -> dict[str, Rows]:
    """Return the rows that a model's answers are compared with: as `assemble`, but of `runtime` cumulative seconds."""
    return assemble_cumulative(measured, split) if metric == "runtime" else assemble(metric, measured, split)


def assemble_repeats(metric: str, measured: Measurements, answered: Mapping[str, Rows]) -> Rows:
    """Return the rows in which configs stand again with another seed, whatever their part.

    No training repeats a latency. Its profile is made of visits, of which the even ones stand for one seed, the odd
    ones for another; no rows where the visits are not known.

    Args:
        metric: whose.
        measured: what `answered` was assembled from, and checked then.
        answered: what `assemble_answered` gives.
    """
    if metric != "latency":
        return join_rows(list(answered.values()))
    halves = halves_of_visits(measured.visits)
    return join_rows([_rows(measured, _as_runs(half, seed=seed), metric) for seed, half in enumerate(halves)])


def assemble_exact(metric: str, measured: Measurements, split: Split) -> dict[str, Rows]:
    """Return a row for each trained config with its exact `n_params` or `n_macs`; raises as `assemble`."""
    if metric not in EXACT:
        raise UnknownName.of("metric", metric, EXACT)
    _check_tables(measured, split)
    ids = trained_configs(measured)["config_id"]
    table = {"config_id": ids, "seed": np.zeros(len(ids), np.int64), "epoch": np.ones(len(ids), np.int64)}
    table[metric] = EXACT[metric](_encoded(measured.configs, table), measured.task)
    return _parts(metric, table, metric, measured, split)


def assemble_cumulative(measured: Measurements, split: Split) -> dict[str, Rows]:
    """Return cumulative runtimes as they were measured, a row for every timed epoch; raises as `assemble`."""
    _check_tables(measured, split)
    runs = take(measured.runs, _is_measured(measured.runs) & is_timed(measured.runs, measured.timing_machine))
    return _parts("runtime", runs, "runtime", measured, split)


def _parts(metric: str, table: Table, column: str, measured: Measurements, split: Split) -> dict[str, Rows]:
    if not len(table["config_id"]):
        source = "profile.parquet; run python -m pipeline.profile" if metric == "latency" else "the runs"
        raise InvalidTable(f"{metric}: there is no measurement in {source}")
    _check_values(metric, table[column], table)
    rows = _rows(measured, table, column)
    parts = _parts_of(rows.config_id, split)
    return {part: rows.take(parts == i) for i, part in enumerate(SPLIT_PARTS)}


def _parts_of(config_ids: NDArray[np.uint64], split: Split) -> NDArray[np.int8]:
    """The part of each config; one that has none trains: it is only profiled, for `_check_tables` refuses its runs."""
    parts = split.parts_of(config_ids)
    return np.where(parts < 0, np.int8(SPLIT_PARTS.index("train")), parts)


def _rows(measured: Measurements, table: Table, column: str) -> Rows:
    table = take(table, np.lexsort((table["epoch"], table["seed"], table["config_id"])))
    return Rows(
        X=_encoded(measured.configs, table),
        y=table[column].astype(np.float64),
        config_id=table["config_id"].astype(np.uint64),
        seed=table["seed"].astype(np.int64),
    )


def _as_runs(profile: Table, *, seed: int) -> Table:
    n_rows = len(profile["config_id"])
    return {**profile, "seed": np.full(n_rows, seed, np.int64), "epoch": np.ones(n_rows, np.int64)}


def group_numbers(X: NDArray[np.float32]) -> NDArray[np.int64]:
    """The fidelity group of each encoded row, from 0: the place of its (N, W, Resolution) among the 27."""
    places = [np.searchsorted(values, X[:, column]) for values, column in zip(_VALUES, _GROUP_COLUMNS, strict=True)]
    return (places[0] * 9 + places[1] * 3 + places[2]).astype(np.int64)


def group_name(number: int) -> str:
    """A fidelity group's values as text."""
    return " ".join(f"{key}={value:g}" for key, value in GROUP_VALUES[number].items())


def configs_by_group(rows: Rows) -> NDArray[np.int64]:
    """How many configs the rows have in each fidelity group, (27,)."""
    _, first = np.unique(rows.config_id, return_index=True)
    return np.bincount(group_numbers(rows.X[first]), minlength=27).astype(np.int64)


def check_groups(metric: str, rows: Rows, *, fewest: int = FEWEST) -> None:
    """Refuse training rows with fewer than `fewest` configs in a fidelity group.

    Raises:
        InvalidTable: counts the groups, and names the first ones.
    """
    counts = configs_by_group(rows)
    if not (few := np.flatnonzero(counts < fewest)).size:
        return
    named = [f"{group_name(g)} has {counts[g]}" for g in few[:_MOST_EXAMPLES].tolist()]
    raise InvalidTable(
        f"{metric}: {len(few)} of 27 fidelity groups have fewer than {fewest} training configs: {', '.join(named)}; "
        "collect more, or lower --fewest"
    )


_VALUES: Final = ((1.0, 3.0, 5.0), (4.0, 8.0, 16.0), (0.25, 0.5, 1.0))

GROUP_VALUES: Final = tuple({"N": int(N), "W": int(W), "Resolution": R} for N, W, R in product(*_VALUES))
"""N, W and Resolution of each fidelity group, by its number."""


def _check_tables(measured: Measurements, split: Split) -> None:
    faults: list[str] = []
    tables: tuple[tuple[str, Table, Mapping[str, str], tuple[str, ...]], ...] = (
        ("configs", measured.configs, CONFIG_COLUMNS, _ID),
        ("runs", measured.runs, RUN_COLUMNS, RUN_KEY),
        ("profile", measured.profile, PROFILE_COLUMNS, _ID),
        ("visits", measured.visits, VISIT_COLUMNS, VISIT_KEY),
    )
    for name, table, columns, key in tables:
        if missing := [column for column in columns if column not in table]:
            faults.append(f"{name} lacks the columns {', '.join(missing)}")
            continue
        rows = np.column_stack([table[column].astype(np.uint64) for column in key])
        _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
        if (twice := first[counts > 1]).size:
            shown = "; ".join(_row(table, i, key) for i in twice[:_MOST_EXAMPLES].tolist())
            faults.append(f"{name}: {len(twice)} rows stand more than once: {shown}")
    if faults:
        raise InvalidTable("\n".join(faults))
    of_configs = {"runs": measured.runs, "profile": measured.profile, "visits": measured.visits}
    protocols = {name: table["protocol"] for name, table in of_configs.items()}
    for name, digests in {**protocols, "split": np.array([split.protocol])}.items():
        if others := sorted(set(digests.tolist()) - {measured.protocol}):
            n_rows = int(np.isin(digests, others).sum())
            raise ProtocolMismatch(f"{name}: {n_rows} rows of protocol {', '.join(others)}, not {measured.protocol}")
    for name, table in of_configs.items():
        ids = np.unique(table["config_id"])
        if (unknown := np.setdiff1d(ids, measured.configs["config_id"])).size:
            faults.append(f"{name}: {len(unknown)} configs are not in the config table: {_ids(unknown)}")
    found = np.unique(measured.runs["config_id"])
    if (unknown := found[split.parts_of(found) < 0]).size:
        faults.append(f"{len(unknown)} configs are not in the split: {_ids(unknown)}; python -m splits.make --extend")
    if faults:
        raise InvalidTable("\n".join(faults))


def _is_measured(runs: Table) -> NDArray[np.bool_]:
    """Every row but the last of each diverged run."""
    is_last = np.ones(len(runs["epoch"]), dtype=np.bool_)
    order = np.lexsort((runs["epoch"], runs["seed"], runs["config_id"]))
    ids, seeds = runs["config_id"][order], runs["seed"][order]
    is_last[order[:-1]] = (ids[1:] != ids[:-1]) | (seeds[1:] != seeds[:-1])
    is_kept: NDArray[np.bool_] = ~(is_last & (runs["status"] == "diverged"))
    return is_kept


def _epoch_times(runs: Table) -> Table:
    """One row per run: its last measured runtime by its epochs."""
    _check_values("runtime", runs["runtime"], runs)
    last = last_rows(sorted_runs(runs))
    return {**last, "runtime": last["runtime"].astype(np.float64) / last["epoch"].astype(np.float64)}


def _check_values(metric: str, values: NDArray[Any], table: Table) -> None:  # Any: as in Table
    bounds = METRICS[metric]
    is_good = np.isfinite(values) & (values >= bounds.lower) & (values <= bounds.upper)
    if metric not in ACCURACIES:
        is_good &= values > 0
    if not (bad := np.flatnonzero(~is_good)).size:
        return
    n_nan = int(np.isnan(values).sum())
    shown = "; ".join(f"{values[i]} at {_row(table, i, ('config_id', 'seed', 'epoch'))}" for i in bad[:_MOST_EXAMPLES])
    raise InvalidTable(
        f"{metric}: {len(bad)} of {len(values)} values are not measurements ({n_nan} NaN, {len(bad) - n_nan} infinite "
        f"or outside of [{bounds.lower:g}, {bounds.upper:g}]): {shown}"
    )


def _encoded(configs: Table, table: Table) -> NDArray[np.float32]:
    order = np.argsort(configs["config_id"], kind="stable")
    at = order[np.searchsorted(configs["config_id"][order], table["config_id"])]
    return encode({key: configs[key][at] for key in CONFIG_KEYS}, table["epoch"].astype(np.int64))


def _row(table: Table, i: int, key: tuple[str, ...]) -> str:
    return " ".join(
        f"{name}={int(table[name][i]):016x}" if name == "config_id" else f"{name}={int(table[name][i])}" for name in key
    )


def _ids(ids: NDArray[np.generic]) -> str:
    more = f" and {len(ids) - _MOST_EXAMPLES} more" if len(ids) > _MOST_EXAMPLES else ""
    return ", ".join(f"{int(i):016x}" for i in ids[:_MOST_EXAMPLES]) + more
