"""A made-up landscape that has the shape of a real one: a folder of runs that takes a second to write and to fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from jahs.files.tables import Table, typed, write_table
from jahs.models.cost import n_macs
from jahs.schema import (
    CONFIG_COLUMNS,
    CONFIG_KEYS,
    CONFIG_TABLE_COLUMNS,
    PROFILE_COLUMNS,
    RUN_COLUMNS,
    SOURCE_DEFAULTS,
)
from jahs.spaces.cell import effective_depth, live_paths
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import TASKS
from splits.split import Split, write_split
from surrogate.data.measurements import Measurements
from tests.building import make_configs

TASK = TASKS["digits"]
EPOCHS = (1, 3, 6, TASK.max_epoch)
PROTOCOL = "0123456789abcdef"
WHERE = {"machine": "a processor", "torch_version": "2.13", "protocol": PROTOCOL}


def measurements(n_per_group: int = 10, *, seed: int = 0, noise: float = 1.0) -> Measurements:
    """Runs of `n_per_group` configs in every fidelity group, every fifth one with three seeds."""
    rng = np.random.default_rng(seed)
    configs = typed({**make_configs(27 * n_per_group, seed=seed), **SOURCE_DEFAULTS}, CONFIG_TABLE_COLUMNS)
    keys = {name: configs[name] for name in CONFIG_KEYS}
    repeats = np.where(np.arange(27 * n_per_group) % 5 == 0, 3, 1)
    at = np.repeat(np.arange(27 * n_per_group), repeats)
    of_run = np.concatenate([np.arange(n) for n in repeats])
    epochs = np.tile(EPOCHS, len(at))
    X = encode({name: values[at].repeat(len(EPOCHS)) for name, values in keys.items()}, epochs)
    accuracy = np.clip(_accuracy(X) + rng.normal(0, noise, len(X)), 0, 100)
    per_epoch = _seconds(X) * rng.lognormal(0, 0.02, len(at)).repeat(len(EPOCHS))
    runs = {
        "config_id": configs["config_id"][at].repeat(len(EPOCHS)),
        "seed": of_run.repeat(len(EPOCHS)),
        "epoch": epochs,
        "train_acc": np.clip(accuracy + 2, 0, 100),
        "valid_acc": accuracy,
        "test_acc": np.clip(accuracy - 1, 0, 100),
        **dict.fromkeys(("train_loss", "valid_loss", "test_loss"), 1.0),
        "runtime": per_epoch * epochs,
        "status": "finished",
        "device": "cpu",
        **WHERE,
    }
    profile = {
        "config_id": configs["config_id"],
        "latency": _seconds(encode(keys, 1)) / 30,
        "step_time_s": 1.0,
        "n_repeats": 5,
        **WHERE,
    }
    return Measurements(
        task=TASK,
        protocol=PROTOCOL,
        configs=configs,
        runs=typed(runs, RUN_COLUMNS),
        profile=typed(profile, PROFILE_COLUMNS),
    )


def split_of(measured: Measurements) -> Split:
    """Of every ten configs of a group, in the order of their numbers, seven train, one or two valid, the rest test."""
    place = measured.configs["config_index"] // 27 % 10
    order = np.argsort(measured.configs["config_id"])
    parts = np.select([place < 7, place < 9], [0, 1], 2).astype(np.int8)
    return Split(
        config_ids=measured.configs["config_id"][order],
        parts=parts[order],
        seed=0,
        task=TASK.name,
        protocol=measured.protocol,
    )


def write_folder(folder: Path, measured: Measurements, **other: Table) -> Path:
    """Write a folder of runs and `split.json` in it; `other` tables take the place of those that were measured."""
    folder.mkdir()
    tables = {"configs": measured.configs, "runs": measured.runs, "profile": measured.profile, **other}
    facts = {"format": 1, "digest": measured.protocol, "protocol": {"task": {"name": measured.task.name}}}
    (folder / "protocol.json").write_text(json.dumps(facts))
    write_table(folder / "configs.parquet", tables["configs"], CONFIG_COLUMNS)
    write_table(folder / "runs-0001.parquet", tables["runs"], RUN_COLUMNS)
    write_table(folder / "profile.parquet", tables["profile"], PROFILE_COLUMNS)
    write_split(folder / "split.json", split_of(measured))
    return folder


def arguments(runs: Path, out: Path) -> list[str]:
    """Return the arguments of a command that reads such a folder and writes `out`."""
    return [str(runs), "--split", str(runs / "split.json"), "--out", str(out)]


def _accuracy(X: np.ndarray) -> np.ndarray:
    ops = X[:, 3:9].astype(int)
    rate, decay = np.log10(X[:, 1].astype(float)), np.log10(X[:, 13].astype(float))
    depth, n_alive = effective_depth(ops), live_paths(ops).sum(axis=1)
    quality = -3 + 0.6 * depth - (rate + 1.5) ** 2 * 0.5 - (rate + decay + 5) ** 2 * 0.1 + 0.04 * X[:, 12] + X[:, 10]
    quality += np.log(X[:, 14]) * 0.4
    return np.where(n_alive == 0, 10.0, 10 + 85 / (1 + np.exp(-quality)))


def _seconds(X: np.ndarray) -> np.ndarray:
    return 0.05 + n_macs(X, TASK) * 1e-7 + 0.1 * X[:, 11]
