"""Run the study `live`, optimisers whose proposals are trained, in sessions of any length.

    python -m experiments.run live --out DIR --minutes 60 --data-dir IMAGES    # start, or continue
    python -m experiments.run live --out DIR --status                          # progress and cost
    python -m experiments.run live --out DIR --beside                          # the runs on the surrogate; no training
    python -m experiments.run live --out DIR --beside --release RELEASE        # the same on another release
    python -m experiments.report DIR                                           # the page, also of an unfinished study

Stopped at any moment, by Ctrl-C or kill -9, it loses at most the epoch under way: full trainings are runs in
`DIR/runs`, each trajectory is a log, and an optimiser is rebuilt by running it again on its recorded answers. All
optimisers reach 25 evaluations with the first seed, then 50, then 100; then comes the second seed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from experiments.folder import StudyFolder, facts_of, made_with, open_or_make, read_folder, remove_parts, write_folder
from experiments.live.beside import run_beside
from experiments.live.declared import (
    CHECKPOINTS,
    CORNER,
    LIVE,
    RELEASE,
    RUNS,
    STAGES,
    SURROGATE,
    beside_path,
    left_out_path,
    log_path,
    n_evaluations_of,
    read_trajectory,
)
from experiments.live.left_out import run_left_out
from experiments.live.results import refuse_seen
from experiments.live.trajectories import TrajectoryJob, follow
from experiments.optimizers import refuse_lacking
from experiments.study import Arm, Repetition, Study
from jahs.comparison.benches import open_benchmark, release_of
from jahs.errors import JahsError, refuse
from jahs.files.atomic import change_folder
from jahs.files.runs import read_configs, read_runs
from jahs.queries.benchmark import Benchmark
from jahs.release import read_release
from jahs.tasks.definitions import Task
from pipeline.command import add_device, device_faults
from pipeline.data import load_images
from pipeline.protocol import protocol_digest, protocol_facts
from pipeline.runs import RunsFolder, check_free_space
from workshop.command import add_data_dir, add_minutes, add_workers, new_parser, run_command
from workshop.jobs import Where, run_jobs
from workshop.measured import last_rows
from workshop.progress import Progress

_SECONDS_AN_HOUR: Final = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """Settings of `train` and `beside`: one field per flag, which `--help` explains."""

    out: Path
    minutes: float | None = None
    workers: int = 2
    arms: tuple[str, ...] = ()
    data_dir: Path | None = None
    device: str = "cpu"
    release: Path | None = None
    study: Study = LIVE

    def check(self) -> list[Arm]:
        """Return the chosen arms; refuse all invalid settings at once."""
        faults = Where(workers=self.workers).faults()
        if self.minutes is not None and not self.minutes > 0:
            faults.append(f"minutes={self.minutes} must be more than 0")
        faults += device_faults(self.device)
        refuse(*faults)
        chosen = [self.study.arm(name) for name in self.arms]
        arms = [arm for arm in self.study.arms if not chosen or arm in chosen]
        refuse_lacking({arm.name: arm.optimizer for arm in arms})
        return arms


def train(settings: LiveSettings) -> int:
    """Continue every trajectory until the limit; return the number of trainings. A wrong start writes nothing."""
    deadline = np.inf if settings.minutes is None else time.time() + 60 * settings.minutes
    arms, study = settings.check(), settings.study
    folder = _open(settings, arms)
    (task,) = study.tasks
    untils = (*(n for n in STAGES if n < study.n_evaluations), study.n_evaluations)
    jobs = [
        TrajectoryJob(
            folder=folder,
            repetition=Repetition(task=task, arm=arm.name, seed=seed),
            until=until,
            deadline=deadline,
            data_dir=settings.data_dir and settings.data_dir.absolute(),
            device=settings.device,
        )
        for seed, until, arm in product(range(study.n_seeds), untils, arms)
    ]
    if any(
        _n_evaluations(folder, arm, seed) < study.n_evaluations for arm, seed in product(arms, range(study.n_seeds))
    ):
        _remove_left_out(folder)
    progress = Progress(len(jobs), study.name, limit_s=settings.minutes and settings.minutes * 60)
    n_trained, faults = 0, []
    in_time = (job for job in jobs if time.time() <= deadline)
    for n_done, done in enumerate(run_jobs(follow, in_time, where=Where(workers=settings.workers)), 1):
        (n_here, fault), job = done.result, done.job
        n_trained += n_here
        faults += [fault] if fault else []
        outcome = fault or f"{n_here} trainings"
        progress.update(n_done, f"{job.repetition.arm} seed {job.repetition.seed}, {job.until} evaluations: {outcome}")
    progress.close()
    if n_trained:
        _remove_left_out(folder)  # `beside` may have run meanwhile
    if faults:
        raise JahsError("\n".join([f"{len(faults)} trajectories failed; the same command continues", *faults]))
    return n_trained


def _remove_left_out(folder: StudyFolder) -> None:
    """Remove the results that depend on every training."""
    for arm in folder.study.arms:
        left_out_path(folder.path, arm.name).unlink(missing_ok=True)


def _n_evaluations(folder: StudyFolder, arm: Arm, seed: int) -> float:
    """Return how many full evaluations a trajectory has spent so far."""
    ((task, facts),) = folder.tasks.items()
    return n_evaluations_of(read_trajectory(log_path(folder.path, task, arm.name, seed)), facts)


def _open(settings: LiveSettings, arms: Sequence[Arm]) -> StudyFolder:
    release_path, path = settings.out / RELEASE, settings.out.absolute()
    (task,) = settings.study.tasks
    bench = open_benchmark(task, settings.release or (release_path if release_path.is_dir() else None))
    load_images(bench.task, data_dir=settings.data_dir, resolutions=(CORNER["Resolution"],))
    check_free_space(path)
    facts = facts_of(bench, unit_s=float(bench.task.max_epoch), n_evaluations=settings.study.n_evaluations)
    protocol = _protocol(bench.task)
    if (path / RUNS).is_dir():
        RunsFolder.open_or_make(path / RUNS, **protocol)
    flags = [word for arm in arms for word in ("--arms", arm.name)] if len(arms) < len(settings.study.arms) else []
    folder = open_or_make(
        path,
        settings.study,
        tasks={task: facts},
        arms=[arm.name for arm in arms],
        n_seeds=settings.study.n_seeds,
        command=["python", "-m", "experiments.run", "live", *flags],
    )
    remove_parts(path)
    if not release_path.is_dir():
        _store(bench, release_path)
    RunsFolder.open_or_make(path / RUNS, **protocol).recover()
    (path / CHECKPOINTS).mkdir(exist_ok=True)
    return folder


def beside(settings: LiveSettings) -> int:
    """Simulate the missing runs on the surrogate, and return the number of files.

    The release comes first, then its refits, then the surrogates that are each not fitted to one optimiser's trainings.
    A release takes the place of the study's own, whose runs are removed: proposals and trainings depend on neither.
    """
    arms = settings.check()
    folder = read_folder(settings.out.absolute())
    if settings.release is not None:
        folder = _change_release(folder, settings.release)
    names, n_seeds = [arm.name for arm in arms], folder.study.n_seeds
    repetitions = folder.study.repetitions(tasks=folder.tasks, arms=names, n_seeds=n_seeds)
    jobs = {
        beside_path(folder.path, own.arm, own.seed, own.refit): partial(run_beside, folder, own) for own in repetitions
    }
    if read_release(folder.path / RELEASE).has("table.npz"):
        jobs |= {left_out_path(folder.path, name): partial(run_left_out, folder, name) for name in names}
    missing = [(path, job) for path, job in jobs.items() if not path.is_file()]
    progress, faults = Progress(len(missing), "surrogate"), []
    for n_done, done in enumerate(run_jobs(_run_job, missing, where=Where(workers=settings.workers)), 1):
        faults += [done.result] if done.result else []
        progress.update(n_done, str(done.job[0].relative_to(folder.path)), spent_s=done.spent_s)
    progress.close()
    if faults:
        raise JahsError("\n".join([f"{len(faults)} files failed; the same command continues", *faults]))
    return len(missing)


def _run_job(job: tuple[Path, Callable[[], None]]) -> str | None:
    """Write one file; return the fault, if any."""
    path, write = job
    try:
        write()
    except (JahsError, OSError) as err:
        return f"{path}: {err}"
    return None


def _change_release(folder: StudyFolder, release: Path) -> StudyFolder:
    """Compare the trainings of a study with another release, which must not have been fitted to any of them."""
    ((task, facts),), own = folder.tasks.items(), folder.path / RELEASE
    bench = open_benchmark(task, release)
    if (digest := release_of(bench).sha256) == facts.release and read_release(own).sha256 == digest:
        return folder
    RunsFolder.open_or_make(folder.path / RUNS, **_protocol(bench.task))
    refuse_seen(bench, set(read_configs(folder.path / RUNS)["config_id"].tolist()))
    shutil.rmtree(folder.path / SURROGATE, ignore_errors=True)
    facts = facts_of(bench, unit_s=facts.mean_runtime_s, n_evaluations=folder.study.n_evaluations)
    command = ["python", "-m", "experiments.run", "live", "--beside", "--release", "RELEASE"]
    changed = write_folder(replace(folder, tasks={task: facts}, made_with=(*folder.made_with, made_with(command))))
    _store(bench, own)
    return changed


def _store(bench: Benchmark, path: Path) -> None:
    with change_folder(path) as new:
        shutil.copytree(release_of(bench).path, new, dirs_exist_ok=True)


def _protocol(task: Task) -> dict[str, Any]:  # Any: JSON
    return {"facts": protocol_facts(task), "digest": protocol_digest(task)}


def status(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return the progress of the study, its cost so far and the remaining cost, in core-hours."""
    folder = read_folder(path)
    (facts,), study = folder.tasks.values(), folder.study
    counts = {
        arm.name: [round(_n_evaluations(folder, arm, seed), 1) for seed in range(study.n_seeds)] for arm in study.arms
    }
    has_runs = any((path / RUNS).glob("**/*.parquet"))
    seconds = last_rows(read_runs(path / RUNS))["runtime"].astype(np.float64) if has_runs else np.empty(0)
    n_wanted = study.n_seeds * study.n_evaluations * len(study.arms)
    n_done = sum(map(sum, counts.values()))
    known = seconds[np.isfinite(seconds)]  # a GPU's trainings have no runtime
    mean_s = float(known.mean()) if known.size else None
    return {
        "evaluations": f"{n_done:.0f} of {n_wanted:,}",
        "evaluations_by_arm_and_seed": counts,
        "full_trainings": len(seconds),
        "core_hours_of_full_trainings": float(known.sum()) / _SECONDS_AN_HOUR,
        "mean_core_seconds": mean_s,
        "core_hours_left_at_most": mean_s and (n_wanted - n_done) * mean_s / _SECONDS_AN_HOUR,
        "surrogate_files": len([*(path / SURROGATE).rglob("*.npz")]),
        "release": facts.release,
    }


def main(argv: Sequence[str]) -> int:
    """Run the command line behind `experiments.run live`; return its exit status."""
    parser = new_parser(
        "experiments.run live",
        "Train the proposals of six optimisers, or continue to do so.",
        example="--out out/live --minutes 60 --data-dir IMAGES",
        more="Stop it at any moment; the same command continues.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the study, made if it does not exist")
    add_minutes(parser, "training")
    add_workers(parser)
    parser.add_argument("--arms", action="append", default=[], help="an optimiser; repeatable (default: all)")
    add_data_dir(parser)
    add_device(parser)
    parser.add_argument("--release", type=Path, help="folder of the release to compare with (default: found by jahs)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--status", action="store_true", help="print the progress and exit")
    about = "simulate the missing runs on the release, its refits and the leave-one-out surrogates, and exit"
    which.add_argument("--beside", action="store_true", help=about)
    given = vars(parser.parse_args(argv))
    is_status, is_beside = given.pop("status"), given.pop("beside")
    settings = LiveSettings(**{**given, "arms": tuple(given["arms"])})

    def work() -> Mapping[str, Any]:  # Any: JSON
        if is_status:
            return status(settings.out)
        if is_beside:
            return {"out": str(settings.out), "files_added": beside(settings)}
        return {"out": str(settings.out), "trainings": train(settings), **status(settings.out)}

    stopped = "every finished training is kept; run the command again to continue"
    return run_command("experiments.run live", work, stopped=stopped)
