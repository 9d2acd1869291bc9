"""A simulated cluster that trains an optimiser's proposals in simulated time.

Time is simulated seconds and goes from one event to the next: a trial ends, fails, or reaches an epoch that the
optimiser wants to be shown. Everything is a function of the seeds: same simulation, same log, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from jahs.errors import InvalidArgument, OptimizerFailed
from jahs.queries.views import Queryable, View
from jahs.release.find import full_path
from jahs.simulate.answers import Answers, Job
from jahs.simulate.cluster import Cluster
from jahs.simulate.driver import Callback, Driver, Optimizer
from jahs.simulate.log import LogWriter, describe_view, json_fault
from jahs.simulate.settings import MOST_THINKING, Settings, Thinking, is_thinking_time
from jahs.simulate.trial import Proposal, Trial
from jahs.spaces.parameters import show
from jahs.tasks.metrics import is_hidden


class Simulation:
    """Simulated workers that spend a budget on an optimiser's proposals, for one run.

    Either `run` drives an optimiser, or you drive: `submit` while there are free workers, `wait` for the next event.

    Args:
        oracle: a benchmark or a view.
        workers: number of trials that run at once.
        budget: simulated seconds, after which running trials are cut; None: `n_trials` ends the run.
        n_trials: maximum number of trials; None: as many as fit into the budget.
        seed: seed of the failures of trials; the optimiser has its own.
        mode: "asynchronous": a worker that is free gets work at once; "synchronous": when all are free.
        continuation: "resume": a config that was trained before, as the same network with the same seed, pays only for
            the epochs that it has not had; "scratch": every trial pays for all its epochs.
        speeds: speed of each worker; 2.0 takes half the time.
        failure_rate: chance that a trial fails, after a uniformly random share of its time.
        thinking: the optimiser's own time: "free", "measured" on this machine's clock, or seconds for each ask. Where
            you drive, it is "free", and `think` charges that time.
        evaluation_seed: seed of the training noise of proposals without a seed, see `Proposal`; None: the mean.
        metrics: metrics to query and log, runtime always; None: all. Optimisers never see metrics of the test images.
        log: file to write; a log that was cut short is resumed.
        facts: more entries for the log's header, such as the optimiser's name where you drive.

    Raises:
        InvalidArgument: settings are out of their range, all at once; or the oracle is neither a benchmark nor a view,
            or the log's folder does not exist.
        UnknownName: a metric does not exist.

    The first `run`, `submit` or `wait` opens the log: ProtocolMismatch if it belongs to another run. If it can no
    longer be written, the next line raises as `jahs.simulate.log.LogWriter` does.
    """

    def __init__(
        self,
        oracle: Queryable,
        workers: int = 4,
        *,
        budget: float | None = None,
        n_trials: int | None = None,
        seed: int = 0,
        mode: Literal["asynchronous", "synchronous"] = "asynchronous",
        continuation: Literal["resume", "scratch"] = "resume",
        speeds: Sequence[float] | None = None,
        failure_rate: float = 0.0,
        thinking: Thinking = "free",
        evaluation_seed: int | None = None,
        metrics: Sequence[str] | None = None,
        log: Path | str | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        self.settings: Final = Settings(
            workers=workers,
            budget=budget,
            n_trials=n_trials,
            seed=seed,
            mode=mode,
            continuation=continuation,
            speeds=speeds,
            failure_rate=failure_rate,
            thinking=thinking,
            evaluation_seed=evaluation_seed,
        )
        self._view = oracle if isinstance(oracle, View) else View(oracle)
        self._log = None if log is None else full_path(log)
        if self._log is not None and not self._log.parent.is_dir():
            raise InvalidArgument(f"log={log}: the folder {self._log.parent} does not exist; make it first")
        if self._log is not None and thinking == "measured" and self._log.exists() and self._log.stat().st_size:
            raise InvalidArgument(
                f"{log} exists, and a run whose thinking is measured cannot be resumed; give a new path"
            )
        self._answers = Answers(self._view, metrics=metrics, evaluation_seed=self.settings.evaluation_seed)
        self._hidden = frozenset(filter(is_hidden, self._answers.metrics))
        self._cluster = Cluster(self.settings, max_epoch=oracle.max_epoch)
        self._described = describe_view(self._view)
        self._facts = self._read_facts({} if facts is None else facts)
        self._writer: LogWriter | None = None
        self._state: Literal["new", "open", "run", "over"] = "new"
        self._submitted: list[Trial] = []

    def _read_facts(self, facts: Mapping[str, object]) -> dict[str, object]:
        """Return the caller's facts for the header of the log.

        Values that JSON cannot represent are refused, and so are keys that the simulation writes itself.
        """
        if fault := json_fault("facts", facts):
            raise InvalidArgument(fault)
        own = {"format", "task", "release_version", "refit", "model", "view", "metrics", *self.settings.facts()}
        own |= {key for key, value in self._described.items() if value is not None}
        if taken := [key for key in facts if key in own]:
            raise InvalidArgument(f"facts must not have {', '.join(taken)}, which the log's header has already")
        return dict(facts)

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return self._cluster.now

    @property
    def n_free(self) -> int:
        """The number of trials that may be started now; 0 once the simulation is over."""
        return 0 if self._state == "over" else self._cluster.n_free

    @property
    def ended(self) -> str | None:
        """Why the simulation is over: "budget", "n_trials" or "optimizer", as its log says; None until then."""
        return self._cluster.why_over() if self._cluster.is_cut else None

    def run(self, optimizer: Optimizer | Callback) -> list[Trial]:
        """Let an optimiser spend the budget; return the trials as they ended, with all their metrics.

        Args:
            optimizer: has `ask` and `tell`, or is a function that gets the trials so far and returns a config, a
                Proposal, or None when it has no more.

        Raises:
            OptimizerFailed: the optimiser raised or broke the rules; names it and the trial. The log can be resumed.
        """
        self._submitted.extend(self.stream(optimizer))
        return self.trials()

    def stream(self, optimizer: Optimizer | Callback) -> Iterator[Trial]:
        """Yield the trials that `run` returns, one by one, without keeping them in memory."""
        if self._state != "new":
            raise InvalidArgument("a simulation is for one run; make another one")
        driver = Driver(optimizer, self._answers, self._cluster, self.settings.thinking)
        if missing := [name for name in driver.objectives if name not in self._answers.metrics]:
            raise InvalidArgument(f"metrics lacks {', '.join(missing)}, which {driver.name} optimises; add it")
        self._open({"optimizer": driver.name, "optimizer_settings": driver.settings})
        try:
            driver.fill()
            while trials := self._cluster.advance():
                for trial in trials:
                    if trial.status != "running":
                        self._write(trial)
                        yield trial
                    driver.show(self._without_hidden(trial))
                driver.fill()
            yield from self._finish()
        finally:
            self.close()

    def submit(self, proposal: Proposal | Mapping[str, object]) -> int:
        """Give a config or a proposal to a free worker and return the number of the trial.

        Raises:
            OptimizerFailed: the proposal is not valid, no worker is free, or the simulation is over.
            InvalidArgument: `thinking` is not "free".
        """
        if not self.n_free:
            if self._state != "over" and self._cluster.n_running:
                raise self._failure("no worker is free: wait()")
            if self._state == "over" and not self._cluster.is_cut:
                raise self._failure("a trial was submitted after the simulation was closed; make another simulation")
            raise self._failure(f"proposes a trial after the end ({self._cluster.why_over()})")
        (job,) = self._answers.answer([proposal])
        if not isinstance(job, Job):
            raise self._failure(f"its proposal is invalid:\n{job}") from job
        self._open()
        return self._cluster.start(job)

    def wait(self) -> list[Trial]:
        """Go to the next event and return its trials, without metrics of the test images.

        A trial of status "running" has reached an epoch that its proposal names in `reports`. An empty list: nothing
        runs any more, or the budget is spent, and the simulation is over; see `trials`. An error closes the simulation.
        """
        if self._state == "over":
            return []
        if self._state == "run":
            raise InvalidArgument("`run` drives this simulation; wait() is for one that you drive")
        self._open()
        try:
            trials = self._cluster.advance()
            for trial in trials:
                if trial.status != "running":
                    self._write(trial)
                    self._submitted.append(trial)
            if not trials:
                self._submitted += self._finish()
                self.close()
        except BaseException:
            self.close()
            raise
        return [self._without_hidden(trial) for trial in trials]

    def stop(self, trial: int) -> None:
        """Stop a running trial now; `wait` returns it as "stopped".

        Raises:
            OptimizerFailed: the trial does not exist, or has ended.
        """
        try:
            self._cluster.stop(trial)
        except InvalidArgument as err:
            raise self._failure(str(err)) from err

    def open_log(self) -> None:
        """Open the log now, where you drive: ProtocolMismatch if it belongs to another run."""
        self._open()

    def think(self, seconds: float) -> None:
        """Charge the optimiser's thinking time: later submissions start that many seconds later."""
        if not is_thinking_time(seconds):
            raise InvalidArgument(f"seconds={show(seconds)} is not a number of seconds up to {MOST_THINKING:g}")
        self._cluster.think(float(seconds))

    def trials(self) -> list[Trial]:
        """Return the trials that were submitted, or that `run` ran, in the order in which they ended, with all metrics.

        Raises:
            InvalidArgument: the simulation is not over: until then, metrics of the test images are hidden.
        """
        if not self._cluster.is_cut:
            if self._state == "over":
                raise InvalidArgument("the simulation was closed before it was over; resume it with its log")
            raise InvalidArgument("the simulation is not over: wait() until it returns an empty list")
        return list(self._submitted)

    def close(self) -> None:
        """Close the log; it can be resumed if the simulation was not over. Does nothing the second time."""
        self._state = "over"
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, optimizer: Mapping[str, object] | None = None) -> None:
        if self._state != "new":
            return
        if optimizer is None and self.settings.thinking != "free":
            raise InvalidArgument(
                f"thinking={self.settings.thinking!r} is for `run`, which sees the asks; leave it at 'free' where you "
                "drive, and charge the optimiser's time with think(seconds)"
            )
        if self._log is not None:
            facts = {**self._described, "optimizer": None, "optimizer_settings": {}, **(optimizer or {})}
            settings = {**self.settings.facts(), "metrics": self._answers.metrics}
            self._writer = LogWriter(self._log, {**facts, **settings, **self._facts})
        self._state = "open" if optimizer is None else "run"

    def _write(self, trial: Trial) -> None:
        if self._writer is not None:
            self._writer.write(trial)

    def _finish(self) -> list[Trial]:
        trials = self._cluster.cut()
        for trial in trials:
            self._write(trial)
        if self._writer is not None:
            drives_with_settings = self._state == "open" and bool(self._facts.get("optimizer_settings"))
            self._writer.end(self._cluster.ending(with_thinking=drives_with_settings))
        return trials

    def _without_hidden(self, trial: Trial) -> Trial:
        """Copy a trial for optimisers, without hidden metrics."""
        return Trial(  # faster than dataclasses.replace
            trial=trial.trial,
            config=trial.config.copy(),
            fidelity=dict(trial.fidelity),
            seed=trial.seed,
            metrics={name: value for name, value in trial.metrics.items() if name not in self._hidden},
            start=trial.start,
            end=trial.end,
            worker=trial.worker,
            status=trial.status,
            tag=trial.tag,
        )

    def _failure(self, what: str) -> OptimizerFailed:
        name = self._facts.get("optimizer", "the optimiser")
        return OptimizerFailed(f"{name}, trial {self._cluster.n_started}, at {self.now:.6g} simulated seconds: {what}")
