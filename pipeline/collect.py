"""Collect runs: train numbered configs one after another into a folder that survives anything.

    python -m pipeline.collect --task fashion_mnist_mini --out FOLDER --minutes 60
    python -m pipeline.collect status FOLDER
    python -m pipeline.collect verify FOLDER --retrain 3
    python -m pipeline.collect merge FOLDER OTHER...

Stopped at any moment, by Ctrl-C or kill -9, it goes on where it was when started again; two collectors may share a
folder. Every finished run is one shard, written beside and renamed, so it is whole or absent.
"""

from __future__ import annotations

import functools
import logging
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import torch

from jahs.configs import config_id
from jahs.errors import InvalidArgument
from jahs.tasks import Task, task
from pipeline.data import load_images
from pipeline.protocol import protocol_digest, protocol_facts
from pipeline.runs import RunsFolder, check_free_space
from pipeline.sampling import config_table, run_seeds, sample_config
from pipeline.worker import Job, collect_run
from workshop.command import new_parser, run_command
from workshop.jobs import Where, add_where, run_jobs
from workshop.progress import Progress

__all__ = ["Settings", "collect", "main"]

_log = logging.getLogger(__name__)
_AHEAD: Final = 270  # configs are entered into the table so many at a time
_PAIR: Final = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `collect` does; one field per flag.

    Attributes:
        task: name of the task.
        out: folder of runs, made if it does not exist.
        minutes: start no run after so many; None: no limit.
        runs: end after so many runs; None: no limit.
        workers: processes, each on one core.
        device: "cpu" or "cuda".
        backend: "loky" for this machine, "dask" for a cluster.
        scheduler: address of a Dask scheduler.
        data_dir: folder of the original images.
        pairs: train the first so many configs with two seeds at least.
    """

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

    @property
    def where(self) -> Where:
        """Where runs are trained."""
        return Where(workers=self.workers, backend=self.backend, scheduler=self.scheduler)

    def check(self) -> Task:
        """Return the task, refusing every fault at once."""
        faults = []
        if self.minutes is not None and not self.minutes > 0:
            faults.append(f"minutes={self.minutes} is not more than 0")
        if self.runs is not None and self.runs < 1:
            faults.append(f"runs={self.runs} is not at least 1")
        faults += self.where.faults()
        if self.device != "cpu" and not torch.cuda.is_available():
            faults.append(f"device={self.device}: no CUDA device is available; use cpu")
        if faults:
            raise InvalidArgument("\n".join(faults))
        return task(self.task)


def collect(settings: Settings) -> int:
    """Train and record runs until the limit; return how many were added by this call.

    Raises:
        JahsError: bad settings, no images, another protocol, too little disk; nothing was written.
    """
    chosen = settings.check()
    load_images(chosen, data_dir=settings.data_dir)  # refuse missing images here, not in every worker
    check_free_space(settings.out)
    folder = RunsFolder.open_or_make(settings.out, facts=protocol_facts(chosen), digest=protocol_digest(chosen))
    folder.recover()
    progress = Progress(settings.runs, settings.task, limit_s=settings.minutes and settings.minutes * 60)
    n_added = 0
    deadline = None if settings.minutes is None else time.monotonic() + settings.minutes * 60
    call = functools.partial(
        _collect,
        settings.out.absolute(),
        settings.task,
        by=uuid.uuid4().hex,
        device=settings.device,
        data_dir=settings.data_dir and settings.data_dir.absolute(),
    )
    given: set[Job] = set()
    others: set[Job] = set()
    is_done = False
    while not is_done:
        is_done = True
        jobs = _jobs(settings, folder, deadline=deadline, given=given, others=others)
        for done in run_jobs(call, jobs, where=settings.where):
            if done.result is None:
                given.remove(done.job)
                others.add(done.job)
                is_done = False  # another one may take its place
            else:
                n_added += 1
                progress.update(n_added, done.result, spent_s=done.spent_s)
    progress.close()
    return n_added


def _collect(out: Path, name: str, job: Job, **more: Any) -> str | None:  # Any: arguments of `collect_run`
    """Return a line about a run that was collected, None if another collector has it."""
    return collect_run(out, name, *job, **more)[1]


def _jobs(
    settings: Settings, folder: RunsFolder, *, deadline: float | None, given: set[Job], others: set[Job]
) -> Iterator[Job]:
    """Yield every run that is not recorded, in order, until a limit is reached.

    Args:
        given: what is yielded is added to it; what is there counts against the limit.
        others: runs that other collectors have.
    """
    done = folder.recorded()
    number = 0
    while True:
        if number % _AHEAD == 0:
            folder.add_configs(config_table(number, number + _AHEAD))
        identity = config_id(sample_config(number))
        for seed in sorted({*run_seeds(number), *_PAIR}) if number < settings.pairs else run_seeds(number):
            if (identity, seed) in done or (number, seed) in others:
                continue
            if len(given) == settings.runs or (deadline is not None and time.monotonic() > deadline):
                return
            given.add((number, seed))
            yield number, seed
        number += 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in {"status", "verify", "merge"}:
        from pipeline import inspect_runs

        return inspect_runs.main(arguments)
    settings = _parse(arguments)

    def work() -> object:
        return {"task": settings.task, "out": str(settings.out), "runs_added": collect(settings)}

    return run_command("pipeline.collect", work, stopped="every finished run is recorded, start again to go on")


def _parse(arguments: Sequence[str]) -> Settings:
    parser = new_parser(
        "pipeline.collect",
        "Train numbered configs and record what was measured.",
        example="--task digits --out out/digits --minutes 5 --workers 2",
        more="Also: status FOLDER, verify FOLDER [--retrain K], merge FOLDER OTHER...",
    )
    parser.add_argument("--task", required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of runs, made if it does not exist")
    parser.add_argument("--minutes", type=float, help="start no run after so many (default: no limit)")
    parser.add_argument("--runs", type=int, help="end after so many runs (default: no limit)")
    add_where(parser)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--data-dir", type=Path, help="folder of the original images")
    parser.add_argument("--pairs", type=int, default=0, help="train the first so many configs with two seeds at least")
    return Settings(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
