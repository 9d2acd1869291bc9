"""Logs of runs, made in separate processes, each of which can be ended when it exceeds its limit, or in this one."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Final

from jahs.comparison.runs import Factory, Run, check_finished, remove_parts, run
from jahs.errors import InvalidArgument, JahsError, OptimizerFailed

_ROOT: Final = str(Path(__file__).parents[2])
_START: Final = (
    "import sys; sys.path = [*filter(None, sys.path), {root!r}]; "  # not the working directory
    "from jahs.comparison.processes import answer_runs; answer_runs({limit_s!r})"
)


def run_all(runs: Sequence[Run], *, workers: int, limit_s: float) -> Iterator[Run]:
    """Make the logs of all runs, the first ones first; yield each run when its log is complete.

    A run that fails, or takes more than `limit_s` seconds, stops the others with OptimizerFailed.
    """
    if not runs:
        return
    n_processes = min(workers, len(runs))
    processes: list[subprocess.Popen[str]] = []
    idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()

    def make(own: Run) -> Run:
        process = idle.get()
        try:
            _ask(process, own, limit_s)
        finally:
            idle.put(process)
        return own

    pool = ThreadPoolExecutor(n_processes)
    try:
        for _ in range(n_processes):
            processes.append(_start(limit_s))
            idle.put(processes[-1])
        for done in as_completed([pool.submit(make, each) for each in runs]):
            yield done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        pool.shutdown()
        for process in processes:
            with contextlib.suppress(OSError), process:  # closes the pipes, even with unread data
                pass
        for each in runs:
            remove_parts(each)


def make_logs(
    in_processes: Sequence[Run],
    here: Sequence[tuple[Run, Factory]],
    *,
    workers: int,
    limit_s: float,
    progress: Callable[[int, int], None] | None,
) -> Iterator[Path]:
    """Make the logs that do not exist, and yield each; first one of each optimiser, so that a fault shows early."""
    waiting = [each for each in in_processes if not check_finished(each)]
    waiting_here = [(each, factory) for each, factory in here if not check_finished(each)]
    n_all = len(waiting) + len(waiting_here)
    show_progress = progress or (lambda _n_done, _n_all: None)
    for n_done, (own, factory) in enumerate(waiting_here, 1):
        try:
            with _alarm(limit_s):
                run(own, factory)
        except (JahsError, TimeoutError) as err:
            raise OptimizerFailed(f"{own.name}, seed {own.seed}: {err}") from err
        show_progress(n_done, n_all)
        yield Path(own.log)
    first = [each for each in waiting if each.code is not None and each.seed == 0]
    rest = [each for each in waiting if each not in first]
    in_order = chain.from_iterable(run_all(runs, workers=workers, limit_s=limit_s) for runs in (first, rest))
    for n_done, own in enumerate(in_order, len(waiting_here) + 1):
        show_progress(n_done, n_all)
        yield Path(own.log)


@contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    """Raise TimeoutError after some seconds, in the main thread of systems that have alarms."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"did not end within {limit_s:g} s; limit_s changes the limit")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _start(limit_s: float) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  # this Python, with our own code
        [sys.executable, "-c", _START.format(root=_ROOT, limit_s=limit_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={"OMP_NUM_THREADS": "1", **os.environ},
        start_new_session=True,  # Ctrl-C is for the command, which ends its processes
    )


def _ask(process: subprocess.Popen[str], own: Run, limit_s: float) -> None:
    """Let a process make a log; OptimizerFailed or InvalidArgument if it fails."""
    assert process.stdin is not None
    assert process.stdout is not None
    begin = time.monotonic()
    answer = ""
    with contextlib.suppress(OSError):  # the process has ended
        process.stdin.write(json.dumps(asdict(own)) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    who = f"{own.name}, seed {own.seed}"
    if not answer and time.monotonic() - begin >= limit_s:
        raise OptimizerFailed(f"{who}: did not end within {limit_s:g} s; --limit-s changes the limit")
    if not answer:
        raise OptimizerFailed(f"{who}: its process ended without a result")
    said = json.loads(answer)
    if said["fault"] is not None:
        raise InvalidArgument(said["fault"]) if said["is_mistake"] else OptimizerFailed(f"{who}: {said['fault']}")


def answer_runs(limit_s: float) -> None:
    """Make logs in a process of `run_all`: runs come in on stdin, one JSON line each, and each is answered with a line.

    An optimiser's own prints go to stderr. A run that exceeds the limit ends the process, which shows where it was.
    """
    asked = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    for line in asked:
        faulthandler.dump_traceback_later(limit_s, exit=True)
        answer: dict[str, object] = {"fault": None}
        try:
            run(Run(**json.loads(line)))
        except (JahsError, OSError) as err:
            answer = {"fault": str(err), "is_mistake": isinstance(err, InvalidArgument)}
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.flush()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
