"""Collect runs: train numbered configs, or those of a list, into a folder that survives a kill at any moment.

    python -m pipeline.collect --task fashion_mnist_mini --out FOLDER --minutes 60
    python -m pipeline.collect --task fashion_mnist_mini --out FOLDER --configs FILE --source best
    python -m pipeline.collect status FOLDER
    python -m pipeline.collect verify FOLDER --retrain 3
    python -m pipeline.collect merge FOLDER OTHER...

Stopped at any moment, by Ctrl-C or kill -9, it resumes when started again; two collectors may share a
folder. Every finished run is one shard, written beside and renamed, so it is whole or absent.
"""

from __future__ import annotations

import functools
import itertools
import logging
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from jahs.errors import refuse
from jahs.files.tables import Table
from jahs.schema import SOURCES
from jahs.spaces.configs import config_id
from jahs.tasks.definitions import Task
from pipeline.command import add_device, device_faults
from pipeline.data import check_images
from pipeline.native.build import load_library, native_faults
from pipeline.proposals import read_proposals
from pipeline.protocol import protocol_digest, protocol_facts, trained_task
from pipeline.runs import Named, RunsFolder, check_free_space
from pipeline.sampling import config_table, run_seeds, sample_config
from pipeline.worker import NamedRun, collect_run
from workshop.command import add_data_dir, add_minutes, new_parser, run_command
from workshop.jobs import Where, add_where, run_jobs
from workshop.machine import NATIVE
from workshop.progress import Progress

_log = logging.getLogger(__name__)
_AHEAD: Final = 270  # configs that are added to the table at a time
_PAIR: Final = (0, 1)
_MOST: Final = 2**31  # numbers of configs end there

_Wanted: TypeAlias = tuple[Named, int, Sequence[int]]  # a config, its config_id, and the seeds to train it with


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectSettings:
    """Settings of `collect`: one field per flag, which `--help` explains; None means no limit."""

    task: str
    out: Path
    minutes: float | None = None
    runs: int | None = None
    workers: int = 2
    device: str = "cpu"
    backend: Literal["loky", "dask"] = "loky"
    scheduler: str | None = None
    data_dir: Path | None = None
    pairs: int = 0
    start: int = 0
    stop: int | None = None
    configs: Path | None = None
    source: str | None = None

    @property
    def where(self) -> Where:
        """The workers that train."""
        return Where(workers=self.workers, backend=self.backend, scheduler=self.scheduler)

    def check(self) -> Task:
        """Return the task, refusing every fault at once."""
        faults = []
        if self.minutes is not None and not self.minutes > 0:
            faults.append(f"minutes={self.minutes} must be more than 0")
        if self.runs is not None and self.runs < 1:
            faults.append(f"runs={self.runs} must be at least 1")
        stop = _MOST if self.stop is None else self.stop
        if not 0 <= self.start < stop <= _MOST:
            faults.append(
                f"start={self.start} and stop={self.stop} select no configs; give 0 <= start < stop <= {_MOST}"
            )
        if self.pairs < 0:
            faults.append(f"pairs={self.pairs} must be at least 0")
        faults += self.where.faults()
        faults += device_faults(self.device, is_here=self.backend == "loky")
        if (self.configs is None) != (self.source is None):
            faults.append("a list of configs needs its source, and a source its list: --configs FILE --source NAME")
        if self.configs is not None and self.pairs:
            faults.append('pairs is for numbered configs; a list names its seeds: {"config": ..., "seeds": [0, 1]}')
        if self.configs is not None and (self.start, self.stop) != (0, None):
            faults.append("start and stop select numbered configs; leave them out with a list")
        refuse(*faults)
        task = trained_task(self.task)
        if self.device == NATIVE:
            refuse(*native_faults(task.epoch_images or task.n_train, task.batch_size))
            if self.backend == "loky":  # on a cluster, this machine only submits
                load_library(task.batch_size)  # a missing compiler is refused here, not in every worker
        return task


def collect(settings: CollectSettings) -> int:
    """Train and record runs until the limit; return how many were added by this call.

    Raises:
        JahsError: bad settings, no images, another protocol, too little disk; nothing was written.
    """
    task = settings.check()
    proposals = None
    if settings.configs is not None and settings.source is not None:
        proposals = read_proposals(settings.configs, settings.source, protocol=protocol_digest(task))
    check_images(task, data_dir=settings.data_dir)  # refuse missing images here, not in every worker
    check_free_space(settings.out)
    folder = RunsFolder.open_or_make(settings.out, facts=protocol_facts(task), digest=protocol_digest(task))
    folder.recover()
    progress = Progress(settings.runs, task.name, limit_s=settings.minutes and settings.minutes * 60)
    n_added = 0
    deadline = None if settings.minutes is None else time.monotonic() + settings.minutes * 60
    call = functools.partial(
        collect_run,
        settings.out.absolute(),
        task,
        by=uuid.uuid4().hex,
        device=settings.device,
        data_dir=settings.data_dir and settings.data_dir.absolute(),
    )
    yielded: set[NamedRun] = set()
    others: set[NamedRun] = set()
    is_done = False
    while not is_done:
        is_done = True
        wanted = _numbered(settings, folder) if proposals is None else _listed(*proposals, folder)
        jobs = _jobs(settings, folder, wanted, deadline=deadline, yielded=yielded, others=others)
        for done in run_jobs(call, jobs, where=settings.where):
            if done.result is None:
                yielded.remove(done.job)
                others.add(done.job)
                is_done = False  # another process may train it
            else:
                n_added += 1
                progress.update(n_added, done.result, spent_s=done.spent_s)
    progress.close()
    return n_added


def _jobs(
    settings: CollectSettings,
    folder: RunsFolder,
    wanted: Iterable[_Wanted],
    *,
    deadline: float | None,
    yielded: set[NamedRun],
    others: set[NamedRun],
) -> Iterator[NamedRun]:
    """Yield every wanted run that is not recorded, in order, until a limit is reached.

    Args:
        yielded: runs yielded so far, which count against the limit; this function adds to them.
        others: runs that other collectors are training.
    """
    done = folder.recorded()
    for named, identity, seeds in wanted:
        for seed in seeds:
            if (identity, seed) in done or (named, seed) in others:
                continue
            if len(yielded) == settings.runs or (deadline is not None and time.monotonic() > deadline):
                return
            yielded.add((named, seed))
            yield named, seed


def _numbered(settings: CollectSettings, folder: RunsFolder) -> Iterator[_Wanted]:
    """Yield the configs of the stream, and add them to the table."""
    start, stop = settings.start, settings.stop
    for number in itertools.count(start) if stop is None else range(start, stop):
        if (number - start) % _AHEAD == 0:
            ahead = number + _AHEAD
            folder.add_configs(config_table(number, ahead if stop is None else min(ahead, stop)))
        seeds = sorted({*run_seeds(number), *_PAIR}) if number < start + settings.pairs else run_seeds(number)
        yield number, config_id(sample_config(number)), seeds


def _listed(configs: Table, seeds: Sequence[Sequence[int]], folder: RunsFolder) -> Iterator[_Wanted]:
    """Yield the configs of a list, after adding all of them to the table."""
    folder.add_configs(configs)
    identities = configs["config_id"].tolist()
    yield from zip(folder.names(identities), identities, seeds, strict=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in {"status", "verify", "merge"}:
        from pipeline import inspect_runs

        return inspect_runs.main(arguments)
    settings = _parse(arguments)

    def work() -> object:
        return {"task": settings.task, "out": str(settings.out), "runs_added": collect(settings)}

    return run_command("pipeline.collect", work, stopped="every finished run is recorded, start again to continue")


def _parse(arguments: Sequence[str]) -> CollectSettings:
    parser = new_parser(
        "pipeline.collect",
        "Train configs and record the measurements: numbered configs, or the configs of a list.",
        example="--task digits --out out/digits --minutes 5 --workers 2",
        more="Also: status FOLDER, verify FOLDER [--retrain K], merge FOLDER OTHER...",
    )
    parser.add_argument("--task", required=True, help="name of a task, or a task file (.json)")
    parser.add_argument("--out", type=Path, required=True, help="folder of runs, made if it does not exist")
    add_minutes(parser, "run")
    parser.add_argument("--runs", type=int, help="stop after this many runs (default: no limit)")
    add_where(parser)
    add_device(parser)
    add_data_dir(parser)
    parser.add_argument("--pairs", type=int, default=0, help="train so many first configs with at least two seeds")
    parser.add_argument("--start", type=int, default=0, help="number of the first config (default: %(default)s)")
    parser.add_argument("--stop", type=int, help="end of the range of numbers, exclusive (default: none)")
    parser.add_argument("--configs", type=Path, help="train the configs of this list, one JSON object a line, instead")
    parser.add_argument("--source", help=f"source of the list: {', '.join(SOURCES[1:])}")
    return CollectSettings(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
