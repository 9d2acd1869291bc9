"""A made-up landscape that has the shape of a real one: a folder of runs that takes a second to write and to fit."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np

from jahs.files.tables import Table, write_table
from jahs.models.cost import n_macs
from jahs.schema import CONFIG_COLUMNS, PROFILE_COLUMNS, RUN_COLUMNS
from jahs.spaces.cell import path_features
from jahs.spaces.columns import config_ids
from jahs.spaces.encoding import encode
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from splits.split import Split, write_split
from surrogate.data.measurements import Measurements

TASK = TASKS["digits"]
EPOCHS = (1, 3, 6, TASK.max_epoch)
PROTOCOL = "0123456789abcdef"
SIZES = tuple(product((1, 3, 5), (4, 8, 16), (0.25, 0.5, 1.0)))


def measurements(n_per_group: int = 10, *, seed: int = 0, noise: float = 1.0) -> Measurements:
    """Runs of `n_per_group` configs in every fidelity group, every fifth one with three seeds."""
    rng = np.random.default_rng(seed)
    configs = _configs(27 * n_per_group, seed=seed)
    repeats = np.where(np.arange(27 * n_per_group) % 5 == 0, 3, 1)
    at = np.repeat(np.arange(27 * n_per_group), repeats)
    of_run = np.concatenate([np.arange(n) for n in repeats])
    epochs = np.tile(EPOCHS, len(at))
    X = encode({name: values[at].repeat(len(EPOCHS)) for name, values in configs.items() if name[0].isupper()}, epochs)
    accuracy = np.clip(_accuracy(X) + rng.normal(0, noise, len(X)), 0, 100)
    per_epoch = _seconds(X) * rng.lognormal(0, 0.02, len(at)).repeat(len(EPOCHS))
    runs: Table = {
        "config_id": configs["config_id"][at].repeat(len(EPOCHS)),
        "seed": of_run.repeat(len(EPOCHS)),
        "epoch": epochs,
        "train_acc": np.clip(accuracy + 2, 0, 100),
        "valid_acc": accuracy,
        "test_acc": np.clip(accuracy - 1, 0, 100),
        **{f"{part}_loss": np.ones(len(X)) for part in ("train", "valid", "test")},
        "runtime": per_epoch * epochs,
        **_texts(len(X), status="finished", device="cpu"),
    }
    profile: Table = {
        "config_id": configs["config_id"],
        "latency": _seconds(encode({k: v for k, v in configs.items() if k[0].isupper()}, 1)) / 30,
        "step_time_s": np.ones(len(repeats)),
        "n_repeats": np.full(len(repeats), 5),
        **_texts(len(repeats)),
    }
    return Measurements(
        task=TASK,
        protocol=PROTOCOL,
        configs=_typed(configs, CONFIG_COLUMNS),
        runs=_typed(runs, RUN_COLUMNS),
        profile=_typed(profile, PROFILE_COLUMNS),
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


def _configs(n: int, *, seed: int) -> Table:
    columns = space().sample_columns(n, seed=seed)
    for key, values in zip(("N", "W", "Resolution"), zip(*SIZES, strict=True), strict=True):
        columns[key] = np.array(values)[np.arange(n) % 27].astype(columns[key].dtype)
    return {"config_id": config_ids(columns), "config_index": np.arange(n), **columns}


def _accuracy(X: np.ndarray) -> np.ndarray:
    paths = path_features(X[:, 3:9].astype(int))
    rate, decay = np.log10(X[:, 1].astype(float)), np.log10(X[:, 13].astype(float))
    depth, n_alive = paths[:, 20], paths[:, [0, 5, 10, 15]].sum(axis=1)
    quality = -3 + 0.6 * depth - (rate + 1.5) ** 2 * 0.5 - (rate + decay + 5) ** 2 * 0.1 + 0.04 * X[:, 12] + X[:, 10]
    quality += np.log(X[:, 14]) * 0.4
    return np.where(n_alive == 0, 10.0, 10 + 85 / (1 + np.exp(-quality)))


def _seconds(X: np.ndarray) -> np.ndarray:
    return 0.05 + n_macs(X, TASK) * 1e-7 + 0.1 * X[:, 11]


def _texts(n: int, **values: str) -> Table:
    values |= {"machine": "a processor", "torch_version": "2.13", "protocol": PROTOCOL}
    return {name: np.full(n, text) for name, text in values.items()}


def _typed(table: Table, columns: object) -> Table:
    assert isinstance(columns, type(RUN_COLUMNS))
    return {name: table[name] if dtype == "string" else table[name].astype(dtype) for name, dtype in columns.items()}
