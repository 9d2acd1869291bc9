"""Collect runs: train numbered configs one after another into a folder that survives anything.

    python -m pipeline.collect --task fashion_mnist_mini --out FOLDER --minutes 60
    python -m pipeline.collect status FOLDER
    python -m pipeline.collect verify FOLDER --retrain 3
    python -m pipeline.collect merge FOLDER OTHER...

Stopped at any moment, by Ctrl-C or kill -9, it goes on where it was when started again; two collectors may share a
folder. Every finished run is one shard, written beside and renamed, so it is whole or absent.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import torch
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import (  # type: ignore[import-untyped]  # ships no types
    TerminatedWorkerError,
)

from jahs.configs import config_id
from jahs.errors import InvalidArgument, JahsError
from jahs.stdout import write_stdout
from jahs.tasks import Task, task
from pipeline.data import load_images
from pipeline.protocol import protocol_digest, protocol_facts
from pipeline.runs import RunsFolder, check_free_space
from pipeline.sampling import config_table, run_seeds, sample_config
from pipeline.worker import Job, collect_run
from workshop.progress import Progress

__all__ = ["Settings", "collect", "main"]

_log = logging.getLogger(__name__)
_AHEAD: Final = 270  # configs are entered into the table so many at a time
_MOST_RESTARTS: Final = 20
_PAIR: Final = (0, 1)

_Pair: TypeAlias = tuple[int, int]  # config_id and seed


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

    def check(self) -> Task:
        """Return the task, refusing every fault at once."""
        faults = []
        if self.minutes is not None and not self.minutes > 0:
            faults.append(f"minutes={self.minutes} is not more than 0")
        faults += [
            f"{name}={value} is not at least 1"
            for name, value in (("runs", self.runs), ("workers", self.workers))
            if value is not None and value < 1
        ]
        if self.backend == "dask" and self.scheduler is None:
            faults.append("backend=dask needs the address of a scheduler: --scheduler tcp://HOST:8786")
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
    by = uuid.uuid4().hex
    given: dict[Job, _Pair] = {}
    others: set[Job] = set()
    n_restarts = 0
    is_done = False
    while not is_done:
        is_done = True
        jobs = _jobs(settings, folder, deadline=deadline, given=given, others=others)
        try:
            for job, line in _run_jobs(settings, jobs, by=by):
                if line is None:
                    del given[job]
                    others.add(job)
                    is_done = False  # another one may take its place
                else:
                    n_added += 1
                    progress.update(n_added, line)
        except TerminatedWorkerError:
            _log.warning("a worker was killed; its run is trained again")
            n_restarts += 1
            if n_restarts > _MOST_RESTARTS:
                raise
            # Other workers may have recorded runs whose lines were lost with the killed one.
            recorded = folder.recorded()
            given = {job: pair for job, pair in given.items() if pair in recorded and folder.is_recorded_by(by, *job)}
            n_added = len(given)
            is_done = False
    progress.close()
    return n_added


def _run_jobs(settings: Settings, jobs: Iterator[Job], *, by: str) -> Iterator[tuple[Job, str | None]]:
    """Yield each job with a line about its run as it ends, None for one that another collector has."""
    call = delayed(
        functools.partial(
            collect_run,
            settings.out.absolute(),
            settings.task,
            by=by,
            device=settings.device,
            data_dir=settings.data_dir and settings.data_dir.absolute(),
            is_process_of_its_own=settings.backend == "loky" and settings.workers > 1,
        )
    )
    if settings.backend == "dask":
        from distributed import Client

        with Client(settings.scheduler), parallel_config(backend="dask", wait_for_workers_timeout=60):  # type: ignore[no-untyped-call]
            yield from Parallel(return_as="generator_unordered", pre_dispatch=2 * settings.workers, batch_size=1)(
                call(*job) for job in jobs
            )
        return
    if settings.workers == 1:
        for function, arguments, named in (call(*job) for job in jobs):
            yield function(*arguments, **named)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    yield from Parallel(
        n_jobs=settings.workers,
        return_as="generator_unordered",
        pre_dispatch=settings.workers,
        batch_size=1,
    )(call(*job) for job in jobs)


def _jobs(
    settings: Settings, folder: RunsFolder, *, deadline: float | None, given: dict[Job, _Pair], others: set[Job]
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
            given[number, seed] = identity, seed
            yield number, seed
        number += 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in {"status", "verify", "merge"}:
        from pipeline import inspect_runs

        return inspect_runs.main(arguments)
    settings = _parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        n_added = collect(settings)
    except KeyboardInterrupt:
        _log.info("stopped; every finished run is recorded, start again to go on")
        return 130
    except JahsError as err:
        _log.error("%s", err)
        return 2
    write_stdout(json.dumps({"task": settings.task, "out": str(settings.out), "runs_added": n_added}))
    return 0


def _parse(arguments: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.collect",
        description="Train numbered configs and record what was measured.",
        epilog="Example: python -m pipeline.collect --task digits --out out/digits --minutes 5 --workers 2. "
        "Also: status FOLDER, verify FOLDER [--retrain K], merge FOLDER OTHER...",
    )
    parser.add_argument("--task", required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of runs, made if it does not exist")
    parser.add_argument("--minutes", type=float, help="start no run after so many (default: no limit)")
    parser.add_argument("--runs", type=int, help="end after so many runs (default: no limit)")
    parser.add_argument("--workers", type=int, default=2, help="processes, one core each (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--backend", choices=("loky", "dask"), default="loky")
    parser.add_argument("--scheduler", help="address of a Dask scheduler, with --backend dask")
    parser.add_argument("--data-dir", type=Path, help="folder of the original images")
    parser.add_argument("--pairs", type=int, default=0, help="train the first so many configs with two seeds at least")
    return Settings(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
