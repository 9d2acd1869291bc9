"""The conversation with an optimiser: ask, tell, measure its time, and name it in errors."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from jahs.errors import JahsError, OptimizerFailed
from jahs.simulate.answers import Answers, Job
from jahs.simulate.cluster import Cluster
from jahs.simulate.log import json_fault
from jahs.simulate.settings import Thinking
from jahs.simulate.trial import Proposal, Trial
from jahs.spaces.parameters import is_integer, show
from jahs.tasks.metrics import is_hidden

T = TypeVar("T")


class Optimizer(Protocol):
    """An optimiser that a simulation can drive. It may also have:

    - `name: str` and `settings: Mapping[str, object]`, for the log's header;
    - `n_ahead: int`, how many proposals it can make at a time without knowing their results: where thinking is
      free, they are then queried in one batch, which changes no result and takes much less time;
    - `should_stop(report: Trial) -> bool`, asked at every epoch that a proposal names in `reports`.
    """

    def ask(self, n: int) -> Sequence[Proposal | Mapping[str, object]]:
        """Return up to `n` proposals. An empty list: wait for another trial to end, or stop if no trial runs."""

    def tell(self, trial: Trial) -> None:
        """Receive a trial that has ended, without metrics of the test images."""


Callback: TypeAlias = Callable[[Sequence[Trial]], "Proposal | Mapping[str, object] | None"]
"""An optimiser in one function: gets the trials that have ended and returns the next proposal, or None to stop."""


class _CallbackOptimizer:
    def __init__(self, callback: Callback) -> None:
        self.name = getattr(callback, "__name__", type(callback).__name__)
        self._callback = callback
        self._trials: list[Trial] = []

    def ask(self, n: int) -> list[Proposal | Mapping[str, object]]:
        proposals: list[Proposal | Mapping[str, object]] = []
        while len(proposals) < n and (proposal := self._callback(self._trials)) is not None:
            proposals.append(proposal)
        return proposals

    def tell(self, trial: Trial) -> None:
        self._trials.append(trial)


def _read(optimizer: object, name: str, default: object) -> Any:  # Any: as the optimiser declares it
    """Return an optional attribute; OptimizerFailed if it is a property that raises."""
    try:
        return getattr(optimizer, name, default)
    except Exception as err:
        raise OptimizerFailed(f"{type(optimizer).__name__}: {name} raised {type(err).__name__}: {err}") from err


class Driver:
    """Drives one optimiser, with a name and settings for the log's header, through one run."""

    def __init__(self, optimizer: Optimizer | Callback, answers: Answers, cluster: Cluster, thinking: Thinking) -> None:
        is_optimizer = hasattr(optimizer, "ask") and hasattr(optimizer, "tell")
        if isinstance(optimizer, type):
            raise OptimizerFailed(f"{optimizer.__name__} is a class; give an instance of it")
        if not is_optimizer and not callable(optimizer):
            raise OptimizerFailed(f"{type(optimizer).__name__} has no ask and tell, and is not a function")
        self._optimizer: Final[Optimizer] = optimizer if is_optimizer else _CallbackOptimizer(optimizer)  # type: ignore[assignment,arg-type]  # just checked
        self.name: Final = str(_read(self._optimizer, "name", type(self._optimizer).__name__))
        settings = _read(self._optimizer, "settings", {})
        if fault := json_fault("settings", settings):
            raise OptimizerFailed(f"{self.name}: {fault}")
        self.settings: Final[Mapping[str, object]] = dict(settings)
        objectives = self.settings.get("objectives", ())
        self.objectives: Final = tuple(map(str, objectives)) if isinstance(objectives, list | tuple) else ()
        self._answers = answers
        self._cluster = cluster
        self._thinking = thinking
        self._waiting: deque[Job | JahsError] = deque()

    def fill(self) -> None:
        """Give a job to every free worker, as long as the optimiser proposes any."""
        cluster = self._cluster
        n_free = cluster.n_free
        if n_free > len(self._waiting):
            n = n_free - len(self._waiting)
            if self._thinking == "free":  # otherwise every ask costs time, and fewer of them would change results
                # Ask ahead for at most as many as have started, so that a short run queries few trials in vain.
                n_left = cluster.n_left - len(self._waiting)
                n = max(n, int(min(self._n_ahead(), cluster.n_started, n_left)))
            proposals = self._call(f"ask({n})", cluster.n_started, lambda: self._proposals(n))
            if proposals is None:
                raise self._failure(f"ask({n}) returned None, not a list; return [] to wait", cluster.n_started)
            if not isinstance(proposals, list):
                raise self._failure(f"ask({n}) returned one proposal, not a list; return [it]", cluster.n_started)
            if len(proposals) > n:
                raise self._failure(f"ask({n}) returned {len(proposals)} proposals", cluster.n_started)
            if not isinstance(self._thinking, str):
                cluster.think(self._thinking)
            self._waiting.extend(self._answers.answer(proposals))
        while self._waiting and cluster.n_free:
            job = self._waiting.popleft()
            if not isinstance(job, Job):
                raise self._failure(f"its proposal is invalid:\n{job}", cluster.n_started) from job
            cluster.start(job)

    def _n_ahead(self) -> int:
        n_ahead = _read(self._optimizer, "n_ahead", 1)
        if not is_integer(n_ahead):
            what = f"n_ahead={show(n_ahead)} is not an integer; give the number of proposals that it makes at a time"
            raise self._failure(what, self._cluster.n_started)
        return int(n_ahead)

    def _proposals(self, n: int) -> list[Proposal | Mapping[str, object]] | Proposal | Mapping[str, object] | None:
        proposals: object = self._optimizer.ask(n)
        return proposals if proposals is None or isinstance(proposals, Proposal | Mapping) else list(proposals)  # type: ignore[call-overload]  # `answer` checks

    def show(self, trial: Trial) -> None:
        """Tell the optimiser of a trial that has ended, or ask it whether one that is running should be stopped."""
        if trial.status != "running":
            self._call("tell", trial.trial, lambda: self._optimizer.tell(trial))
            return
        should_stop = _read(self._optimizer, "should_stop", None)
        if should_stop is not None and self._call("should_stop", trial.trial, lambda: bool(should_stop(trial))):
            self._cluster.stop(trial.trial)

    def _call(self, what: str, trial: int, function: Callable[[], T]) -> T:
        begin = time.perf_counter()
        try:
            result = function()
        except Exception as err:
            raise self._failure(f"{what} raised {type(err).__name__}: {err}{_where(err)}", trial) from err
        if self._thinking == "measured":
            self._cluster.think(time.perf_counter() - begin)
        return result

    def _failure(self, what: str, trial: int) -> OptimizerFailed:
        return OptimizerFailed(f"{self.name}, trial {trial}, at {self._cluster.now:.6g} simulated seconds: {what}")


def _where(err: Exception) -> str:
    """Return where an optimiser's own code failed, as file and line, and a hint if it read a hidden metric."""
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(err.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] != "jahs"
    ]
    own = [each for each in frames if each[0] == frames[0][0]]
    name = err.args[0] if isinstance(err, KeyError) and err.args else None
    hint = "; optimisers do not see metrics of the test images" if isinstance(name, str) and is_hidden(name) else ""
    return (f" ({own[-1][0]}, line {own[-1][1]})" if own else "") + hint
