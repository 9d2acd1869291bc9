"""Train runs of a folder again: on the same processor and software, they must give the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jahs.errors import InvalidTable
from jahs.files.runs import read_runs
from jahs.files.tables import Table, take
from jahs.spaces.seeds import read_seed
from pipeline.data import load_images
from pipeline.native.build import software
from pipeline.protocol import EPOCH_FIELDS, REPRODUCED
from pipeline.runs import RunsFolder
from pipeline.train import train
from pipeline.verify import each_run, folder_task
from workshop.machine import ON_PROCESSOR, processor_model
from workshop.measured import last_rows
from workshop.resampling import within_configs


def retrain(path: Path, n_runs: int, *, seed: int = 0, data_dir: Path | None = None) -> tuple[list[str], list[str]]:
    """Train `n_runs` random finished CPU runs again; return a line about each, and the faults.

    On the same processor model and software, every accuracy and loss must be bit-identical; elsewhere the last epoch
    must lie within three standard deviations of the difference between two seeds, taken from the folder's repeats.

    Raises:
        InvalidArgument: a negative seed.
        InvalidTable: the folder has fewer finished CPU runs.
    """
    seed = read_seed(seed)
    task = folder_task(path)
    runs = read_runs(path)
    folder = RunsFolder(path)
    candidates = [r for r in each_run(runs) if r["device"][0] in ON_PROCESSOR and r["status"][0] == "finished"]
    if len(candidates) < n_runs:
        raise InvalidTable(f"{path} has {len(candidates)} finished runs on a CPU, and {n_runs} are to be trained again")
    positions = np.random.default_rng(seed).permutation(len(candidates))[:n_runs]
    sets = load_images(task, data_dir=data_dir)
    spread = _seed_spread(runs)
    lines, faults = [], []
    for position in positions:
        old = candidates[position]
        [named] = folder.names(old["config_id"][:1].tolist())
        config = folder.config(named)
        device, seed = str(old["device"][0]), int(old["seed"][0])
        new = train(config, task, sets[config["Resolution"]], seed=seed, device=device).epochs.astype(np.float32)
        name = f"config {named} seed {seed}"
        differences = {
            field: np.abs(new[:, EPOCH_FIELDS.index(field)] - old[field]) if len(new) == len(old["epoch"]) else None
            for field in REPRODUCED
        }
        if old["machine"][0] == processor_model() and old["torch_version"][0] == software(device, task.batch_size):
            rule = "same processor model and software: bit-identical"
            faulty = [field for field, gap in differences.items() if gap is None or bool(np.any(gap != 0))]
        elif not spread:
            rule = "another processor or software: not judged, because no config has two seeds"
            faulty = [field for field, gap in differences.items() if gap is None]
        else:
            rule = "another processor or software: within three standard deviations of two seeds' difference"
            limits = {field: 3 * np.sqrt(2) * spread[field] for field in differences}
            faulty = [field for field, gap in differences.items() if gap is None or not float(gap[-1]) <= limits[field]]
        lines.append(f"{name}: {rule}: {'differs in ' + ', '.join(faulty) if faulty else 'reproduced'}")
        faults += [lines[-1]] if faulty else []
    return lines, faults


def _seed_spread(runs: Table) -> dict[str, float]:
    """Return the pooled standard deviation between seeds at the last epoch; {} if no config is repeated."""
    last = last_rows(runs)
    finished = take(last, last["status"] == "finished")
    spread = {}
    for field in REPRODUCED:
        _, _, freedom, squares = within_configs(finished["config_id"], finished[field].astype(np.float64))
        if (is_repeated := freedom > 0).any():
            spread[field] = float(np.sqrt((squares[is_repeated] / freedom[is_repeated]).mean()))
    return spread
