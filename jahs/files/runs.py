"""Reading a folder of runs: the trained configs and their measurements.

    FOLDER/index.json             sha256 of every file below except single runs (`jahs.files.index`)
    FOLDER/protocol.json          the protocol's facts and digest; one folder holds one protocol
    FOLDER/configs.parquet        one row per config (`jahs.schema.CONFIG_TABLE_COLUMNS`)
    FOLDER/runs-0001.parquet      compacted runs, one row per (config, seed, epoch) (`RUN_COLUMNS`)
    FOLDER/new/<number>-<seed>.parquet   one finished run each, until they are compacted; <config_id> in hex digits in
                                  place of the number where the config is not from the numbered stream
    FOLDER/profile_visits.parquet quiet passes, one row per repeat of every visit to a config (`VISIT_COLUMNS`)
    FOLDER/profile.parquet        the fastest repeat of each config, on one processor (`PROFILE_COLUMNS`)
    FOLDER/proxies.parquet        scores of untrained networks, one row per (config, seed) (`PROXY_COLUMNS`)
    FOLDER/damaged/               shards that could not be read, kept for inspection

`pipeline.collect` writes such folders. Every file is checked when it is read: by the index, and by the digests that a
table carries (`jahs.files.tables`). A run becomes visible by one rename, so it is whole or absent. A run that is both
in `new/` and in a compacted shard, because compacting was interrupted, is read once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidTable, MissingData, ProtocolMismatch, reading
from jahs.files.index import Files, index_faults, read_index
from jahs.files.strict_json import check_format, parse_json
from jahs.files.tables import Table, concatenate, empty_table, equal_values, parquet_files, read_table, sort_by, take
from jahs.schema import (
    CONFIG_TABLE_COLUMNS,
    PROFILE_COLUMNS,
    RUN_COLUMNS,
    RUN_KEY,
    RUNS_FORMAT,
    SOURCE_DEFAULTS,
)

VISITS: Final = "profile_visits.parquet"
SCORES: Final = "proxies.parquet"
"""Names of the files with the profile's visits and with the scores of untrained networks."""

_NATIVE: Final = "native"  # the device of the C engine
_MOST_COMPACTIONS: Final = 3  # while a folder is read
_LISTED: Final = ("protocol.json", "configs.parquet", "profile.parquet", VISITS, SCORES)

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The protocol of a folder of runs."""

    digest: str  # digest of the facts; every row repeats it
    facts: dict[str, Any]  # the task, the training's constants, the augmentation's version; Any: JSON


def read_protocol(path: Path) -> Protocol:
    """Read the protocol of a folder; MissingData if it is not a folder of runs, or cannot be read."""
    file = path / "protocol.json"
    with reading(file):
        try:
            data = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as err:
            raise MissingData(f"{path} is not a folder of runs: it has no protocol.json") from err
    if (files := read_index(path)) and hashlib.sha256(data).hexdigest() not in files.get(file.name, ()):
        raise CorruptFile(f"{file} is not the file that its folder's index lists; restore it from a copy")
    try:
        content = parse_json(data)
        version, digest, facts = content["format"], content["digest"], content["protocol"]
    except (ValueError, KeyError, TypeError) as err:
        raise CorruptFile(f"{file} cannot be read: {err!r}") from err
    check_format(version, RUNS_FORMAT, of=str(file))
    if not isinstance(digest, str) or not isinstance(facts, dict):
        raise CorruptFile(f"{file}: digest must be a text and protocol an object; restore it from a copy")
    return Protocol(digest=digest, facts=facts)


def run_shards(path: Path) -> list[Path]:
    """Return the files that hold a folder's runs: compacted ones first, then single runs.

    Single runs are listed first, so that one that is compacted meanwhile is in at least one list.
    """
    single = parquet_files(path / "new")
    return [*(file for file in parquet_files(path) if file.name.startswith("runs-")), *single]


def committed_files(path: Path) -> list[str]:
    """Return the names of a folder's files that its index must list: all but single runs, which carry digests."""
    shards = [shard.name for shard in run_shards(path) if shard.parent == path]
    return [*(name for name in _LISTED if (path / name).exists()), *shards]


def committed_faults(path: Path) -> list[str]:
    """Return the damaged, missing and unlisted committed files of a folder; empty without an index."""
    for _ in range(_MOST_COMPACTIONS):  # files may be replaced meanwhile
        if (files := read_index(path)) is None or not (faults := index_faults(path, files, committed_files(path))):
            return []
    return faults


def read_shards(path: Path, columns: Mapping[str, str] = RUN_COLUMNS) -> list[Table]:
    """Return these columns of every file of runs, also while somebody compacts it; CorruptFile if one is lost."""

    def read() -> list[Table]:
        files, shards = read_index(path), run_shards(path)
        names = {shard.relative_to(path).as_posix() for shard in shards}
        run_files = [name for name in files or () if name.startswith(("runs-", "new/"))]
        if files and (lost := [name for name in run_files if name not in names and None not in files[name]]):
            raise CorruptFile(f"{path} has lost {', '.join(lost)}, which its index lists; restore it from a copy")
        return [read_table(shard, columns, sha256=_states(path, shard, files)) for shard in shards]

    return _once_more(read)


def _states(folder: Path, file: Path, files: Files | None) -> tuple[str | None, ...] | None:
    """Return the allowed sha256 of a file; None allows any, where the table itself carries digests."""
    name = file.relative_to(folder).as_posix()
    return None if files is None else files.get(name, None if name.startswith("new/") else ())


def _once_more(read: Callable[[], _Read]) -> _Read:
    """Read again if files were replaced between reading the index and reading them."""
    for _ in range(_MOST_COMPACTIONS):
        with suppress(MissingData, CorruptFile):
            return read()
    return read()


def read_committed(
    path: Path, columns: Mapping[str, str], *, defaults: Mapping[str, object] = MappingProxyType({})
) -> Table:
    """Read a table of a folder of runs, checked by the folder's index; raises as `read_table`."""
    folder = path.parent
    return _once_more(
        lambda: read_table(path, columns, defaults=defaults, sha256=_states(folder, path, read_index(folder)))
    )


def read_runs(path: Path) -> Table:
    """Return every run of a folder once, sorted by config, seed and epoch.

    ProtocolMismatch names rows of another protocol, InvalidTable a run with two different outcomes.
    """
    return _of_one_protocol(path, each_run_once(read_shards(path)))


def read_configs(path: Path) -> Table:
    """Return the config table of a folder, sorted by number, those without one last."""
    read_protocol(path)
    return read_committed(path / "configs.parquet", CONFIG_TABLE_COLUMNS, defaults=SOURCE_DEFAULTS)


def read_profile(path: Path) -> Table:
    """Return the quiet profile of a folder, possibly without rows; ProtocolMismatch if its protocol differs."""
    return read_optional(path, "profile.parquet", PROFILE_COLUMNS)


def read_optional(folder: Path, name: str, columns: Mapping[str, str]) -> Table:
    """Return an optional table of a folder, empty if its file is missing; ProtocolMismatch if its protocol differs."""
    path = folder / name
    is_there = path.exists() or None not in (read_index(folder) or {}).get(name, (None,))
    table = read_committed(path, columns) if is_there else empty_table(columns)
    return _of_one_protocol(folder, table, name)


def _of_one_protocol(folder: Path, table: Table, name: str = "its runs") -> Table:
    """Return the table; ProtocolMismatch if it has rows of another protocol than its folder."""
    protocol = read_protocol(folder).digest
    if others := sorted(set(table["protocol"].tolist()) - {protocol}):
        n_rows = int(np.isin(table["protocol"], others).sum())
        raise ProtocolMismatch(f"{folder} has protocol {protocol} but rows of {', '.join(others)}: {n_rows} of {name}")
    return table


def timing_machine(runs: Table, profile: Table) -> str | None:
    """Return the processor whose runtimes count, since seconds on different processors do not compare.

    It is the profile's; if no run used that one, the one with the most measured epochs. If no run was on device "cpu",
    the software of the device "native" is part of the name, such as "AMD EPYC, 2.13.0+cpu, engine 0123abcd", since
    every version of the engine takes its own time. None if all runs were on accelerators.
    """
    for device in ("cpu", _NATIVE):
        if (on_device := runs["device"] == device).any():
            on_profile = on_device & np.isin(runs["machine"], profile["machine"])
            counted = on_profile if on_profile.any() else on_device
            columns = ("machine", "torch_version") if device == _NATIVE else ("machine",)
            names = (runs[column][counted].tolist() for column in columns)
            return ", ".join(Counter(zip(*names, strict=True)).most_common(1)[0][0])
    return None


def is_timed(runs: Table, machine: str | None) -> NDArray[np.bool_]:
    """Return which rows have comparable runtimes: those on `timing_machine`."""
    processor, _, software = (machine or "").partition(", ")
    mask: NDArray[np.bool_] = (runs["device"] == (_NATIVE if software else "cpu")) & (runs["machine"] == processor)
    return mask & (runs["torch_version"] == software) if software else mask


def first_rows(runs: Table) -> NDArray[np.intp]:
    """Return the position of the first row of every run of a table that is sorted by config, seed and epoch."""
    ids, seeds = runs["config_id"], runs["seed"]
    is_new = (ids[1:] != ids[:-1]) | (seeds[1:] != seeds[:-1])
    return np.flatnonzero(np.append(True, is_new)[: len(ids)])


def sorted_runs(runs: Table) -> Table:
    """Return the rows in order of config, seed and epoch."""
    return sort_by(runs, RUN_KEY)


def each_run_once(tables: Sequence[Table]) -> Table:
    """Return the rows of all tables, sorted; InvalidTable if a run differs between tables."""
    runs = sorted_runs(concatenate(tables, RUN_COLUMNS))
    repeats = {name: equal_values(values[1:], values[:-1]) for name, values in runs.items()}
    same_key = np.logical_and.reduce([repeats[name] for name in RUN_KEY])
    same_row = np.logical_and.reduce(list(repeats.values()))
    if np.any(same_key & ~same_row):
        bad = take(runs, np.flatnonzero(same_key & ~same_row))
        n_runs = len({*zip(bad["config_id"].tolist(), bad["seed"].tolist(), strict=True)})
        raise InvalidTable(
            f"{n_runs} runs have two different outcomes, first config_id={bad['config_id'][0]} "
            f"seed={bad['seed'][0]}; keep one folder's and delete the other's"
        )
    return take(runs, np.append(True, ~same_row)[: len(runs["epoch"])])
