"""Logs of runs: in processes of their own, of which each can be ended when it exceeds its limit, or in this one."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import IO, Final

import jahs
from jahs.comparison.factories import Factory
from jahs.comparison.runs import Run, check_finished, remove_parts, run
from jahs.errors import InvalidArgument, JahsError, OptimizerFailed

__all__ = ["make_logs", "run_all"]

_ROOT: Final = str(Path(jahs.__file__).parents[1])
_START: Final = (
    "import sys; sys.path = [*filter(None, sys.path), {root!r}]; "  # not the working directory
    "from jahs.comparison.worker import main; main({limit_s!r})"
)


def run_all(runs: Sequence[Run], *, workers: int, limit_s: float) -> Iterator[Run]:
    """Make the logs of all runs, the first ones first; yield each run when its log is complete.

    A run that fails, or takes more than `limit_s` seconds, stops the others with OptimizerFailed.
    """
    todo: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
    for each in [*runs, *[None] * workers]:
        todo.put(each)
    done: queue.SimpleQueue[tuple[Run, Exception | None]] = queue.SimpleQueue()
    lines = [_Line(limit_s) for _ in range(min(workers, len(runs)))]
    threads = [threading.Thread(target=line.serve, args=(todo, done), daemon=True) for line in lines]
    try:
        for thread in threads:
            thread.start()
        for _ in runs:
            own, fault = done.get()
            if fault is not None:
                raise fault
            yield own
    finally:
        for line in lines:
            line.close()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for line in lines:
            line.release()
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
    in_order = chain.from_iterable(run_all(runs, workers=workers, limit_s=limit_s) for runs in (first, rest) if runs)
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


class _Line:
    """One process after the other, and what is written to it and read from it."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._process: subprocess.Popen[str] | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def serve(self, todo: queue.SimpleQueue[Run | None], done: queue.SimpleQueue[tuple[Run, Exception | None]]) -> None:
        """Run what is to do until there is no more, or a run fails."""
        while (own := todo.get()) is not None:
            fault = self._run(own)
            done.put((own, fault))
            if fault is not None:
                return

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def release(self) -> None:
        """Close the pipes of an ended process."""
        for pipe in (self._process.stdin, self._process.stdout) if self._process else ():
            with contextlib.suppress(OSError):  # what the process did not read
                pipe.close()  # type: ignore[union-attr]  # both are pipes

    def _run(self, own: Run) -> Exception | None:
        begin = time.monotonic()
        try:
            there, back = self._pipes()
            there.write(own.to_json() + "\n")
            there.flush()
            answer = back.readline()
        except OSError:
            answer = ""
        who = f"{own.name}, seed {own.seed}"
        if not answer:
            if time.monotonic() - begin >= self._limit_s:
                return OptimizerFailed(f"{who}: did not end within {self._limit_s:g} s; --limit-s changes the limit")
            return OptimizerFailed(f"{who}: its process ended without a result")
        said = json.loads(answer)
        if said["fault"] is None:
            return None
        return InvalidArgument(said["fault"]) if said["is_mistake"] else OptimizerFailed(f"{who}: {said['fault']}")

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        with self._lock:
            if self._is_closed:
                raise OSError("closed")
            if self._process is None:
                self._process = subprocess.Popen(  # noqa: S603  # this Python, with our own code
                    [sys.executable, "-c", _START.format(root=_ROOT, limit_s=self._limit_s)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    env={"OMP_NUM_THREADS": "1", **os.environ},
                    start_new_session=True,  # Ctrl-C is for the command, which ends its processes
                )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            return self._process.stdin, self._process.stdout
