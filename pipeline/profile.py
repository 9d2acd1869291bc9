"""Measure every config of a folder of runs in one quiet pass: evaluation latency and the time of a training step.

    python -m pipeline.profile --task fashion_mnist_mini --runs out/mini

One thread, configs in random order, the median of repeats after a warm-up, in CPU seconds. The results of a whole
folder come from one processor and one torch, whatever trained the runs. What is measured is saved every few configs,
and the pass goes on from there. It refuses a busy machine, and throws away what it measured while it became busy.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from jahs.columns import rows
from jahs.configs import Config
from jahs.errors import InvalidArgument, InvalidTable, JahsError, ProtocolMismatch
from jahs.runs import read_configs, read_profile, read_protocol
from jahs.schema import CONFIG_KEYS, PROFILE_COLUMNS
from jahs.stdout import write_stdout
from jahs.tables import Table, concatenate, sort_by, write_table
from jahs.tasks import Task, task
from pipeline.data import ImageSet, load_images
from pipeline.machine import processor_model
from pipeline.progress import Progress
from pipeline.protocol import protocol_digest
from pipeline.train import BATCH_SIZE, Training, one_core

__all__ = ["Settings", "main", "measure_config", "profile_folder"]

_N_WARM_UP: Final = 2
_SAVE_EVERY: Final = 50
_QUIET_LOAD: Final = 0.75  # before the pass itself runs
_OWN_LOAD: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command was asked for.

    Attributes:
        runs: folder of runs.
        repeats: measurements per config, of which the median is recorded.
        data_dir: folder of the original images.
        seed: of the random order and the weights.
        allow_busy: whether to measure although the machine does other work.
    """

    task: str
    runs: Path
    repeats: int = 9
    data_dir: Path | None = None
    seed: int = 0
    allow_busy: bool = False


def measure_config(config: Config, task: Task, images: ImageSet, *, repeats: int, seed: int = 0) -> tuple[float, float]:
    """Return `latency` and `step_time_s` of a config: medians of CPU seconds for a batch of 256.

    Latency is the forward pass of a batch that is prepared already; a step is what training does with a batch, from
    drawing its augmentation to moving the weights. The rate is zero, so that the last step works on the first one's
    weights.

    Args:
        images: the task's at the config's Resolution.
    """
    latencies, steps = [], []
    with one_core(), torch.random.fork_rng(devices=[]):
        training = Training.start(config, task, images, seed=seed)
        training.optimizer.param_groups[0]["lr"] = 0.0
        index = torch.arange(BATCH_SIZE) % len(images.train.labels)
        with torch.inference_mode():
            prepared = training.prepare(images.valid.images[torch.arange(BATCH_SIZE) % len(images.valid.labels)])
        for i in range(_N_WARM_UP + repeats):
            training.network.eval()
            started = time.thread_time()
            with torch.inference_mode():
                training.network(prepared)
            between = time.thread_time()
            training.network.train()
            training.step(index)
            ended = time.thread_time()
            if i >= _N_WARM_UP:
                latencies.append(between - started)
                steps.append(ended - between)
    return statistics.median(latencies), statistics.median(steps)


def profile_folder(
    folder: Path,
    task: Task,
    *,
    repeats: int = 9,
    data_dir: Path | None = None,
    seed: int = 0,
    allow_busy: bool = False,
    load: Callable[[], float] = lambda: os.getloadavg()[0],
) -> int:
    """Measure the configs of a folder of runs that its profile lacks; return how many.

    Args:
        load: how many processes want to run, as an average over the last minute.

    Raises:
        InvalidArgument: no repeats, or a busy machine; what was measured before it became busy is saved.
        ProtocolMismatch: the folder holds runs of another protocol.
        InvalidTable: its profile was begun with another processor or torch.
        MissingData, CorruptFile: the folder or the images cannot be read.
    """
    if repeats < 1:
        raise InvalidArgument(f"repeats={repeats} must be at least 1")
    recorded, wanted = read_protocol(folder).digest, protocol_digest(task)
    if recorded != wanted:
        raise ProtocolMismatch(f"{folder} holds runs of protocol {recorded}, not of {task.name}'s, {wanted}")
    facts: dict[str, Any] = {  # Any: columns of different types
        "n_repeats": repeats,
        "machine": processor_model(),
        "torch_version": torch.__version__,
        "protocol": wanted,
    }
    profile = read_profile(folder)
    _refuse_another_machine(profile, folder, facts)
    configs = read_configs(folder)
    is_missing = ~np.isin(configs["config_id"], profile["config_id"])
    order = np.random.default_rng(seed).permutation(len(is_missing))
    order = order[is_missing[order]]
    if not allow_busy:
        _refuse_busy(load(), _QUIET_LOAD)
    images = load_images(task, data_dir=data_dir) if len(order) else {}
    progress = Progress(len(order), "profile")
    n_saved = 0
    try:
        while n_saved < len(order):
            chosen = order[n_saved : n_saved + _SAVE_EVERY]
            measured = []
            for config in rows({key: configs[key][chosen] for key in CONFIG_KEYS}):
                at = images[config["Resolution"]]
                measured.append(measure_config(config, task, at, repeats=repeats, seed=seed))
                latency, step = measured[-1]
                note = f"latency={1e3 * latency:.2f}ms step={1e3 * step:.2f}ms"
                progress.update(n_saved + len(measured), note)
            if not allow_busy:
                _refuse_busy(load(), _QUIET_LOAD + _OWN_LOAD)
            profile = _with_rows(profile, configs["config_id"][chosen], np.array(measured), facts)
            write_table(folder / "profile.parquet", profile, PROFILE_COLUMNS)
            n_saved += len(chosen)
    finally:
        progress.close()
    return n_saved


def _refuse_another_machine(profile: Table, folder: Path, facts: dict[str, Any]) -> None:  # Any: as in profile_folder
    for name in ("machine", "torch_version", "protocol"):
        if others := sorted(set(profile[name].tolist()) - {facts[name]}):
            raise InvalidTable(
                f"{folder / 'profile.parquet'} was begun with {name}={', '.join(others)}, here it is {facts[name]}; "
                "go on there, or move the file away to measure every config here"
            )


def _refuse_busy(load: float, limit: float) -> None:
    if load > limit:
        raise InvalidArgument(
            f"the machine is busy (load average {load:.2f}, at most {limit} is quiet), so times would be wrong; stop "
            "the other work and start again a minute later, or give --allow-busy"
        )


def _with_rows(profile: Table, ids: np.ndarray[Any, Any], times: np.ndarray[Any, Any], facts: dict[str, Any]) -> Table:
    """Return the profile with the rows of some configs added; `times` is (n, 2)."""
    values = {"config_id": ids, "latency": times[:, 0], "step_time_s": times[:, 1], **facts}
    added = {
        name: np.broadcast_to(np.asarray(values[name]), len(ids)).astype("U" if dtype == "string" else dtype)
        for name, dtype in PROFILE_COLUMNS.items()
    }
    return sort_by(concatenate([profile, added], PROFILE_COLUMNS), ("config_id",))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    settings = _parse(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        n_measured = profile_folder(
            settings.runs,
            task(settings.task),
            repeats=settings.repeats,
            data_dir=settings.data_dir,
            seed=settings.seed,
            allow_busy=settings.allow_busy,
        )
    except JahsError as err:
        print("\n".join(f"pipeline.profile: {line}" for line in str(err).splitlines()), file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print("pipeline.profile: stopped; start again to go on", file=sys.stderr)  # noqa: T201
        return 130
    write_stdout(json.dumps({"task": settings.task, "runs": str(settings.runs), "configs_measured": n_measured}))
    return 0


def _parse(argv: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.profile",
        description="Measure latency and step time of every config of a folder of runs, on a machine that does nothing "
        "else.",
        epilog="Example: python -m pipeline.profile --task digits --runs out/digits",
    )
    parser.add_argument("--task", required=True)
    parser.add_argument("--runs", type=Path, required=True, metavar="FOLDER", help="folder of runs")
    parser.add_argument("--repeats", type=int, default=9, help="measurements per config (default: %(default)s)")
    parser.add_argument("--data-dir", type=Path, metavar="FOLDER", help="folder of the original images")
    parser.add_argument("--seed", type=int, default=0, help="of order and weights (default: %(default)s)")
    parser.add_argument("--allow-busy", action="store_true", help="measure although other work is going on")
    return Settings(**vars(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
