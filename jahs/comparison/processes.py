"""Make the logs of runs in this process or in others, which are ended when they exceed their time limit."""

from __future__ import annotations

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
from contextlib import contextmanager, suppress
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


def run_all(stages: Sequence[Sequence[Run]], *, workers: int, limit_s: float) -> Iterator[Run]:
    """Make the logs of all runs, stage after stage, in the same processes; yield each run when its log is complete.

    A run that fails, or takes more than `limit_s` seconds, stops the others with OptimizerFailed.
    """
    processes: list[subprocess.Popen[str]] = []
    idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()

    def make(job: Run) -> Run:
        process = idle.get()
        try:
            _ask(process, job, limit_s)
        finally:
            idle.put(process)
        return job

    pool = ThreadPoolExecutor(workers)
    try:
        for runs in stages:
            while len(processes) < min(workers, len(runs)):
                processes.append(_start(limit_s))
                idle.put(processes[-1])
            for future in as_completed([pool.submit(make, each) for each in runs]):
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            _kill(process)
        pool.shutdown()
        for process in processes:
            with suppress(OSError), process:  # closes the pipes, even with unread data
                pass
        for each in chain.from_iterable(stages):
            remove_parts(each)


def make_logs(
    in_processes: Sequence[Run],
    here: Sequence[tuple[Run, Factory]],
    *,
    workers: int,
    limit_s: float,
    progress: Callable[[int, int], None] | None,
) -> Iterator[Path]:
    """Make and yield the missing logs; first one of each optimiser, so that a faulty optimiser shows early."""
    pending = [each for each in in_processes if not check_finished(each)]
    pending_here = [(each, factory) for each, factory in here if not check_finished(each, is_object=True)]
    n_all = len(pending) + len(pending_here)
    show_progress = progress or (lambda _n_done, _n_all: None)
    for n_done, (job, factory) in enumerate(pending_here, 1):
        try:
            with _alarm(limit_s):
                run(job, factory)
        except (JahsError, TimeoutError) as err:
            raise OptimizerFailed(f"{job.name}, seed {job.seed}: {err}") from err
        finally:
            remove_parts(job)
        show_progress(n_done, n_all)
        yield Path(job.log)
    first = [each for each in pending if each.code is not None and each.seed == 0]
    rest = [each for each in pending if each not in first]
    for n_done, job in enumerate(run_all([first, rest], workers=workers, limit_s=limit_s), len(pending_here) + 1):
        show_progress(n_done, n_all)
        yield Path(job.log)


@contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    """Raise TimeoutError after `limit_s` seconds, in the main thread of systems that have alarms."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(_late(limit_s))

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _late(limit_s: float) -> str:
    return f"did not end within {limit_s:g} s; limit_s (in a terminal: --limit-s) changes the limit"


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


def _ask(process: subprocess.Popen[str], job: Run, limit_s: float) -> None:
    """Let a process make a log; OptimizerFailed or InvalidArgument if it fails."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()  # it is ready: a new process takes seconds to start
    begin = time.monotonic()
    answer, is_answered = "", threading.Event()
    threading.Thread(target=_watch, args=(process, is_answered, begin + limit_s + 1), daemon=True).start()
    with suppress(OSError):  # the process has ended
        process.stdin.write(json.dumps(asdict(job)) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    is_answered.set()
    label = f"{job.name}, seed {job.seed}"
    if not answer and time.monotonic() - begin >= limit_s:
        raise OptimizerFailed(f"{label}: {_late(limit_s)}")
    if not answer:
        raise OptimizerFailed(f"{label}: its process ended without a result")
    reply = json.loads(answer)
    if reply["fault"] is not None:
        raise InvalidArgument(reply["fault"]) if reply["is_mistake"] else OptimizerFailed(f"{label}: {reply['fault']}")


def _watch(process: subprocess.Popen[str], is_answered: threading.Event, deadline: float) -> None:
    """Kill a process and its children, which may hold its pipes, if it has ended without an answer or is late."""
    while not is_answered.wait(0.1):
        if process.poll() is not None or time.monotonic() > deadline:
            _kill(process)
            return


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and, where systems have groups of processes, its children."""
    with suppress(OSError):  # all have ended
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def answer_runs(limit_s: float) -> None:
    """Make logs in a process of `run_all`: read a run per line of JSON on stdin, and answer each with a line.

    An empty line says that it is ready for a run. An optimiser's own prints go to stderr. A run that exceeds the limit
    ends the process with a traceback.
    """
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null_device = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_device, 0)
    os.dup2(2, 1)

    def write(line: str) -> None:
        try:
            answers.write(line + "\n")
            answers.flush()
        except BrokenPipeError:  # the command was killed
            os._exit(1)

    write("")
    for line in requests:
        faulthandler.dump_traceback_later(limit_s, exit=True)
        answer: dict[str, object] = {"fault": None}
        try:
            run(Run(**json.loads(line)))
        except (JahsError, OSError) as err:
            answer = {"fault": str(err), "is_mistake": isinstance(err, InvalidArgument)}
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.flush()
        write(json.dumps(answer))
        write("")
