"""Everything that was measured under one protocol: checked, and its configs encoded, once.

- Rows of a diverged run count up to the epoch before the one in which it diverged. Models therefore describe trainings
  that finish; diverged runs are counted.
- Accuracies count whatever device they were measured on. Runtimes count on one processor only (`timing_machine`), since
  seconds on another processor, or on an accelerator, do not compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable, MissingData, ProtocolMismatch
from jahs.files.hashing import digest_bytes
from jahs.files.runs import is_timed, read_configs, read_protocol, read_runs, timing_machine
from jahs.files.tables import Table, empty_table, sort_by, take
from jahs.release import Release
from jahs.schema import CONFIG_COLUMNS, CONFIG_KEYS, RUN_KEY, VISIT_COLUMNS, VISIT_KEY
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES, METRICS
from jahs.tasks.own import task_of_protocol
from splits.check import check_split
from splits.final import FinalTest, count_read, final_beside, final_path, is_final
from splits.recorded import examples, hex_id, recorded_of
from splits.split import Split, read_split
from workshop.measured import read_profile_visits

_MOST_EXAMPLES: Final = 3
_ID: Final = ("config_id",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurements:
    """The tables of a folder of runs, and their task. All faults in them are raised here, and nowhere later."""

    # task, protocol: the task of the runs, and the digest of its protocol.
    task: Task
    protocol: str
    # configs, runs, profile: the tables, in any order.
    configs: Table
    runs: Table
    profile: Table
    # The visits that the profile was made from; may be empty.
    visits: Table = field(default_factory=lambda: empty_table(VISIT_COLUMNS))
    _ids: NDArray[np.uint64] = field(init=False, repr=False)
    _X: NDArray[np.float32] = field(init=False, repr=False)
    _is_valid: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the tables and encode the configs.

        Raises:
            InvalidTable: rows are duplicates, configs are not in the config table, or values are NaN or out of the
                metric's bounds; every fault at once.
        """
        order = np.argsort(self.configs["config_id"], kind="stable")
        object.__setattr__(self, "_ids", self.configs["config_id"][order].astype(np.uint64))
        object.__setattr__(self, "_X", encode({key: self.configs[key][order] for key in CONFIG_KEYS}, 1))
        object.__setattr__(self, "_is_valid", _before_divergence(self.runs))
        if faults := [*_faults_of_tables(self)] or [*_faults_of_values(self)]:
            raise InvalidTable("\n".join(faults))

    @property
    def timing_machine(self) -> str | None:
        """The processor that runtimes were measured on."""
        return timing_machine(self.runs, self.profile)

    @property
    def profile_machine(self) -> str | None:
        """The processor that latencies were measured on."""
        return str(self.profile["machine"][0]) if len(self.profile["machine"]) else None

    @property
    def valid_runs(self) -> Table:
        """The rows of all runs, before the divergence if they diverged."""
        return take(self.runs, self._is_valid)

    @property
    def timed_runs(self) -> Table:
        """The valid rows whose runtime was measured on `timing_machine`."""
        return take(self.runs, self._is_valid & is_timed(self.runs, self.timing_machine))

    def encode(self, config_ids: NDArray[np.uint64], epochs: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return encoded configs and epochs, (n, 15); the configs must be in the config table."""
        X = self._X[np.searchsorted(self._ids, config_ids)]
        X[:, -1] = epochs
        return X


def read_measurements(folder: Path, *, final: FinalTest | None = None) -> Measurements:
    """Read a folder of runs without the final test set: its members, their kin, and all configs of source `final`.

    Raises:
        UnknownName, InvalidArgument: its task does not exist, or is invalid.
    """
    configs = read_configs(folder)
    return _measurements_of(folder, configs, configs["config_id"][is_final(configs, final)], is_in=False)


def read_final_measurements(runs: Path, split_file: Path, *, what_for: Mapping[str, object]) -> Measurements:
    """Read the measurements of the final test set beside a split, and no others; this reading is counted.

    Args:
        split_file: the split; the final test set is in the same folder.
        what_for: facts that are recorded with the count.

    Raises:
        MissingData: there is no final test set, or none of its configs is trained; then nothing was read.
        ProtocolMismatch: it belongs to other runs.
    """
    final, configs, protocol = final_beside(split_file), read_configs(runs), read_protocol(runs).digest
    if final is None:
        raise MissingData(f"{final_path(split_file)} does not exist; python -m surrogate.freeze draws a final test set")
    if final.protocol != protocol:
        raise ProtocolMismatch(f"the final test set has protocol {final.protocol}, but {runs} has {protocol}")
    members = np.intersect1d(configs["config_id"], final.config_ids)
    if not len(np.intersect1d(members, read_runs(runs)["config_id"])):
        raise MissingData(f"{runs} has no run of the final test set; train its list with pipeline.collect first")
    count_read(split_file, what_for)
    return _measurements_of(runs, configs, members, is_in=True)


def _measurements_of(folder: Path, configs: Table, ids: NDArray[np.generic], *, is_in: bool) -> Measurements:
    """Return the measurements of some configs, or of all others."""
    protocol = read_protocol(folder)
    tables = (configs, read_runs(folder), *read_profile_visits(folder))
    masks = [np.isin(table["config_id"], ids) == is_in for table in tables]
    configs, runs, profile, visits = (
        table if mask.all() else take(table, mask) for table, mask in zip(tables, masks, strict=True)
    )
    task = task_of_protocol(protocol.facts)
    return Measurements(task=task, protocol=protocol.digest, configs=configs, runs=runs, profile=profile, visits=visits)


def read_with_split(runs: Path, split_file: Path) -> tuple[Measurements, Split]:
    """Read a folder of runs and its split, and check that they fit."""
    split, final = read_split(split_file), final_beside(split_file)
    measured = read_measurements(runs, final=final)
    recorded = recorded_of(
        read_configs(runs), measured.runs, of=runs, task=measured.task.name, protocol=measured.protocol, final=final
    )
    check_split(recorded, split)
    return measured, split


def read_of_split(runs: Path, split_file: Path) -> tuple[Measurements, Split]:
    """Read the measurements of the configs of a split; configs recorded since then are left out.

    Raises:
        ProtocolMismatch: the split belongs to other runs.
    """
    split = read_split(split_file)
    measured = _measurements_of(runs, read_configs(runs), split.config_ids, is_in=True)
    if split.protocol != measured.protocol:
        raise ProtocolMismatch(f"{split_file} has protocol {split.protocol}, but {runs} has {measured.protocol}")
    return measured, split


def trained_configs(measured: Measurements) -> Table:
    """Return the configs that have a run, in order of config_id."""
    return sort_by(take(measured.configs, np.isin(measured.configs["config_id"], measured.runs["config_id"])), _ID)


def digest_measurements(measured: Measurements) -> str:
    """Return a digest of all measurements, 16 hex digits, however they are divided into files."""
    configs = trained_configs(measured)
    tables = (
        {name: configs[name] for name in CONFIG_COLUMNS},  # without source and round
        measured.runs,
        sort_by(measured.profile, _ID),
        sort_by(measured.visits, VISIT_KEY),
    )
    columns = [table[name] for table in tables for name in sorted(table)]
    texts = [
        "\0".join(values.tolist()).encode() if values.dtype.kind == "U" else values.tobytes() for values in columns
    ]
    return digest_bytes(b"".join(texts))


def _before_divergence(runs: Table) -> NDArray[np.bool_]:
    """Return a mask of all rows but the last of each diverged run."""
    is_last = np.ones(len(runs["epoch"]), dtype=np.bool_)
    order = np.lexsort((runs["epoch"], runs["seed"], runs["config_id"]))
    ids, seeds = runs["config_id"][order], runs["seed"][order]
    is_last[order[:-1]] = (ids[1:] != ids[:-1]) | (seeds[1:] != seeds[:-1])
    return np.asarray(~(is_last & (runs["status"] == "diverged")), dtype=np.bool_)


def _faults_of_tables(measured: Measurements) -> Iterable[str]:
    measurements = {"runs": measured.runs, "profile": measured.profile, "visits": measured.visits}
    keys = {"configs": _ID, "runs": RUN_KEY, "profile": _ID, "visits": VISIT_KEY}
    for name, table in {"configs": measured.configs, **measurements}.items():
        rows = np.column_stack([table[column].astype(np.uint64) for column in keys[name]])
        _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
        if (duplicates := first[counts > 1]).size:
            shown = "; ".join(_row(table, i, keys[name]) for i in duplicates[:_MOST_EXAMPLES].tolist())
            yield f"{name}: {len(duplicates)} rows occur more than once: {shown}"
    if n_bad := int((measured.runs["epoch"] < 1).sum()):
        yield f"runs: {n_bad} epochs are below 1"
    for name, table in measurements.items():
        if (unknown := np.setdiff1d(table["config_id"], measured.configs["config_id"])).size:
            yield f"{name}: {len(unknown)} configs are not in the config table: {examples(unknown.tolist())}"


def _faults_of_values(measured: Measurements) -> Iterable[str]:
    tables = dict.fromkeys(ACCURACIES, measured.valid_runs)
    tables |= {"runtime": measured.timed_runs, "latency": measured.profile}
    for metric, table in tables.items():
        values, bounds = table[metric], METRICS[metric]
        is_good = np.isfinite(values) & (values >= bounds.lower) & (values <= bounds.upper)
        if metric not in ACCURACIES:
            is_good &= values > 0
        if (bad := np.flatnonzero(~is_good)).size:
            key = _ID if metric == "latency" else RUN_KEY
            shown = "; ".join(f"{values[i]} at {_row(table, i, key)}" for i in bad[:_MOST_EXAMPLES].tolist())
            yield (
                f"{metric}: {len(bad)} of {len(values)} values are invalid ({int(np.isnan(values).sum())} NaN); they "
                f"must be in [{bounds.lower:g}, {bounds.upper:g}]{'' if metric in ACCURACIES else ' and above 0'}: "
                f"{shown}"
            )


def _row(table: Table, i: int, key: tuple[str, ...]) -> str:
    values = {name: int(table[name][i]) for name in key}
    return " ".join(f"{name}={hex_id(value) if name == 'config_id' else value}" for name, value in values.items())


def check_release(release: Release, measured: Measurements) -> None:
    """Refuse a release of another task or protocol, with ProtocolMismatch."""
    origin = (release.task.name, release.facts.get("protocol"))
    if origin != (measured.task.name, measured.protocol):
        raise ProtocolMismatch(
            f"{release.path} has task {origin[0]} and protocol {origin[1]}, but the runs have task "
            f"{measured.task.name} and protocol {measured.protocol}; name a release of these runs"
        )
