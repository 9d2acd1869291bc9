"""Columns of a recorded table as JAHS-Bench-201 published it, without anything odd."""

from __future__ import annotations

import numpy as np

import jahs
from jahs.models.cost import n_macs, n_params
from jahs.schema import CONFIG_KEYS
from jahs.tasks.definitions import TASKS

TASK = TASKS["colorectal_histology"]
N_EPOCHS = TASK.max_epoch
SIDES = ("train_set", "valid_set", "test_set")
LABELS = (
    *("FLOPS", "latency", "runtime", "size_MB", "train-forward_duration", "train-backprop_duration"),
    *(f"{part}-{kind}" for part in ("train", "valid", "test") for kind in ("acc", "loss")),
)


def make_columns(n_models=12, *, seed=0, configs=None, n_epochs=N_EPOCHS):
    """Return the columns of raw: whole runs of random configs, or of `configs`, without anything odd."""
    if configs is None:
        configs = jahs.space().sample_columns(n_models, seed=seed)
    X = jahs.encode(configs, 1)
    model = np.repeat(np.arange(n_models), n_epochs)
    epoch = np.tile(np.arange(1, n_epochs + 1), n_models)
    rng = np.random.default_rng(seed)
    columns = {("features", key): configs[key][model] for key in CONFIG_KEYS}
    for key in ("Activation", "Optimizer", "TrivialAugment"):
        columns["features", key] = columns["features", key].astype(object)
    for key in ("N", "W", *(f"Op{i}" for i in range(1, 7))):
        columns["features", key] = columns["features", key].astype(np.int64)
    columns["features", "Resolution"] = columns["features", "Resolution"].astype(float)
    columns["features", "epoch"] = epoch
    noise = rng.normal(0, 0.5, len(epoch))
    for part in ("train", "valid", "test"):
        columns["labels", f"{part}-acc"] = np.clip(20 + 50 * epoch / n_epochs + noise, 0, 100)
        columns["labels", f"{part}-loss"] = 2.0 / epoch + 0.1
    columns["labels", "runtime"] = 3.5 * epoch + model
    columns["labels", "latency"] = 0.01 + model / 1000 + epoch / 1e6
    columns["labels", "train-forward_duration"] = np.full(len(epoch), 0.25)
    columns["labels", "train-backprop_duration"] = np.full(len(epoch), 0.5)
    columns["labels", "FLOPS"] = n_macs(X, TASK)[model] / 1e6
    columns["labels", "size_MB"] = n_params(X, TASK)[model] / 1e6
    for key, values in (("model_ID", model + 100), ("fidelity_ID", model % 3), ("model_idx", model), ("taskid", model)):
        columns["sampling_index", key] = values
    return columns
