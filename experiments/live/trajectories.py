"""Optimiser trajectories with real training, rebuilt by running them again on their recorded answers."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.folder import StudyFolder
from experiments.live import declared
from experiments.live.beside import MEASURED, SurrogateWorld, simulation_of
from experiments.study import Repetition, TaskFacts
from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.logs import Floats
from jahs.errors import JahsError
from jahs.files.runs import read_runs
from jahs.files.tables import Table, read_table, take
from jahs.queries.benchmark import Benchmark
from jahs.schema import RUN_COLUMNS
from jahs.spaces.configs import Config, config_id
from pipeline.proposals import table_of
from pipeline.protocol import EPOCH_FIELDS
from pipeline.runs import RunsFolder
from pipeline.train import place_of, train
from pipeline.worker import collect_run, images_of

_MOST_CHECKPOINTS: Final = 256
_POLL_S: Final = 0.5

_Answer: TypeAlias = Mapping[str, float]


class TrainedWorld(SurrogateWorld):
    """Trains and records the configs that a trajectory asks for; recorded ones are not trained again.

    A full training is one run in the study's folder of runs, recorded by the collector's own worker. A training that
    ends earlier is recorded in the log of its trajectory alone, and continues from a checkpoint if it is promoted.
    """

    def __init__(self, bench: Benchmark, job: TrajectoryJob) -> None:
        super().__init__(bench)
        self.n_trained = 0
        self._job, self._by = job, uuid.uuid4().hex
        self._runs = RunsFolder(job.folder.path / declared.RUNS)
        self._checkpoints = job.folder.path / declared.CHECKPOINTS
        self._proposer = release_of(bench).sha256
        self._place = f"{zlib.crc32(place_of(job.device, bench.task).encode()):08x}"
        known = declared.read_trajectory(job.log)
        self._known: dict[tuple[int, int], _Answer] = {
            (config_id(trial.config), int(trial.fidelity["epoch"])): trial.metrics
            for trial in (known.trials if known else ())
            if trial.status == "finished"
        }

    def _answer(self, configs: Sequence[Config], epochs: NDArray[np.int64], seed: int | None) -> dict[str, Floats]:
        assert seed is not None, "a training has a seed"
        rows = [self._accuracies(config, epoch, seed) for config, epoch in zip(configs, epochs.tolist(), strict=True)]
        return {name: np.array([row.get(name, np.nan) for row in rows]) for name in MEASURED}

    def _accuracies(self, config: Config, epoch: int, seed: int) -> _Answer:
        """Return the accuracies of one training; none if it diverged."""
        key = config_id(config), epoch
        if key not in self._known:
            named = f"{key[0]:016x}"  # no config of this folder has a number
            run = self._recorded(named, seed)
            if run is None and epoch < self.max_epoch:
                return self._known.setdefault(key, self._train_partly(config, named, epoch, seed))
            if run is None:
                self._runs.add_configs(table_of([config], source="live", release=self._proposer))
            while run is None:
                run = self._train(named, seed)
            n_valid = len(run["epoch"]) - int(run["status"][0] == "diverged")
            self._known[key] = {name: float(run[name][epoch - 1]) for name in MEASURED} if epoch <= n_valid else {}
        return self._known[key]

    def _recorded(self, named: str, seed: int) -> Table | None:
        shard = self._runs.shard(named, seed)
        if shard.exists():
            return read_table(shard, RUN_COLUMNS)
        if not any(self._runs.path.glob("runs-*.parquet")):
            return None
        runs = read_runs(self._runs.path)  # another process has compacted the folder
        is_it = (runs["config_id"] == np.uint64(int(named, 16))) & (runs["seed"] == seed)
        return take(runs, is_it) if is_it.any() else None

    def _train(self, named: str, seed: int) -> Table | None:
        """Train to the last epoch, or wait a moment for the process that is training."""
        path, checkpoint, own = self._runs.path, self._checkpoint(named, seed), (named, seed)
        device, data_dir = self._job.device, self._job.data_dir
        line = collect_run(path, self.task, own, by=self._by, device=device, data_dir=data_dir, checkpoint=checkpoint)
        if line is None:
            time.sleep(_POLL_S)
        else:
            self.n_trained += 1
            checkpoint.unlink(missing_ok=True)
        return self._recorded(named, seed)

    def _train_partly(self, config: Config, named: str, epoch: int, seed: int) -> _Answer:
        images = images_of(self.task, self._job.data_dir)[config["Resolution"]]
        device, checkpoint = self._job.device, self._checkpoint(named, seed)
        while True:
            with self._runs.claim(named, seed) as is_ours:
                if is_ours:
                    run = train(
                        config, self.task, images, seed=seed, epochs=epoch, device=device, checkpoint=checkpoint
                    )
                    break
            time.sleep(_POLL_S)
        self.n_trained += 1
        self._forget_old_checkpoints()
        if run.status == "diverged" or len(run.epochs) < epoch:
            return {}
        return {name: float(np.float32(run.epochs[epoch - 1, EPOCH_FIELDS.index(name)])) for name in MEASURED}

    def _checkpoint(self, named: str, seed: int) -> Path:
        return self._checkpoints / f"{named}-{seed}-{self._place}.pt"  # others cannot be continued here

    def _forget_old_checkpoints(self) -> None:
        """Keep the newest checkpoints. A training whose checkpoint is gone starts again, and gives the same bits."""
        ages: list[tuple[float, Path]] = []
        for path in self._checkpoints.glob("*.pt"):
            with suppress(FileNotFoundError):  # another process may have removed it
                ages.append((path.stat().st_mtime, path))
        for _, path in sorted(ages)[:-_MOST_CHECKPOINTS]:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryJob:
    """One optimiser with one seed, up to a number of evaluations."""

    folder: StudyFolder
    repetition: Repetition
    until: int
    deadline: float  # `time.time()` after which no training begins
    data_dir: Path | None  # the folder of the original images
    device: str

    @property
    def log(self) -> Path:
        """The log of the trajectory."""
        return self.folder.path / self.repetition.path

    @property
    def facts(self) -> TaskFacts:
        """Release and budget."""
        return self.folder.tasks[self.repetition.task]

    @property
    def is_done(self) -> bool:
        """Whether the trajectory has reached its number of evaluations."""
        log = declared.read_trajectory(self.log)
        if self.until * self.facts.mean_runtime_s >= self.facts.budget_s:
            return log is not None and log.ending is not None
        return declared.n_evaluations_of(log, self.facts) >= self.until


def follow(job: TrajectoryJob) -> tuple[int, str | None]:
    """Continue a trajectory; return the number of trainings, and the fault, if any."""
    world: TrainedWorld | None = None
    own = job.repetition
    try:
        # A process that is at work on this trajectory ends its stage first.
        with RunsFolder(job.folder.path / declared.RUNS).lock(f"trajectory-{own.arm}-{own.seed}"):
            if job.is_done:
                return 0, None
            bench = open_benchmark(own.task, job.folder.path / declared.RELEASE)
            job.log.parent.mkdir(parents=True, exist_ok=True)
            world = TrainedWorld(bench, job)
            _advance(job, world)
    except (JahsError, OSError) as err:
        return 0 if world is None else world.n_trained, f"{job.log}: {err}"
    return world.n_trained, None


def _advance(job: TrajectoryJob, world: TrainedWorld) -> None:
    """Replay the recorded trials and continue from there, until the stage is complete or the time is over."""
    own, study = job.repetition, job.folder.study
    header = {"study": declared.LIVE.name, "arm": own.arm, "arm_digest": study.digest_of(own.arm)}
    simulation, optimizer = simulation_of(
        world, study.arm(own.arm), job.facts, seed=own.seed, evaluation_seed=own.seed, log=job.log, header=header
    )
    end = job.until * job.facts.mean_runtime_s
    log = declared.read_trajectory(job.log)
    n_recorded = len(log.trials) if log else 0
    with closing(simulation.stream(optimizer)) as trials:  # type: ignore[type-var]  # a generator
        for number, trial in enumerate(trials, start=1):
            is_over = number >= n_recorded and time.time() > job.deadline
            if is_over or end <= trial.end < job.facts.budget_s:
                return
