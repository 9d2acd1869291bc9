"""Measure every config of a folder of runs in one quiet pass: evaluation latency and the time of a training step.

    python -m pipeline.profile --task fashion_mnist_mini --runs out/mini

Times are CPU seconds of one thread, the minimum over all repeats after a warm-up, since interference only adds time. A
quiet machine still has slow minutes (another tenant of the processor, a lower clock), so a config is visited several
times, far apart: each round of visits goes through all configs in a new random order. Every repeat is kept in
`profile_visits.parquet`; `profile.parquet` is made from them when every config has had its visits.

A profile is from one processor and one version of torch, whatever trained the runs. If several visited a folder's
configs, it is from the pair that visited the most of them. A virtual machine often hides which processor it has, so
a few configs that were visited under its name are measured again first; if their times differ, the pass is refused.
Measurements are saved every few configs, and the pass resumes from there. It refuses a busy machine, and discards the
measurements that were taken while it became busy.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from jahs.errors import InvalidArgument, refuse
from jahs.files.runs import VISITS, read_configs, read_profile
from jahs.files.tables import Table, concatenate, sort_by, take, typed
from jahs.schema import CONFIG_KEYS, PROFILE_COLUMNS, VISIT_COLUMNS
from jahs.spaces.columns import rows
from jahs.spaces.configs import Config
from jahs.spaces.seeds import SEED_RANGE, is_seed
from jahs.tasks.definitions import Task
from pipeline.command import runs_parser
from pipeline.data import ImageSet, load_images
from pipeline.one_core import one_core
from pipeline.protocol import shared_protocol, trained_task
from pipeline.runs import RunsFolder
from pipeline.train import Training
from workshop.command import run_command
from workshop.machine import processor_model
from workshop.measured import TIMES, profile_of_visits, read_visits
from workshop.progress import Progress

_LATENCY_BATCH: Final = 256  # images in the batch whose evaluation is timed as `latency`
_SAVE_EVERY: Final = 50
_QUIET_LOAD: Final = 0.75  # load average before the pass itself runs
_OWN_LOAD: Final = 1.0
_N_KNOWN: Final = 12  # configs that are measured again first
_SAME_WITHIN: Final = 1.15  # largest median ratio of their times; it is 1.03 between visits to one processor
_MOST: Final = 127  # visits and repeats are numbered in int8
_LOCK: Final = "profile"  # lock of the folder, held from reading its visits to writing them, so that no others are lost
_KEY: Final = ("config_id", "visit", "machine", "torch_version")


def measure_config(
    config: Config, task: Task, images: ImageSet, *, repeats: int, seed: int = 0
) -> list[tuple[float, float]]:
    """Return `latency` and `step_time_s` of every repeat: CPU seconds for a batch, after a warm-up.

    Latency is the forward pass of a prepared batch. A step is all that training does with a batch, from drawing its
    augmentation to updating the weights. The learning rate is zero, so that all steps work on the same weights.

    Args:
        images: the task's images at the config's Resolution.
    """
    measured = []
    with one_core(), torch.random.fork_rng(devices=[]):
        training = Training(config, task, images, seed=seed)
        training.optimizer.param_groups[0]["lr"] = 0.0
        index = torch.arange(task.batch_size) % len(images.train.labels)
        with torch.inference_mode():
            prepared = training.prepare(images.valid.images[torch.arange(_LATENCY_BATCH) % len(images.valid.labels)])
        for _ in range(1 + repeats):
            training.network.eval()
            started = time.thread_time()
            with torch.inference_mode():
                training.network(prepared)
            between = time.thread_time()
            training.network.train()
            training.learn(*training.augment(index))
            ended = time.thread_time()
            measured.append((between - started, ended - between))
    return measured[1:]


def profile_folder(
    folder: Path,
    task: Task,
    *,
    visits: int = 5,
    repeats: int = 2,
    data_dir: Path | None = None,
    seed: int = 0,
    allow_busy: bool = False,
) -> int:
    """Visit the configs of a folder of runs until each has had its visits; return how many were visited by this call.

    Its arguments are flags, which `--help` explains.

    Raises:
        InvalidArgument: no or too many visits or repeats, a negative seed, another processor than that of earlier
            visits under the same name, or a busy machine; measurements from before it became busy are saved.
        ProtocolMismatch: the folder holds runs of another protocol.
        MissingData, CorruptFile: the folder or the images cannot be read.
    """
    numbers = {"visits": visits, "repeats": repeats}
    faults = [f"{name}={n} must be 1 to {_MOST}" for name, n in numbers.items() if not 1 <= n <= _MOST]
    if not is_seed(seed):
        faults.append(f"seed={seed!r} is not an integer in {SEED_RANGE}")
    refuse(*faults)
    protocol = shared_protocol(folder, task)
    facts = {"machine": processor_model(), "torch_version": torch.__version__, "protocol": protocol}
    configs = read_configs(folder)
    visited = read_visits(folder)
    visited = take(visited, np.logical_and.reduce([visited[name] == value for name, value in facts.items()]))
    todo = _visits_left(visited, configs["config_id"], visits=visits, seed=seed)
    if not allow_busy:
        _refuse_busy(_QUIET_LOAD)
    images = load_images(task, data_dir=data_dir) if todo else {}

    def times_of(row: int, repeats: int) -> list[tuple[float, float]]:
        [config] = rows({key: configs[key][[row]] for key in CONFIG_KEYS})
        return measure_config(config, task, images[config["Resolution"]], repeats=repeats, seed=seed)

    if todo:
        _refuse_other_processor(visited, configs["config_id"], times_of, facts["machine"])
    with closing(Progress(len(todo), "profile")) as progress:
        for first in range(0, len(todo), _SAVE_EVERY):
            tables = []
            for visit, row in todo[first : first + _SAVE_EVERY]:
                times = times_of(row, repeats)
                tables.append(_table_of(int(configs["config_id"][row]), visit, times, facts))
                latency, step = min(times)
                note = f"visit {visit} latency={1e3 * latency:.2f}ms step={1e3 * step:.2f}ms"
                progress.update(first + len(tables), note)
            if not allow_busy:
                _refuse_busy(_QUIET_LOAD + _OWN_LOAD)
            with RunsFolder(folder).lock(_LOCK):  # a merge may have added other visits in the meantime
                write_visits(folder, add_new(read_visits(folder), concatenate(tables, VISIT_COLUMNS)))
    with RunsFolder(folder).lock(_LOCK):
        if len((visited := read_visits(folder))["config_id"]):
            write_profile(folder, visited)
    return len({row for _, row in todo})


def _visits_left(visited: Table, ids: np.ndarray[Any, Any], *, visits: int, seed: int) -> list[tuple[int, int]]:
    """Return (visit, row of the config) of the visits to make, in order."""
    done = {*zip(visited["visit"].tolist(), visited["config_id"].tolist(), strict=True)}
    return [
        (visit, row)
        for visit in range(visits)
        for row in np.random.default_rng((seed, visit)).permutation(len(ids)).tolist()
        if (visit, int(ids[row])) not in done
    ]


def _table_of(config_id: int, visit: int, times: Sequence[tuple[float, float]], facts: dict[str, str]) -> Table:
    numbers = {"config_id": config_id, "visit": visit, "repeat": np.arange(len(times))}
    return typed(numbers | dict(zip(TIMES, np.array(times).T, strict=True)) | facts, VISIT_COLUMNS)


def _refuse_busy(limit: float) -> None:
    if (load := os.getloadavg()[0]) > limit:
        raise InvalidArgument(
            f"the machine is busy (load average {load:.2f}, at most {limit} is quiet), so times would be wrong; stop "
            "the other work and start again a minute later, or give --allow-busy"
        )


def _refuse_other_processor(
    visited: Table, ids: np.ndarray[Any, Any], times_of: Callable[[int, int], list[tuple[float, float]]], name: str
) -> None:
    """Measure a few configs again that a processor of this name visited, and refuse if their times differ."""
    profile = profile_of_visits(visited)
    _, id_rows, profile_rows = np.intersect1d(ids, profile["config_id"], return_indices=True)
    if len(id_rows) < _N_KNOWN:
        return
    ratios = []
    for i in np.linspace(0, len(id_rows) - 1, _N_KNOWN).astype(int):
        before = [profile[column][profile_rows[i]] for column in TIMES]
        ratios += np.divide(np.min(times_of(int(id_rows[i]), 3), axis=0), before).tolist()
    if not 1 / _SAME_WITHIN <= (ratio := float(np.median(ratios))) <= _SAME_WITHIN:
        raise InvalidArgument(
            f"{_N_KNOWN} configs take {ratio:.2f} times as long as on earlier visits to {name!r}: this is another "
            "processor of that name, or a busy one, so times would not be comparable; profile on the earlier machine, "
            "or all configs here in a separate folder"
        )


def write_visits(folder: Path, visits: Table) -> None:
    """Write the visits of a folder, sorted."""
    RunsFolder(folder).commit(VISITS, sort_by(visits, (*_KEY, "repeat")), VISIT_COLUMNS)


def write_profile(folder: Path, visits: Table) -> None:
    """Write the profile from the visits of one processor and torch.

    It is the pair that visited the most configs; ties go to more repeats, then to the first name.
    """
    names, index = np.unique(np.column_stack([visits["machine"], visits["torch_version"]]), axis=0, return_inverse=True)
    by_name = [np.flatnonzero(index.reshape(-1) == number) for number in range(len(names))]  # in order of the names
    main = min(by_name, key=lambda at: (-len(np.unique(visits["config_id"][at])), -len(at)))
    RunsFolder(folder).commit("profile.parquet", profile_of_visits(take(visits, main)), PROFILE_COLUMNS)


def add_new(visits: Table, more: Table) -> Table:
    """Return the visits, and the visits of `more` that are not among them."""
    known = {*_keys(visits)}
    is_new = np.array([key not in known for key in _keys(more)], dtype=np.bool_)
    return concatenate([visits, take(more, is_new)], VISIT_COLUMNS)


def merge_visits(folder: Path, others: Sequence[Table]) -> None:
    """Add other folders' visits and update the profile; a visit in several folders is taken from the first."""
    with RunsFolder(folder).lock(_LOCK):
        visits = read_visits(folder)
        n_before = len(visits["visit"])
        for more in others:
            visits = add_new(visits, more)
        if len(visits["visit"]) > n_before:
            write_profile(folder, visits)  # first: after a crash between the two, a new merge still has visits to add
            write_visits(folder, visits)


def _keys(visits: Table) -> Iterator[tuple[object, ...]]:
    return zip(*(visits[name].tolist() for name in _KEY), strict=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = (
        "Measure latency and step time of every config in the config table of a folder of runs, trained or not, on a "
        "machine that does nothing else."
    )
    parser = runs_parser("profile", about)
    parser.add_argument("--seed", type=int, default=0, help="seed of order and weights (default: %(default)s)")
    parser.add_argument("--visits", type=int, default=5, help="visits to each config, far apart (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=2, help="measurements at each visit (default: %(default)s)")
    parser.add_argument("--allow-busy", action="store_true", help="measure even if the machine is busy")
    given = vars(parser.parse_args(argv))
    task, runs = given.pop("task"), given.pop("runs")

    def work() -> dict[str, object]:
        n_measured = profile_folder(runs, trained_task(task), **given)
        machines = {*read_profile(runs)["machine"].tolist()}  # at most one
        return {"task": task, "runs": str(runs), "configs_measured": n_measured, "profile_of": ", ".join(machines)}

    return run_command("pipeline.profile", work)


if __name__ == "__main__":
    sys.exit(main())
