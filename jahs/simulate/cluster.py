"""The event queue: workers, running trials and the clock, which goes from one event to the next.

An event is (time, trial, kind), and the smallest one is next, so simultaneous events follow the order of trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from jahs.errors import InvalidArgument
from jahs.simulate.answers import Job, network_of
from jahs.simulate.settings import Settings
from jahs.simulate.trial import Status, Trial
from jahs.spaces.parameters import is_integer, show


def training_of(trained: Job | Trial) -> tuple[object, ...]:
    """Return the identity of a training, which a later trial may continue: its network and its seed."""
    return (*network_of(trained.config, trained.fidelity), trained.seed)


_STOP: Final = -2
_FAIL: Final = -1  # any other kind of event is the index of the job's epoch that is reached


@dataclass(slots=True)
class _Running:
    number: int
    job: Job
    worker: int
    start: float
    base: float  # runtime that an earlier trial has paid for
    fails: float  # simulated time at which it fails; infinite if it does not
    reported: int = -1  # number of the job's epoch that was reported last; -1 for none


class Cluster:
    """Simulated workers, and a clock that shows simulated seconds."""

    def __init__(self, settings: Settings, *, max_epoch: int) -> None:
        self.now = 0.0
        self.n_started = 0
        self.is_cut = False
        self._settings = settings
        self._budget = math.inf if settings.budget is None else settings.budget
        self._n_trials = math.inf if settings.n_trials is None else settings.n_trials
        self._speeds = [1.0] * settings.workers if settings.speeds is None else list(settings.speeds)
        self._is_synchronous = settings.mode == "synchronous"
        self._is_round_open = True
        self._max_epoch = max_epoch
        self._reached: dict[tuple[object, ...], list[tuple[int, float]]] = {}  # epochs and runtimes, if it resumes
        self._free = list(range(settings.workers))  # a heap: the lowest number gets work first
        self._running: dict[int, _Running] = {}
        self._events: list[tuple[float, int, int]] = []
        self._thinks_until = 0.0

    @property
    def n_running(self) -> int:
        """The number of running trials."""
        return len(self._running)

    @property
    def n_free(self) -> int:
        """The number of trials that may be started now."""
        is_late = max(self.now, self._thinks_until) >= self._budget
        if is_late or self.is_cut or not self._is_round_open:
            return 0
        return int(min(len(self._free), self.n_left))

    @property
    def n_left(self) -> float:
        """The number of trials that may still be started; infinite if only the budget ends the run."""
        return self._n_trials - self.n_started

    def think(self, seconds: float) -> None:
        """Charge the optimiser's thinking time; later submissions start after it."""
        self._thinks_until = max(self.now, self._thinks_until) + seconds

    def start(self, job: Job) -> int:
        """Give a free worker a job and return the number of the trial."""
        assert self.n_free
        number, worker = self.n_started, heappop(self._free)
        self.n_started += 1
        reached, base = self._checkpoint(job)
        trial = _Running(number, job, worker, max(self.now, self._thinks_until), base, math.inf)
        share = self._settings.fails_at(number)
        if share is not None:
            trial.fails = trial.start + share * (self._time_of(trial, -1) - trial.start)
        self._running[number] = trial
        first = next(k for k, epoch in enumerate(job.epochs) if epoch > reached)
        self._schedule(trial, first)
        return number

    def stop(self, number: int) -> None:
        """Stop a running trial at this moment; InvalidArgument if it does not exist or has ended."""
        if not is_integer(number):
            raise InvalidArgument(f"trial {show(number)} cannot be stopped: it is not an integer; give its number")
        trial = self._running.get(number)
        if trial is None:
            reason = "has ended" if 0 <= number < self.n_started else "was never started"
            raise InvalidArgument(f"trial {number} cannot be stopped: it {reason}")
        heappush(self._events, (max(self.now, trial.start), number, _STOP))

    def advance(self) -> list[Trial]:
        """Go to the next event and return what happens at that time; nothing if nothing runs or the budget is spent.

        A trial of status "running" has reached an epoch that is reported. Other events at that time are left for the
        next call, so that the trial can be stopped before them: its next epochs may take no time at all.
        """
        trials: list[Trial] = []
        while self._events and (not trials or self._events[0][0] == self.now):
            time, number, kind = self._events[0]
            if time > self._budget:
                break
            heappop(self._events)
            running = self._running.get(number)
            if running is None:
                continue  # it was stopped
            self.now = time
            trials.append(self._handle(running, kind))
            if trials[-1].status == "running":
                break
        self._is_round_open = not (self._is_synchronous and self._running)
        return trials

    def cut(self) -> list[Trial]:
        """End all trials that run, and return them as unfinished."""
        if self._running or self._thinks_until >= self._budget:
            self.now = self._budget
        self.is_cut = True
        return [self._end(self._running[number], "unfinished") for number in sorted(self._running)]

    def why_over(self) -> str:
        """Return the reason for the end of the run: "budget", "n_trials", or "optimizer", which proposed no more."""
        if max(self.now, self._thinks_until) >= self._budget:
            return "budget"
        return "n_trials" if self.n_started >= self._n_trials else "optimizer"

    def ending(self, *, with_thinking: bool) -> dict[str, object]:
        """Return the last line of a log; `with_thinking`: it says if the optimiser thinks until the budget is spent."""
        ending = {"ended": self.why_over(), "clock": self.now, "n_trials": self.n_started}
        return ending | ({"thinking": True} if with_thinking and self._thinks_until >= self._budget else {})

    def _checkpoint(self, job: Job) -> tuple[int, float]:
        """Return the latest epoch reached before the job's last epoch, and its runtime; (0, 0.0) without one.

        Two trainings may start from one checkpoint.
        """
        reached = self._reached.get(training_of(job), ()) if self._reached else ()
        return max((each for each in reached if each[0] < job.epochs[-1]), default=(0, 0.0))

    def _handle(self, running: _Running, kind: int) -> Trial:
        if kind == _STOP:
            return self._end(running, "stopped")
        if kind == _FAIL:
            return self._end(running, "failed")
        running.reported = kind
        is_last = (epoch := running.job.epochs[kind]) == self._max_epoch
        if self._settings.continuation == "resume" and not is_last:
            reached = self._reached.setdefault(training_of(running.job), [])
            reached.append((epoch, running.job.answers[kind]["runtime"]))
        if kind == len(running.job.epochs) - 1:
            return self._end(running, "finished")
        self._schedule(running, kind + 1)
        return self._trial(running, "running")

    def _time_of(self, running: _Running, at: int) -> float:
        """Return the time at which the job's epoch number `at` is reached.

        A published runtime may fall with the epoch; that epoch then takes no time: the clock never runs backwards.
        """
        work = running.job.answers[at]["runtime"] - running.base
        return max(running.start + work / self._speeds[running.worker], running.start, self.now)

    def _schedule(self, running: _Running, at: int) -> None:
        time = self._time_of(running, at)
        if running.fails < time:
            heappush(self._events, (running.fails, running.number, _FAIL))
        else:
            heappush(self._events, (time, running.number, at))

    def _end(self, running: _Running, status: Status) -> Trial:
        del self._running[running.number]
        heappush(self._free, running.worker)
        return self._trial(running, status)

    def _trial(self, running: _Running, status: Status) -> Trial:
        job, at = running.job, running.reported
        return Trial(
            trial=running.number,
            config=job.config,
            fidelity=job.fidelity if at in (-1, len(job.epochs) - 1) else {**job.fidelity, "epoch": job.epochs[at]},
            seed=job.seed,
            metrics=job.answers[at] if at >= 0 else {},
            start=running.start,
            end=self.now,
            worker=running.worker,
            status=status,
            tag=job.tag,
        )
