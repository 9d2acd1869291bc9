"""The trained configs of a folder of runs, which a split divides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidConfig, InvalidTable, ProtocolMismatch
from jahs.files.runs import read_configs, read_protocol, read_runs, sorted_runs
from jahs.files.tables import Table, sort_by, take
from jahs.schema import CONFIG_KEYS
from jahs.spaces.columns import validate_columns
from splits.final import FinalTest, is_final
from workshop.measured import last_rows

_MOST_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedConfigs:
    """Every config with at least one run, in order of config_id; a diverged run counts like any other."""

    configs: Table  # rows of the config table
    n_seeds: NDArray[np.int64]  # number of seeds that each config was trained with; a repeated config has more than one
    is_diverged: NDArray[np.bool_]  # whether every run of the config diverged
    task: str
    protocol: str  # digest of the runs' protocol
    # Ids that must be in no part of a split: the final test set, and its kin in the config table.
    held_out: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    @property
    def config_ids(self) -> NDArray[np.uint64]:
        """The ids of the configs, in order."""
        return self.configs["config_id"].astype(np.uint64)

    @property
    def is_repeated(self) -> NDArray[np.bool_]:
        """A mask of the configs that were trained with more than one seed."""
        return self.n_seeds > 1

    def held_out_faults(self, config_ids: NDArray[np.uint64]) -> list[str]:
        """Return, as a message, which configs of a split are held out; none if it may be used."""
        if not (inside := np.intersect1d(config_ids, self.held_out)).size:
            return []
        what = "configs of the split are in the final test set or kin of a config there"
        return [f"{len(inside)} {what}: {examples(inside)}; make a new split: python -m splits.make RUNS --out NEW"]


def read_recorded(path: Path, *, final: FinalTest | None = None) -> RecordedConfigs:
    """Read a folder of runs, without configs that are not trained yet and without the final test set.

    Raises:
        MissingData, CorruptFile, UnknownFormat: the folder or one of its files cannot be read.
        ProtocolMismatch: it holds rows of several protocols.
    """
    protocol = read_protocol(path)
    task = _task_name(path, protocol.facts)
    configs, runs = read_configs(path), read_runs(path)
    return recorded_of(configs, runs, of=path, task=task, protocol=protocol.digest, final=final)


def recorded_of(
    configs: Table, runs: Table, *, of: Path, task: str, protocol: str, final: FinalTest | None = None
) -> RecordedConfigs:
    """Return the trained configs of tables that were read from the folder `of`, without those held out (`is_final`).

    Raises:
        ProtocolMismatch: the final test set has another protocol.
        InvalidTable: there are no runs, an id occurs twice in the config table, or configs of runs are not in it.
        InvalidConfig: a config has values outside the space.
    """
    configs = sort_by(configs, ("config_id",))
    _check_configs(of, configs)
    if final is not None and final.protocol != protocol:
        raise ProtocolMismatch(
            f"the final test set has protocol {final.protocol} ({final.task}), but {of} has {protocol} ({task})"
        )
    is_held_out = is_final(configs, final)
    members = np.empty(0, np.uint64) if final is None else final.config_ids
    runs = take(runs, ~np.isin(runs["config_id"], configs["config_id"][is_held_out]))
    last = last_rows(sorted_runs(runs))
    ids, starts, n_seeds = np.unique(last["config_id"].astype(np.uint64), return_index=True, return_counts=True)
    if not len(ids):
        raise InvalidTable(f"{of} has no runs yet: collect some first")
    if (unknown := np.setdiff1d(ids, configs["config_id"])).size:
        raise InvalidTable(f"{of}: {len(unknown)} configs of the runs are not in configs.parquet: {examples(unknown)}")
    has_diverged = (last["status"] == "diverged").astype(np.int64)
    return RecordedConfigs(
        configs=take(configs, np.isin(configs["config_id"], ids)),
        n_seeds=n_seeds.astype(np.int64),
        is_diverged=np.add.reduceat(has_diverged, starts) == n_seeds,
        task=task,
        protocol=protocol,
        held_out=np.union1d(configs["config_id"][is_held_out].astype(np.uint64), members),
    )


def hex_id(config_id: int) -> str:
    """Return a config_id as 16 hex digits."""
    return f"{config_id:016x}"


def examples(ids: Iterable[int]) -> str:
    """Return the first ids as text, for a message."""
    listed = [hex_id(int(i)) for i in ids]
    rest = f" and {len(listed) - _MOST_EXAMPLES} more" if len(listed) > _MOST_EXAMPLES else ""
    return ", ".join(listed[:_MOST_EXAMPLES]) + rest


def _check_configs(path: Path, configs: Table) -> None:
    ids, counts = np.unique(configs["config_id"], return_counts=True)
    if (repeated := ids[counts > 1]).size:
        raise InvalidTable(f"{path}: {len(repeated)} ids occur more than once in configs.parquet: {examples(repeated)}")
    try:
        validate_columns({key: configs[key] for key in CONFIG_KEYS})
    except InvalidConfig as err:
        raise InvalidConfig([f"{path / 'configs.parquet'}, in order of config_id:", *err.faults]) from err


def _task_name(path: Path, facts: dict[str, Any]) -> str:  # Any: JSON
    task = facts.get("task")
    name = task.get("name") if isinstance(task, dict) else task
    if not isinstance(name, str):
        raise CorruptFile(f"{path / 'protocol.json'} names no task: its protocol should have task.name")
    return name
