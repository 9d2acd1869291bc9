"""Small folders of runs for tests: written in a second, and shaped like measurements, so that models can learn them.

Config number i belongs to fidelity group i mod 27, and every tenth has three seeds, as in the pipeline. Accuracy rises
with the epoch, falls on both sides of a good learning rate and grows with convolutions, N, W and Resolution; time
grows with the work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from jahs.files.hashing import digest_facts
from jahs.files.tables import Table, concatenate, write_table
from jahs.schema import CONFIG_COLUMNS, CONFIG_KEYS, OPS, PROFILE_COLUMNS, RUN_COLUMNS, RUNS_FORMAT
from jahs.spaces.columns import config_ids
from jahs.spaces.space import space

GROUPS = np.array(list(product((1, 3, 5), (4, 8, 16), (0.25, 0.5, 1.0))))
MACHINE = {"machine": "test", "torch_version": "0"}


def make_configs(n_configs: int, *, seed: int = 0) -> Table:
    """Return a config table; its first rows do not depend on `n_configs`."""
    columns = space().sample_columns(n_configs, seed=seed)
    for j, key in enumerate(("N", "W", "Resolution")):
        columns[key] = GROUPS[np.arange(n_configs) % len(GROUPS), j].astype(columns[key].dtype)
    return with_ids(columns)


def with_ids(columns: Mapping[str, np.ndarray]) -> Table:
    """Return a config table of these configs, with new ids and numbers."""
    keys = {key: columns[key] for key in CONFIG_KEYS}
    table = {**keys, "config_id": config_ids(keys)}
    table["config_index"] = np.arange(len(columns["N"]))
    return _typed(table, CONFIG_COLUMNS)


def make_runs(
    configs: Table,
    *,
    seeds: Iterable[Iterable[int]],
    n_epochs: int,
    diverged: Iterable[int] = (),
    protocol: str = "0" * 16,
) -> Table:
    """Return the runs of configs; those whose position is in `diverged` end in the middle."""
    diverged = set(diverged)
    tables = []
    for i, config_seeds in enumerate(seeds):
        config = {name: values[i] for name, values in configs.items()}
        n_rows = max(1, n_epochs // 2) if i in diverged else n_epochs
        tables += [
            _run(config, seed, n_rows, n_epochs, is_diverged=i in diverged, protocol=protocol) for seed in config_seeds
        ]
    return concatenate(tables, RUN_COLUMNS)


def make_runs_folder(
    path: Path,
    n_configs: int,
    *,
    seed: int = 0,
    n_epochs: int = 4,
    repeat_every: int = 10,
    diverged: Iterable[int] = (),
    n_waiting: int = 0,
    task: str = "digits",
    configs: Table | None = None,
) -> Path:
    """Write a folder of runs and return its path.

    Args:
        path: the folder, made if it does not exist; what it holds is replaced.
        n_configs: number of trained configs; at least 189, seven in each of 27 groups, to be split.
        seed: which configs.
        n_epochs: the task's last epoch.
        repeat_every: each config whose number is a multiple of it has three seeds, the others have one.
        diverged: positions of the configs whose runs all diverge.
        n_waiting: configs in the table that were not trained.
        task: name of the task; with `n_epochs`, it determines the protocol.
        configs: these configs instead of random ones.
    """
    configs = make_configs(n_configs + n_waiting, seed=seed) if configs is None else configs
    facts = {"task": {"name": task, "max_epoch": n_epochs}}
    digest = digest_facts(facts)
    path.mkdir(parents=True, exist_ok=True)
    (path / "protocol.json").write_text(json.dumps({"format": RUNS_FORMAT, "digest": digest, "protocol": facts}))
    write_table(path / "configs.parquet", configs, CONFIG_COLUMNS)
    trained = {name: values[:n_configs] for name, values in configs.items()}
    seeds = [(0, 1, 2) if i % repeat_every == 0 else (0,) for i in range(n_configs)]
    runs = make_runs(trained, seeds=seeds, n_epochs=n_epochs, diverged=diverged, protocol=digest)
    write_table(path / "runs-0001.parquet", runs, RUN_COLUMNS)
    write_table(path / "profile.parquet", make_profile(trained, protocol=digest), PROFILE_COLUMNS)
    return path


def make_profile(configs: Table, *, protocol: str = "0" * 16) -> Table:
    """Return the quiet profile of configs."""
    n_rows = len(configs["N"])
    work = np.array([_work({name: values[i] for name, values in configs.items()}) for i in range(n_rows)])
    columns = {
        "config_id": configs["config_id"],
        "latency": work / 40,
        "step_time_s": work / 10,
        "n_repeats": np.full(n_rows, 5),
        **{name: np.full(n_rows, value) for name, value in {**MACHINE, "protocol": protocol}.items()},
    }
    return _typed(columns, PROFILE_COLUMNS)


def _run(
    config: Mapping[str, np.generic], seed: int, n_rows: int, n_epochs: int, *, is_diverged: bool, protocol: str
) -> Table:
    rng = np.random.default_rng([int(config["config_id"]), seed])
    epoch = np.arange(1, n_rows + 1)
    final = _final_accuracy(config) + rng.normal(0, 1.0)
    accuracy = 10 + (final - 10) * (1 - np.exp(-3 * epoch / n_epochs)) + rng.normal(0, 0.3, n_rows)
    columns: dict[str, np.ndarray] = {"epoch": epoch}
    for name, shift in (("train", 2.0), ("valid", 0.0), ("test", -0.5)):
        part_accuracy = np.clip(accuracy + shift + rng.normal(0, 0.3, n_rows), 0, 100)
        columns[f"{name}_acc"], columns[f"{name}_loss"] = part_accuracy, 2.5 * (1 - part_accuracy / 110)
    columns["runtime"] = _work(config) * epoch * rng.uniform(0.97, 1.03)
    if is_diverged:
        for name in ("train", "valid", "test"):
            columns[f"{name}_loss"][-1] = np.nan
    status = "diverged" if is_diverged else "finished"
    text = {"status": status, "device": "cpu", **MACHINE, "protocol": protocol}
    columns |= {name: np.full(n_rows, value) for name, value in text.items()}
    return _typed(
        {**columns, "config_id": np.full(n_rows, config["config_id"]), "seed": np.full(n_rows, seed)}, RUN_COLUMNS
    )


def _final_accuracy(config: Mapping[str, np.generic]) -> float:
    n_convolutions = sum(1.0 if config[op] == 2 else 0.6 if config[op] == 3 else 0.0 for op in OPS)
    rate = np.log10(float(config["LearningRate"])) + 1
    size = np.log2(float(config["W"])) + float(config["N"]) + 4 * float(config["Resolution"])
    return float(np.clip(35 + 6 * n_convolutions + 2.5 * size - 9 * rate**2, 12, 97))


def _work(config: Mapping[str, np.generic]) -> float:
    """Return the seconds of one epoch."""
    n_convolutions = sum({2: 1.0, 3: 0.4, 4: 0.3}.get(int(config[op]), 0.02) for op in OPS)
    return float(0.05 + n_convolutions * config["N"] * (config["W"] / 4) ** 1.5 * float(config["Resolution"]) ** 2 / 20)


def _typed(columns: Mapping[str, np.ndarray], schema: Mapping[str, str]) -> Table:
    return {name: columns[name] if dtype == "string" else columns[name].astype(dtype) for name, dtype in schema.items()}
