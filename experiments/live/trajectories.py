"""One trajectory: an optimiser that trains what it proposes, rebuilt by running it again on its recorded answers."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from experiments.folder import TaskFacts
from experiments.live.declared import CORNER, LIVE, log_path, n_evaluations_of, read_trajectory, release_path, runs_path
from experiments.live.training import TrainedWorld
from experiments.live.worlds import MEASURED, Stepwise
from experiments.optimizers import make
from experiments.study import Arm
from jahs.comparison.benches import open_benchmark
from jahs.errors import JahsError
from jahs.queries.views import View
from jahs.simulate import Simulation
from pipeline.runs import RunsFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryJob:
    """One optimiser with one seed, up to a number of evaluations.

    Attributes:
        path, task, facts: the study's folder, its task, and the task's release and budget.
        arm, digest, seed: the optimiser, the digest of its declaration, and its seed.
        deadline: `time.time()` after which no training begins.
    """

    path: Path
    task: str
    facts: TaskFacts
    arm: Arm
    digest: str
    seed: int
    until: int
    deadline: float
    data_dir: Path | None
    device: str = "cpu"

    @property
    def log(self) -> Path:
        """The log of the trajectory."""
        return log_path(self.path, self.task, self.arm.name, self.seed)

    @property
    def is_done(self) -> bool:
        """Whether the trajectory has come so far."""
        found = read_trajectory(self.log)
        is_last = self.until * self.facts.mean_runtime_s >= self.facts.budget_s
        if is_last:
            return found is not None and found.ending is not None
        return n_evaluations_of(found, self.facts) >= self.until


def follow(job: TrajectoryJob) -> tuple[int, str | None]:
    """Go on with a trajectory; return the number of trainings, and what went wrong, if anything."""
    world: TrainedWorld | None = None
    try:
        # A process that is at work on this trajectory ends its stage first.
        with RunsFolder(runs_path(job.path)).lock(f"trajectory-{job.arm.name}-{job.seed}"):
            if job.is_done:
                return 0, None
            bench = open_benchmark(job.task, release_path(job.path))
            job.log.parent.mkdir(parents=True, exist_ok=True)
            world = TrainedWorld(bench, job.path, log=job.log, data_dir=job.data_dir, device=job.device)
            _advance(job, world)
    except (JahsError, OSError) as err:
        return 0 if world is None else world.n_trained, f"{job.log}: {err}"
    return world.n_trained, None


def _advance(job: TrajectoryJob, world: TrainedWorld) -> None:
    """Replay what is recorded and go on from there, until the stage or the time is over."""
    view = View(world, fixed=CORNER)  # type: ignore[arg-type]  # all that simulations ask
    simulation = Simulation(
        view,
        workers=1,
        budget=job.facts.budget_s,
        seed=job.seed,
        evaluation_seed=job.seed,
        metrics=MEASURED,
        log=job.log,
        facts={"study": LIVE.name, "arm": job.arm.name, "arm_digest": job.digest},
    )
    optimizer = Stepwise(make(job.arm.optimizer, view, seed=job.seed, **dict(job.arm.settings)))
    end = job.until * job.facts.mean_runtime_s
    known = read_trajectory(job.log)
    n_known = len(known.trials) if known else 0
    with closing(simulation.stream(optimizer)) as trials:  # type: ignore[type-var]  # a generator
        for number, trial in enumerate(trials, start=1):
            is_over = number >= n_known and time.time() > job.deadline
            if is_over or end <= trial.end < job.facts.budget_s:
                return
