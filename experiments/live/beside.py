"""Runs on the surrogate beside each trajectory: the same optimiser, seed and initial configs, with drawn noise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from experiments.folder import TaskFacts
from experiments.live.declared import CORNER, beside_path, curve, release_path
from experiments.live.worlds import MEASURED, Stepwise, SurrogateWorld
from experiments.optimizers import make
from experiments.study import Arm
from jahs.comparison.benches import open_benchmark
from jahs.errors import CorruptFile, JahsError, ProtocolMismatch
from jahs.files.atomic import write_beside
from jahs.queries.views import View
from jahs.simulate import Simulation

N_RUNS: Final = 20
N_RUNS_OF_REFIT: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideJob:
    """One optimiser with one seed on the release or on one refit.

    Attributes:
        path: the study's folder.
        task, facts: the task, its release and budget.
        seed: of the optimiser, as on real trainings.
        refit: number of the refit that answers; None: the release itself.
    """

    path: Path
    task: str
    facts: TaskFacts
    arm: Arm
    seed: int
    refit: int | None

    @property
    def target(self) -> Path:
        """Where the curves are written."""
        return beside_path(self.path, self.arm.name, self.seed, self.refit)

    @property
    def n_runs(self) -> int:
        """Number of runs, each with another draw of the training noise."""
        return N_RUNS if self.refit is None else N_RUNS_OF_REFIT


def run_beside(job: BesideJob) -> str | None:
    """Simulate the runs of a job and write their curves; return what went wrong, if anything."""
    try:
        curves = np.stack([_one(job, number) for number in range(job.n_runs)])
        job.target.parent.mkdir(parents=True, exist_ok=True)
        with write_beside(job.target) as beside, beside.open("wb") as file:
            np.savez_compressed(file, curves=curves, release=np.array(job.facts.release))
    except (JahsError, OSError) as err:
        return f"{job.target}: {err}"
    return None


def _one(job: BesideJob, number: int) -> NDArray[np.float64]:
    bench = open_benchmark(job.task, release_path(job.path).absolute(), refit=job.refit)
    view = View(SurrogateWorld(bench), fixed=CORNER)  # type: ignore[arg-type]  # all that simulations ask
    simulation = Simulation(
        view,
        workers=1,
        budget=job.facts.budget_s,
        seed=job.seed,
        evaluation_seed=job.seed * N_RUNS + number,
        metrics=MEASURED,
    )
    optimizer = make(job.arm.optimizer, view, seed=job.seed, **dict(job.arm.settings))
    return curve(simulation.run(Stepwise(optimizer)), job.facts, bench.max_epoch)


def read_beside(path: Path, facts: TaskFacts) -> NDArray[np.float64] | None:
    """Return an optimiser's curves, (n_runs, n_evaluations), see `experiments.live.declared.curve`; None without them.

    Raises:
        CorruptFile: the file is damaged.
        ProtocolMismatch: it is of another release.
    """
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            release, curves = str(file["release"]), np.asarray(file["curves"], dtype=np.float64)
    except Exception as err:  # zip, zlib, numpy and the system each have errors of their own
        raise CorruptFile(f"{path} cannot be read: {err}; remove it, and it is simulated again") from err
    if release != facts.release:
        raise ProtocolMismatch(f"{path} is of release {release[:16]}, the study of {facts.release[:16]}; remove it")
    return curves
