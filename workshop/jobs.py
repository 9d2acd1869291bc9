"""Distribute jobs over processes of this machine (loky), or over the workers of a Dask cluster, as they come and go.

A job whose worker is killed runs again, so jobs must be idempotent.
"""

from __future__ import annotations

import argparse
import functools
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar
from urllib.parse import urlsplit

from jahs.errors import JahsError, refuse
from workshop.command import add_workers

if TYPE_CHECKING:
    from workshop.cluster import Cluster

_log = logging.getLogger(__name__)
_MOST_LOST: Final = 20
_TICK_S: Final = 1.0
_LOKYS_THREAD: Final = "ExecutorManagerThread"
_ENVIRONMENT: Final = {"PYTHONHASHSEED": "0"}
"""Makes tools that iterate over sets of strings, such as NePS, give the same results in every worker."""
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Each is set to 1: XGBoost with two threads on two shared cores was slower than with one."""

J = TypeVar("J")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The workers that do jobs."""

    workers: int = 1  # processes of this machine, one core each; 1 is this process
    backend: Literal["loky", "dask"] = "loky"  # "loky" for this machine, "dask" for a cluster
    scheduler: str | None = None

    def faults(self) -> list[str]:
        """Return the faults, a line each."""
        faults = []
        if type(self.workers) is not int or self.workers < 1:
            faults.append(f"workers={self.workers!r} is not at least 1; give a number of processes")
        if self.backend not in ("loky", "dask"):
            faults.append(f"backend={self.backend!r} must be loky, for this machine, or dask, for a cluster")
        if self.backend == "dask" and self.scheduler is None:
            faults.append("backend=dask needs the address of a scheduler: --scheduler tcp://HOST:8786")
        if self.backend == "dask" and self.scheduler is not None and not _has_port(self.scheduler):
            faults.append(f"scheduler={self.scheduler} has no valid port; give an address such as tcp://HOST:8786")
        if self.backend != "dask" and self.scheduler is not None:
            faults.append(f"scheduler={self.scheduler} is for a cluster: --backend dask")
        return faults


def _has_port(address: str) -> bool:
    try:
        return bool(urlsplit(address if "://" in address else f"//{address}").port)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[J, R]):
    """A job that is done."""

    job: J
    result: R
    spent_s: float  # seconds of work so far, measured by the workers, divided by the present number of workers


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say where jobs are done: --workers, --backend and --scheduler."""
    add_workers(parser)
    parser.add_argument(
        "--backend",
        choices=("loky", "dask"),
        default="loky",
        help="this machine, or a cluster, where --workers has no effect",
    )
    parser.add_argument("--scheduler", help="address of a Dask scheduler, with --backend dask")


def run_jobs(function: Callable[[J], R], jobs: Iterable[J], *, where: Where) -> Iterator[Done[J, R]]:
    """Yield jobs as they are done. They are drawn from `jobs` when a worker is free.

    Raises:
        JahsError: no scheduler, or more than 20 workers were lost; and what `function` raises.
    """
    call = functools.partial(_call_timed, function)
    if where.backend == "loky" and where.workers == 1:
        spent_s = 0.0
        for job in jobs:
            result, seconds = call(job)
            spent_s += seconds
            yield Done(job=job, result=result, spent_s=spent_s)
        return
    pool: _Processes | Cluster
    if where.backend == "dask":
        from workshop.cluster import Cluster

        assert where.scheduler is not None
        pool = Cluster(where.scheduler)
    else:
        pool = _Processes(where.workers)
    with closing(pool):
        yield from _run(pool, call, iter(jobs))


def in_processes(
    function: Callable[..., R],
    calls: Sequence[Mapping[str, Any]],  # Any: arguments of the function
    *,
    workers: int,
) -> list[R]:
    """Return the result of `function` for each of the calls' arguments, in their order; one worker is this process.

    The answers do not depend on the number of workers. Anything that a call raises is raised here.
    """
    refuse(*Where(workers=workers).faults())
    where = Where(workers=max(1, min(workers, len(calls))))
    call = functools.partial(_call_numbered, function)
    results = {done.job[0]: done.result for done in run_jobs(call, enumerate(calls), where=where)}
    return [results[number] for number in range(len(calls))]


def _call_numbered(function: Callable[..., R], job: tuple[int, Mapping[str, Any]]) -> R:  # Any: arguments
    return function(**job[1])


def _call_timed(function: Callable[[J], R], job: J) -> tuple[R, float]:
    started = time.monotonic()
    return function(job), time.monotonic() - started


def _run(pool: _Processes | Cluster, call: Callable[[J], tuple[R, float]], jobs: Iterator[J]) -> Iterator[Done[J, R]]:
    """Keep every worker busy until all jobs are done; jobs of lost workers run again."""
    finished: SimpleQueue[Any] = SimpleQueue()  # Any: futures
    running: dict[Any, tuple[J, int]] = {}
    retries: deque[J] = deque()
    n_lost, total_s = 0, 0.0
    while True:
        for job in _next_jobs(retries, jobs, at_most=pool.ahead * pool.n_workers() - len(running)):
            try:
                future = pool.submit(call, job)
            except pool.losses as err:  # a worker was lost, and its job has not ended yet
                retries.append(job)
                n_lost = _renew(pool, n_lost, err)
                continue
            running[future] = job, n_lost
            future.add_done_callback(finished.put)
        if not running and not retries:
            return
        try:
            future = finished.get(timeout=_TICK_S)
        except Empty:
            continue  # new workers may have joined
        job, n_lost_at_start = running.pop(future)
        try:
            result, seconds = future.result()
        except pool.losses as err:
            retries.append(job)
            if n_lost_at_start == n_lost:  # one loss fails several jobs
                n_lost = _renew(pool, n_lost, err)
            continue
        total_s += seconds
        yield Done(job=job, result=result, spent_s=total_s / max(pool.n_workers(), 1))


def _renew(pool: _Processes | Cluster, n_lost: int, err: BaseException) -> int:
    """Renew the workers and return the number of losses so far."""
    n_lost += 1
    reason = f"{type(err).__name__}: {err}".splitlines()[0]
    _log.warning("a worker or its scheduler was lost (%s); its job is done again", reason)
    if n_lost > _MOST_LOST:
        raise JahsError(
            f"{n_lost} workers were lost ({reason}); finished jobs are kept: start again with fewer workers or more "
            "memory"
        ) from err
    pool.renew()
    return n_lost


def _next_jobs(retries: deque[J], jobs: Iterator[J], *, at_most: int) -> Iterator[J]:
    for _ in range(at_most):
        if retries:
            yield retries.popleft()
        else:
            yield from islice(jobs, 1)


class _Processes:
    """Processes of this machine, one core each; Ctrl-C reaches this process alone, which stops them."""

    ahead = 1  # jobs submitted per worker: of more, some would start long after a caller's deadline

    def __init__(self, n_workers: int) -> None:
        from joblib.externals.loky import (  # type: ignore[import-untyped]  # ships no types
            BrokenProcessPool,
            ProcessPoolExecutor,
        )

        self.losses: tuple[type[BaseException], ...] = (BrokenProcessPool,)  # a worker was lost, no job has failed
        self._n_workers = n_workers
        self._make = functools.partial(
            ProcessPoolExecutor,
            n_workers,
            initializer=_ignore_ctrl_c,
            env=_ENVIRONMENT | {name: os.environ.get(name, "1") for name in _THREADS},
        )
        self._executor = self._make()

    def n_workers(self) -> int:
        return self._n_workers

    def submit(self, call: Callable[[J], R], job: J) -> Any:  # Any: loky ships no types
        return self._executor.submit(call, job)

    def renew(self) -> None:
        self.close()
        self._executor = self._make()

    def close(self) -> None:
        """Stop the workers; hide the errors of loky's own thread, which sees its workers killed."""
        hook = threading.excepthook

        def hook_without_loky(args: threading.ExceptHookArgs) -> None:
            if args.thread is None or args.thread.name != _LOKYS_THREAD:
                hook(args)

        threading.excepthook = hook_without_loky
        try:
            self._executor.shutdown(wait=True, kill_workers=True)
        finally:
            threading.excepthook = hook


def _ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
