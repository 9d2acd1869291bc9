"""Column names and types of every table, in one place: the formats that packages exchange.

The config table has one row per config (`CONFIG_TABLE_COLUMNS`), the runs one row per (config, seed, epoch)
(`RUN_COLUMNS`).
The profile has one row per config (`PROFILE_COLUMNS`), computed from visits, which have one row per repeat
(`VISIT_COLUMNS`). `COLUMNS` are the columns of the encoded matrix, in order.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

OPS: Final = ("Op1", "Op2", "Op3", "Op4", "Op5", "Op6")

CONFIG_KEYS: Final = (
    "Activation",
    "LearningRate",
    "N",
    *OPS,
    "Optimizer",
    "Resolution",
    "TrivialAugment",
    "W",
    "WeightDecay",
)
"""The 14 keys of a config, spelled and sorted as JAHS-Bench-201 does."""

SIZE_KEYS: Final = ("N", "W", "Resolution")
"""The keys that decide how large a network is; a view may use them as fidelities."""

COLUMNS: Final = (*CONFIG_KEYS, "epoch")
"""Columns of the encoded float32 matrix: every key of a config in order, then the epoch."""

RUNS_FORMAT: Final = 1
"""Version of the runs tables; a reader refuses any other."""

CONFIG_COLUMNS: Final = MappingProxyType(
    {
        "config_id": "uint64",
        "config_index": "int64",  # number in the sample stream; -1 for a config from elsewhere
        "Activation": "string",
        "LearningRate": "float64",
        "N": "int8",
        **dict.fromkeys(OPS, "int8"),
        "Optimizer": "string",
        "Resolution": "float32",  # 0.25, 0.5 and 1 are exact
        "TrivialAugment": "bool",
        "W": "int8",
        "WeightDecay": "float64",
    }
)

FINAL_SOURCE: Final = "final"
"""The source of the final test set."""

SOURCES: Final = (
    "uniform",  # the numbered stream
    "full",  # uniform at full size, also numbered
    "best",
    "disagreement",
    "seeds",
    "paired",
    "poor",
    "live",
    "retrained",
    "cells",  # NAS-Bench-201 cells at full size with default hyperparameters
    FINAL_SOURCE,  # in no part of a split
)
"""The sources of configs."""

SOURCE_COLUMNS: Final = MappingProxyType(
    {
        "source": "string",  # one of `SOURCES`
        "round": "int64",  # round of proposals, from 0
        "release": "string",  # digest of the release that proposed the config, "" if none did
    }
)

SOURCE_DEFAULTS: Final = MappingProxyType({"source": "uniform", "round": 0, "release": ""})
"""Sources of the configs of a table without `SOURCE_COLUMNS`."""

CONFIG_TABLE_COLUMNS: Final = MappingProxyType({**CONFIG_COLUMNS, **SOURCE_COLUMNS})
"""The config table of a folder of runs; a release keeps only `CONFIG_COLUMNS`."""

RUN_COLUMNS: Final = MappingProxyType(
    {
        "config_id": "uint64",
        "seed": "int64",
        "epoch": "int16",
        "train_acc": "float32",
        "valid_acc": "float32",
        "test_acc": "float32",
        "train_loss": "float32",
        "valid_loss": "float32",
        "test_loss": "float32",
        "runtime": "float32",  # NaN where trained on an accelerator
        "status": "string",  # finished or diverged, in every row; the last row is the epoch in which it diverged
        "device": "string",  # "cpu", "native" (C code on a processor core), or the accelerator's name
        "machine": "string",  # processor model
        "torch_version": "string",  # and the version of the C engine where it trained
        "protocol": "string",  # digest of task, index digests, constants and augmentation version
    }
)

RUN_KEY: Final = ("config_id", "seed", "epoch")
"""The key of a row of the runs; tables are in this order."""

PROFILE_COLUMNS: Final = MappingProxyType(
    {
        "config_id": "uint64",
        "latency": "float32",  # CPU seconds of one evaluation batch of 256
        "step_time_s": "float32",  # CPU seconds of one training step on a batch of the task
        "n_repeats": "int16",
        "machine": "string",
        "torch_version": "string",
        "protocol": "string",
    }
)

VISIT_COLUMNS: Final = MappingProxyType(
    {
        "config_id": "uint64",
        "visit": "int8",
        "repeat": "int8",
        **{name: PROFILE_COLUMNS[name] for name in ("latency", "step_time_s", "machine", "torch_version", "protocol")},
    }
)

VISIT_KEY: Final = ("config_id", "visit", "repeat")
"""The key of a row of the visits with one processor and torch version; tables are in this order."""

PROXIES: Final = (
    *("parameters", "grad_norm", "fisher", "jacov", "snip", "grasp", "synflow", "ntk", "zen", "zico", "meco", "swap"),
    "naswot",
)
"""The zero-cost proxies; `pipeline.zero_cost` has a function for each."""

PROXIES_FORMAT: Final = 2
"""Version of the scores; a reader refuses any other."""

PROXY_TIMES: Final = MappingProxyType({name: f"{name}_s" for name in PROXIES})
"""The column with the CPU seconds of each proxy."""

PROXY_COLUMNS: Final = MappingProxyType(
    {
        "config_id": "uint64",
        "seed": "int64",  # seed of the weights and of the batch
        **dict.fromkeys(PROXIES, "float64"),  # NaN for a missing score
        "reason": "string",  # reason for each score that is NaN, as "jacov: why; zen: why"
        **dict.fromkeys(PROXY_TIMES.values(), "float32"),  # CPU seconds of each score by itself
        "machine": "string",
        "torch_version": "string",
        "protocol": "string",
        "format": "int8",
    }
)

PROXY_KEY: Final = ("config_id", "seed")
"""The key of a row of the scores; tables are in this order."""

SPLIT_PARTS: Final = ("train", "valid", "test")

TRIALS_FORMAT: Final = 1
TRIAL_KEYS: Final = ("trial", "config", "fidelity", "seed", "metrics", "start", "end", "worker", "status")
"""Keys of one line of a trial log, in order."""
