"""Train recorded runs again: on the same processor and torch build they must be the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from jahs.errors import InvalidTable
from jahs.files.runs import last_rows, read_runs
from jahs.files.tables import Table, take
from pipeline.data import load_images
from pipeline.native.build import software
from pipeline.runs import RunsFolder
from pipeline.train import EPOCH_FIELDS, check_seed, train
from pipeline.verify import each_run, folder_task
from workshop.machine import ON_PROCESSOR, processor_model

REPRODUCED: Final = tuple(name for name in EPOCH_FIELDS if name != "runtime")
"""The columns that a second training must reproduce."""


def retrain(path: Path, n_runs: int, *, seed: int = 0, data_dir: Path | None = None) -> tuple[list[str], list[str]]:
    """Train `n_runs` random finished CPU runs again; return a line about each, and the faults.

    On the same processor model and torch build every accuracy and loss must be the same bits; elsewhere the last epoch
    must lie within three standard deviations of the difference between two seeds, taken from the folder's repeats.

    Raises:
        InvalidArgument: a negative seed.
        InvalidTable: the folder has fewer finished CPU runs.
    """
    check_seed(seed)
    chosen = folder_task(path)
    runs = read_runs(path)
    folder = RunsFolder(path)
    candidates = [r for r in each_run(runs) if r["device"][0] in ON_PROCESSOR and r["status"][0] == "finished"]
    if len(candidates) < n_runs:
        raise InvalidTable(f"{path} has {len(candidates)} finished runs on a CPU, and {n_runs} are to be trained again")
    chosen_runs = np.random.default_rng(seed).permutation(len(candidates))[:n_runs]
    sets = load_images(chosen, data_dir=data_dir)
    spread = _seed_spread(runs)
    lines, faults = [], []
    for position in chosen_runs:
        old = candidates[position]
        [named] = folder.names(old["config_id"][:1].tolist())
        config = folder.config(named)
        device, seed = str(old["device"][0]), int(old["seed"][0])
        new = train(config, chosen, sets[config["Resolution"]], seed=seed, device=device).epochs.astype(np.float32)
        name = f"config {named} seed {seed}"
        differences = {
            field: np.abs(new[:, EPOCH_FIELDS.index(field)] - old[field]) if len(new) == len(old["epoch"]) else None
            for field in REPRODUCED
        }
        if old["machine"][0] == processor_model() and old["torch_version"][0] == software(device, chosen.batch_size):
            rule = "same processor and torch build: the same bits"
            bad = [field for field, gap in differences.items() if gap is None or bool(np.any(gap != 0))]
        else:
            rule = "another processor or torch build: within three standard deviations of two seeds' difference"
            most = {field: 3 * np.sqrt(2) * spread[field] for field in differences}
            bad = [field for field, gap in differences.items() if gap is None or not float(gap[-1]) <= most[field]]
        lines.append(f"{name}: {rule}: {'differs in ' + ', '.join(bad) if bad else 'reproduced'}")
        faults += [lines[-1]] if bad else []
    return lines, faults


def _seed_spread(runs: Table) -> dict[str, float]:
    """Return the standard deviation between seeds at the last epoch, pooled over the repeated configs."""
    last = last_rows(runs)
    finished = take(last, last["status"] == "finished")
    _, at, n_seeds = np.unique(finished["config_id"], return_inverse=True, return_counts=True)
    if not (n_seeds > 1).any():
        return dict.fromkeys(REPRODUCED, float("nan"))
    spread = {}
    for field in REPRODUCED:
        values = finished[field].astype(np.float64)
        deviations = values - (np.bincount(at, values) / n_seeds)[at]
        variances = np.bincount(at, deviations**2)[n_seeds > 1] / (n_seeds[n_seeds > 1] - 1)
        spread[field] = float(np.sqrt(variances.mean()))
    return spread
