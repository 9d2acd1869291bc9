"""Optimisers on the surrogate with the clock of the study `live` (epochs), to compare with each trajectory.

Such runs have the same optimiser, seed and initial configs as a trajectory, with drawn noise.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from experiments.folder import StudyFolder
from experiments.live.declared import CORNER, RELEASE, beside_path, curve
from experiments.optimizers import make
from experiments.study import Arm, Repetition, TaskFacts
from jahs.comparison.benches import open_benchmark
from jahs.comparison.logs import Floats
from jahs.errors import CorruptFile, ProtocolMismatch
from jahs.files.atomic import write_beside
from jahs.optimizers.registry import Optimizer
from jahs.queries.benchmark import Benchmark
from jahs.queries.views import View
from jahs.simulate import Proposal, Simulation, Trial
from jahs.simulate.trial import AskedFidelity
from jahs.spaces.configs import Config
from jahs.tasks.metrics import METRICS, Metric

N_RUNS: Final = 20
N_RUNS_OF_REFIT: Final = 3
MEASURED: Final = ("valid_acc", "test_acc")


class SurrogateWorld:
    """A release that counts time in epochs, so that a budget means the same here and on real trainings."""

    def __init__(self, bench: Benchmark) -> None:
        self._bench = bench
        self.task, self.space, self.release, self.refit = bench.task, bench.space, bench.release, bench.refit
        self.sample, self.fidelity = bench.sample, bench.fidelity
        self.max_epoch, self.fidelities = bench.max_epoch, bench.fidelities
        self.full: Mapping[str, float] = {"epoch": bench.max_epoch}
        self.metrics: Mapping[str, Metric] = {name: METRICS[name] for name in (*MEASURED, "runtime")}

    def query_many(
        self,
        configs: Sequence[Config],
        *,
        each_at: NDArray[np.int64],
        seed: int | None = None,
        metrics: Sequence[str] | None = None,
    ) -> dict[str, Floats]:
        """Return the metrics that simulations request: accuracies, and the epochs as the runtime."""
        assert metrics is None or {*metrics} <= {*self.metrics}
        answers = self._answer(configs, each_at, seed)
        return {**answers, "runtime": np.asarray(each_at, dtype=np.float64)}

    def _answer(self, configs: Sequence[Config], epochs: NDArray[np.int64], seed: int | None) -> dict[str, Floats]:
        return self._bench.query_many(configs, each_at=epochs, seed=seed, metrics=MEASURED)


class Stepwise:
    """Turns every report of a proposal into a trial of its own, each continuing the one before.

    A training that is stopped at a report is then not trained further, while a simulation asks for a whole proposal at
    once. With one worker and continued trainings, times and results are the same as with reports. All trainings have
    one seed, so a config that is proposed again has the same results, and is not trained again.
    """

    def __init__(self, optimizer: Optimizer, *, seed: int | None = None) -> None:
        self.name, self.settings = optimizer.name, optimizer.settings
        self._optimizer, self._seed = optimizer, seed
        self._current: Proposal | None = None
        self._left: list[AskedFidelity] = []

    def ask(self, n: int) -> list[Proposal]:
        """Return the next step of the current proposal, or the first one of the next."""
        assert n == 1, "one worker"
        if self._current is None:
            if not (batch := self._optimizer.ask(1)):
                return []
            self._current = batch[0] if isinstance(batch[0], Proposal) else Proposal(config=batch[0])
            self._left = [*self._current.reports, self._current.at]
        return [replace(self._current, at=self._left.pop(0), reports=(), seed=self._seed)]

    def tell(self, trial: Trial) -> None:
        """Ask the optimiser whether to stop, or tell it the end of the current proposal."""
        if self._left:
            should_stop = getattr(self._optimizer, "should_stop", None)
            is_known = "valid_acc" in trial.metrics
            if is_known and not (should_stop and should_stop(replace(trial, status="running"))):
                return
            trial = replace(trial, status="stopped")
        self._current, self._left = None, []
        self._optimizer.tell(trial)


def simulation_of(
    world: SurrogateWorld,
    arm: Arm,
    facts: TaskFacts,
    *,
    seed: int,
    evaluation_seed: int,
    log: Path | None = None,
    header: Mapping[str, str] | None = None,
) -> tuple[Simulation, Stepwise]:
    """Return the simulation of an arm in a world, and its optimiser; `header` has more facts of its log."""
    view = View(world, fixed=CORNER)  # type: ignore[arg-type]  # all that simulations use
    simulation = Simulation(
        view,
        workers=1,
        budget=facts.budget_s,
        seed=seed,
        evaluation_seed=evaluation_seed,
        metrics=MEASURED,
        log=log,
        facts=header,
    )
    return simulation, Stepwise(make(arm.optimizer, view, seed=seed, **dict(arm.settings)), seed=evaluation_seed)


def simulate(world: SurrogateWorld, arm: Arm, facts: TaskFacts, *, seed: int, n_runs: int) -> Floats:
    """Return the curves of some runs of an optimiser with one seed, (n_runs, n_evaluations).

    Each run has another draw of the training noise.
    """
    curves = []
    for number in range(n_runs):
        simulation, optimizer = simulation_of(world, arm, facts, seed=seed, evaluation_seed=seed * N_RUNS + number)
        curves.append(curve(simulation.run(optimizer), facts, world.max_epoch))
    return np.stack(curves)


def run_beside(folder: StudyFolder, own: Repetition) -> None:
    """Simulate an optimiser with one seed on the release or on a refit, and write its curves."""
    facts = folder.tasks[own.task]
    world = SurrogateWorld(open_benchmark(own.task, folder.path / RELEASE, refit=own.refit))
    n_runs = N_RUNS if own.refit is None else N_RUNS_OF_REFIT
    curves = simulate(world, folder.study.arm(own.arm), facts, seed=own.seed, n_runs=n_runs)
    write_arrays(beside_path(folder.path, own.arm, own.seed, own.refit), facts, curves=curves)


def write_arrays(path: Path, facts: TaskFacts, **arrays: NDArray[Any]) -> None:  # Any: each has its own type
    """Write arrays and the digest of the release that they were computed with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_beside(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, release=np.array(facts.release), **arrays)  # type: ignore[arg-type]  # arrays by name


def read_arrays(path: Path, facts: TaskFacts) -> dict[str, NDArray[Any]] | None:  # Any: each has its own type
    """Return what `write_arrays` wrote; None if there is no file. Refuse a file of another release."""
    if not path.is_file():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {**file}
        release = str(arrays.pop("release"))
    except Exception as err:  # zip, zlib, numpy and the system each have errors of their own
        raise CorruptFile(f"{path} cannot be read: {err}; remove it, and it is simulated again") from err
    if release != facts.release:
        raise ProtocolMismatch(f"{path} has release {release[:16]}, but the study has {facts.release[:16]}; remove it")
    return arrays
