"""The work of one worker: train one config with one seed, and record the run."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from jahs.files.tables import Table, typed
from jahs.schema import RUN_COLUMNS
from jahs.spaces.configs import config_id
from jahs.tasks.definitions import Task
from pipeline.data import ImageSet, load_images
from pipeline.native.build import software
from pipeline.protocol import EPOCH_FIELDS, protocol_digest
from pipeline.runs import Named, RunsFolder
from workshop.machine import device_name, processor_model

if TYPE_CHECKING:
    from pipeline.train import TrainedRun

NamedRun: TypeAlias = tuple[Named, int]
"""A config in the names of shards (`pipeline.runs.Named`), and a seed."""


def collect_run(
    out: Path,
    chosen: Task,
    job: NamedRun,
    *,
    by: str,
    device: str = "cpu",
    data_dir: Path | None = None,
    checkpoint: Path | None = None,
) -> str | None:
    """Train a config with a seed and record the run; return a line about it, or None if another process trains it.

    Args:
        chosen: the task itself, since it may not be registered in another process.
        by: name of the collector that gave the job.
        checkpoint: file to resume the training from, saved after every epoch; None: start at the first epoch.

    Raises:
        OutOfSpace: the disk is full; nothing of the run was left behind.
    """
    from pipeline.train import train  # it loads torch, which a process that only gives jobs does not need

    named, seed = job
    folder = RunsFolder(out)
    with folder.claim(named, seed) as is_ours:
        if not is_ours:
            return None
        config = folder.config(named)
        if folder.is_recorded(named, seed, config_id(config)):
            line = f"config {named} seed {seed} recorded by a worker that was lost"
            return line if folder.is_recorded_by(by, named, seed) else None
        started = time.monotonic()
        run = train(
            config,
            chosen,
            images_of(chosen, data_dir)[config["Resolution"]],
            seed=seed,
            device=device,
            checkpoint=checkpoint,
        )
        if not folder.write_run(named, seed, run_table(run, config_id(config), seed, chosen, device), by=by):
            return None
        seconds = time.monotonic() - started
    accuracy = run.epochs[-1][EPOCH_FIELDS.index("valid_acc")]
    return f"config {named} seed {seed} {run.status} valid_acc={accuracy:.1f} {seconds:.0f}s"


@functools.lru_cache(maxsize=1)
def images_of(chosen: Task, data_dir: Path | None) -> dict[float, ImageSet]:
    """Return the images of a task by Resolution; a worker reads them once."""
    return load_images(chosen, data_dir=data_dir)


def run_table(run: TrainedRun, identity: int, seed: int, chosen: Task, device: str) -> Table:
    """Return the rows of one run as they are recorded."""
    columns = {
        "config_id": identity,
        "seed": seed,
        "epoch": np.arange(1, len(run.epochs) + 1),
        **dict(zip(EPOCH_FIELDS, run.epochs.T, strict=True)),
        "status": run.status,
        "device": device_name(device),
        "machine": processor_model(),
        "torch_version": software(device, chosen.batch_size),
        "protocol": protocol_digest(chosen),
    }
    return typed(columns, RUN_COLUMNS)
