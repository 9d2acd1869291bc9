"""Check a folder of runs: every file, config and row."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from jahs.errors import CorruptFile, InvalidTable, MissingData, ProtocolMismatch, UnknownFormat
from jahs.files.index import read_index
from jahs.files.runs import (
    SCORES,
    VISITS,
    committed_faults,
    each_run_once,
    first_rows,
    read_configs,
    read_profile,
    read_protocol,
    read_shards,
)
from jahs.files.tables import Table, has_digests, parquet_files, read_table
from jahs.schema import CONFIG_KEYS, PROXY_KEY, RUN_COLUMNS, SOURCES, VISIT_KEY
from jahs.spaces.columns import config_ids
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES
from pipeline.protocol import protocol_digest, recorded_task
from pipeline.runs import run_name
from pipeline.sampling import config_table
from workshop.machine import ON_PROCESSOR
from workshop.measured import TIMES, profile_of_visits, read_proxies, read_visits, visits_of_profile

_log = logging.getLogger(__name__)
_LOSSES: Final = ("train_loss", "valid_loss", "test_loss")
_MOST_LISTED: Final = 20
_BLOCK: Final = 4096  # configs of the numbered stream that are drawn at once


def folder_task(path: Path) -> Task:
    """Return the task of a folder, after checking that this code has the same protocol.

    Raises:
        ProtocolMismatch: the protocols differ; lists the differences.
    """
    protocol = read_protocol(path)
    task = recorded_task(protocol.facts)
    digest = protocol_digest(task)
    if digest != protocol.digest:
        raise ProtocolMismatch(
            f"{path} was collected under protocol {protocol.digest}, but task {task.name!r} is now {digest}; "
            f"check out the version that collected it, or collect into another folder"
        )
    return task


def verify(path: Path) -> list[str]:
    """Return every fault of a folder of runs; an empty list means that it is sound.

    A folder of an earlier version has no index. This is only a warning, but damage to its measurements is not detected.
    """
    task = folder_task(path)
    faults = [
        f"{shard.relative_to(path)}: a damaged shard was set aside; look at it, then delete it"
        for shard in parquet_files(path / "damaged")
    ]
    if damaged := [*committed_faults(path), *_single_faults(path)]:
        return [*faults, *damaged[:_MOST_LISTED]]  # damaged shards are not checked further
    shards, configs = read_shards(path), read_configs(path)
    runs = each_run_once(shards)
    if n_twice := sum(len(shard["epoch"]) for shard in shards) - len(runs["epoch"]):
        faults.append(f"{n_twice} rows are stored twice; `pipeline.collect merge {path}` stores them once")
    if protocols := sorted(set(runs["protocol"].tolist()) - {read_protocol(path).digest}):
        faults.append(f"some rows have another protocol: {', '.join(protocols)}")
    faults += _config_faults(configs)
    faults += _name_faults(path, configs)
    if strange := set(runs["config_id"].tolist()) - set(configs["config_id"].tolist()):
        faults.append(f"{len(strange)} configs have runs but are not in configs.parquet, e.g. {min(strange)}")
    faults += _profile_faults(read_profile(path), read_visits(path), configs)
    faults += _proxy_faults(path, configs)
    for run in each_run(runs):
        faults += _run_faults(run, task)
        if len(faults) > _MOST_LISTED:
            return [*faults[:_MOST_LISTED], "there may be more"]
    return faults


def _single_faults(path: Path) -> list[str]:
    """Return faults of single runs: damaged, or covered by neither the index nor a digest of their own."""
    if (files := read_index(path)) is None:
        advice = f"`python -m pipeline.collect merge {path}` makes one"
        _log.warning("%s has no index, so damage to its measurements may go unnoticed; %s", path, advice)
    faults = []
    for shard in parquet_files(path / "new"):
        name = shard.relative_to(path).as_posix()
        try:
            if files is None or name in files or has_digests(shard):
                read_table(shard, RUN_COLUMNS)
            else:
                faults.append(f"{name} has no digest: another program wrote or edited it")
        except MissingData:
            if shard.exists():  # else it was compacted meanwhile
                raise
        except (CorruptFile, InvalidTable) as err:
            faults.append(str(err))
    return faults


def _name_faults(path: Path, configs: Table) -> list[str]:
    """Return faults of the names of single runs, by which a collector knows what has been trained."""
    numbers = dict(zip(configs["config_id"].tolist(), configs["config_index"].tolist(), strict=True))
    faults = []
    for shard in parquet_files(path / "new"):
        with suppress(MissingData):  # it was compacted meanwhile
            run = read_table(shard, RUN_COLUMNS)
            faults += [
                f"new/{shard.name} holds config {identity:016x} with seed {seed}; "
                f"`python -m pipeline.collect merge {path}` stores it under its own name"
                for identity, seed in sorted({*zip(run["config_id"].tolist(), run["seed"].tolist(), strict=True)})
                if shard.stem not in {run_name(f"{identity:016x}", seed), run_name(numbers.get(identity, -1), seed)}
            ]
    return faults


def _profile_faults(profile: Table, visits: Table, configs: Table) -> list[str]:
    """Return faults of the profile: impossible rows, several processors, or times that its visits contradict."""
    faults = []
    for file, table, key in (
        ("profile.parquet", profile, ("config_id",)),
        (VISITS, visits, (*VISIT_KEY, "machine", "torch_version")),
    ):
        times = np.stack([table[name] for name in TIMES])
        is_wrong = ~((times > 0) & (times < np.inf)).all(axis=0)
        faults += _row_faults(file, table, key, configs)
        faults += _counted(file, (int(is_wrong.sum()), "rows have a time that is not a positive number"))
    if len(processors := profiled_by(profile)) > 1:
        faults.append(f"profile.parquet: times on {' and on '.join(processors)} are not comparable")
    if faults or not len(visits["visit"]):
        return faults
    expected = profile_of_visits(visits_of_profile(visits, profile))
    _, rows, expected_rows = np.intersect1d(profile["config_id"], expected["config_id"], return_indices=True)
    n_repeats, n_visited = profile["n_repeats"][rows], expected["n_repeats"][expected_rows]
    is_wrong = n_repeats > n_visited  # a pass that is still running has more visits
    for name in TIMES:
        least, recorded = expected[name][expected_rows], profile[name][rows]
        is_wrong |= (recorded < least) | ((recorded > least) & (n_repeats == n_visited))
    n_unvisited = len(profile["config_id"]) - len(rows)
    return _counted(
        "profile.parquet",
        (int(is_wrong.sum()), "configs do not have the minimum of their repeats"),
        (n_unvisited, "configs were not visited"),
    )


def _proxy_faults(path: Path, configs: Table) -> list[str]:
    """Return faults of the proxies: they cannot be read, are stored twice, or are of unknown configs."""
    try:
        return _row_faults(SCORES, read_proxies(path), PROXY_KEY, configs)
    except (CorruptFile, InvalidTable, ProtocolMismatch, UnknownFormat) as err:
        return [str(err)]


def _row_faults(file: str, table: Table, key: Sequence[str], configs: Table) -> list[str]:
    """Return how many rows repeat the key of another row, and how many are of unknown configs."""
    n_rows = len(table["config_id"])
    return _counted(
        file,
        (n_rows - len({*zip(*(table[name].tolist() for name in key), strict=True)}), "rows are stored twice"),
        (len(np.setdiff1d(table["config_id"], configs["config_id"])), "configs are not in configs.parquet"),
    )


def _counted(file: str, *counts: tuple[int, str]) -> list[str]:
    return [f"{file}: {n} {what}" for n, what in counts if n]


def profiled_by(profile: Table) -> list[str]:
    """Return the processors and versions of torch that measured the profile."""
    pairs = zip(profile["machine"].tolist(), profile["torch_version"].tolist(), strict=True)
    return [f"{machine} with torch {version}" for machine, version in sorted({*pairs})]


def _config_faults(configs: Table) -> list[str]:
    """Return the configs that do not match their number or id."""
    columns = {key: configs[key] for key in CONFIG_KEYS}
    faults = []
    wrong = np.flatnonzero(config_ids(columns) != configs["config_id"])
    if len(wrong):
        faults.append(f"configs.parquet: {len(wrong)} configs do not match their config_id, first in row {wrong[0]}")
    numbers = configs["config_index"]
    is_numbered = numbers >= 0
    if is_numbered.any():
        blocks = numbers // _BLOCK
        drawn = np.zeros(len(numbers), np.uint64)
        for block in np.unique(blocks[is_numbered]).tolist():
            stream = config_table(block * _BLOCK, (block + 1) * _BLOCK)["config_id"]
            drawn[blocks == block] = stream[numbers[blocks == block] % _BLOCK]
        wrong = np.flatnonzero(is_numbered & (drawn != configs["config_id"]))
        if len(wrong):
            faults.append(
                f"configs.parquet: {len(wrong)} configs do not match their config_index, first in row {wrong[0]}"
            )
    if unknown := sorted({*configs["source"].tolist()} - {*SOURCES}):
        faults.append(f"configs.parquet: source {', '.join(unknown)} is not one of {', '.join(SOURCES)}")
    faults += _counted("configs.parquet", (int((configs["round"] < 0).sum()), "configs have a negative round"))
    return [*faults, *_row_faults("configs.parquet", configs, ("config_id",), configs)]


def _run_faults(run: Table, task: Task) -> list[str]:
    """Return faults of one run: rows must be complete and in range."""
    name = f"config_id={run['config_id'][0]} seed={run['seed'][0]}"
    n_rows = len(run["epoch"])
    faults = []
    if not np.array_equal(run["epoch"], np.arange(1, n_rows + 1)):
        faults.append(f"{name}: epochs are not 1..{n_rows}")
    faults += [
        f"{name}: {column} changes within the run"
        for column in ("status", "device", "machine", "torch_version")
        if len(set(run[column].tolist())) != 1
    ]
    faults += [f"{name}: {fault}" for fault in _ending_faults(run, task)]
    for field, n_images in zip(ACCURACIES, (task.epoch_images or task.n_train, task.n_valid, task.n_test), strict=True):
        n_right = np.clip(np.round(run[field].astype(np.float64) * n_images / 100), 0, n_images)
        if not np.array_equal(run[field], (100 * n_right / n_images).astype(np.float32)):  # rounded as in training
            faults.append(f"{name}: {field} is not 0..100 % in steps of 100/{n_images}")
    runtime, device = run["runtime"], str(run["device"][0])
    if run["seed"][0] < 0:
        faults.append(f"{name}: the seed is negative")
    if device == device.lower() and device not in ON_PROCESSOR:  # models of accelerators have capital letters
        faults.append(f"{name}: device {device!r} is not cpu, native or the model of an accelerator")
    elif device in ON_PROCESSOR:
        if not (np.diff(runtime, prepend=np.float32(0)) > 0).all():
            faults.append(f"{name}: runtime does not increase with every epoch")
    elif not np.isnan(runtime).all():
        faults.append(f"{name}: runtime of a run on {device} must be NaN")
    return faults


def _ending_faults(run: Table, task: Task) -> list[str]:
    """Return faults of a run's status and its losses."""
    losses = np.stack([run[field] for field in _LOSSES])
    n_rows = len(run["epoch"])
    faults = []
    match run["status"][0]:
        case "finished":
            if n_rows != task.max_epoch:
                faults.append(f"finished after {n_rows} epochs, not {task.max_epoch}")
        case "diverged":
            if n_rows > task.max_epoch:
                faults.append(f"diverged in epoch {n_rows} of {task.max_epoch}")
            if np.isfinite(losses[:, -1]).all():
                faults.append("is marked diverged, but the losses of its last epoch are finite")
            losses = losses[:, :-1]
        case status:
            return [f"status {status!r} is not finished or diverged"]
    if not (np.isfinite(losses).all() and (losses >= 0).all()):
        faults.append("a loss is negative or not finite")
    return faults


def each_run(runs: Table) -> list[Table]:
    """Split a table that is sorted by config and seed into runs."""
    starts = first_rows(runs)
    stops = np.append(starts, len(runs["epoch"]))[1:]
    return [{name: values[a:b] for name, values in runs.items()} for a, b in zip(starts, stops, strict=True)]
