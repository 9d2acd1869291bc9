"""Run a study: every arm on every task with every seed, in parallel.

    python -m experiments.run joint --seeds 30 --workers 2 --out out/joint
    python -m experiments.run joint --family model-free --out out/joint
    python -m experiments.run live --out out/live --minutes 60    # optimisers on real trainings: experiments.live
    python -m experiments.run --list

A run may be stopped at any moment, by Ctrl-C or kill -9; the same command continues it. A finished repetition is one
complete log. Seeds, tasks and arms may be added later. `python -m experiments.report DIR` writes the page.
"""

from __future__ import annotations

import fnmatch
import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from experiments.folder import facts_of, is_finished, open_or_make, remove_parts
from experiments.imported import open_for_study
from experiments.optimizers import refuse_lacking
from experiments.repetitions import RepetitionJob, run_repetition
from experiments.studies import STUDIES, find_study
from experiments.study import Arm, Study, TaskFacts
from experiments.worlds import WORLD_NAMES, build_worlds, recorded_runtime, worlds_path, write_worlds
from jahs.comparison.benches import mean_runtime, open_benchmark, release_of
from jahs.errors import InvalidArgument, JahsError, MissingData, UnknownName, refuse
from jahs.release import read_release
from jahs.release.manifest import MANIFEST
from workshop.command import add_release, new_parser, run_command
from workshop.jobs import Where, add_where, run_jobs
from workshop.progress import Progress

_log = logging.getLogger(__name__)
_MOST_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """Settings of `run`: one field per flag, which `--help` explains."""

    study: str
    out: Path
    seeds: int | None = None
    workers: int = 2
    task: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    family: Literal["model-free", "model-based"] | None = None
    release: Path | None = None
    noise: Literal["mean", "seeded"] | None = None
    backend: Literal["loky", "dask"] = "loky"
    scheduler: str | None = None

    @property
    def where(self) -> Where:
        """Where repetitions run."""
        return Where(workers=self.workers, backend=self.backend, scheduler=self.scheduler)

    def check(self) -> Study:
        """Return the study; refuse all invalid settings at once."""
        faults = self.where.faults()
        if self.seeds is not None and self.seeds < 1:
            faults.append(f"seeds={self.seeds} must be at least 1")
        refuse(*faults)
        study = find_study(self.study)
        if self.noise == "mean" and _has_worlds(study.arms):
            single = "compares single trainings, and most configs have one"
            raise InvalidArgument(f"{study.name} {single}; leave out --noise mean")
        return replace(study, noise=self.noise or study.noise)

    def choose(self, study: Study) -> tuple[Arm, ...]:
        """Return the selected arms, in the order of the study; refuse those whose packages are not installed."""
        names, matching = [arm.name for arm in study.arms], set()
        for pattern in self.arms or ("*",):
            if not (found := fnmatch.filter(names, pattern)):
                raise UnknownName.of("arms", pattern, names)
            matching |= {*found}
        chosen = [arm for arm in study.arms if arm.name in matching and self.family in (None, arm.family)]
        if not chosen:
            among = f" and matches {' or '.join(self.arms)}" if self.arms else ""
            all_arms = ", ".join(f"{arm.name} ({arm.family})" for arm in study.arms)
            raise InvalidArgument(f"no arm of {study.name} is {self.family}{among}; its arms are {all_arms}")
        refuse_lacking({arm.name: arm.optimizer for arm in chosen})
        return tuple(chosen)


def run(settings: StudySettings) -> int:
    """Run every unfinished repetition; return their number. Invalid settings are refused before any of them runs."""
    study = settings.check()
    arms = settings.choose(study)
    tasks = {name: _task_facts(study, name, settings.release) for name in _tasks(settings, study)}
    names, n_seeds = [arm.name for arm in arms], settings.seeds or study.n_seeds
    folder = open_or_make(settings.out, study, tasks=tasks, arms=names, n_seeds=n_seeds, command=_command(settings))
    # On a cluster, processes on other machines may still be writing.
    if settings.backend == "loky" and (n_removed := remove_parts(folder.path)):
        _log.info("removed %d unfinished logs of a killed run", n_removed)
    if _has_worlds(arms):
        _prepare_worlds(folder.path, tasks, settings.release)
    there, release = replace(folder, path=folder.path.absolute()), settings.release and settings.release.absolute()
    jobs = [
        RepetitionJob(folder=there, repetition=repetition, release=release)
        for repetition in study.repetitions(tasks=tasks, arms=names, n_seeds=n_seeds)
        if not is_finished(folder.path, repetition)
    ]
    if failed := _run_all(settings, jobs):
        shown = "\n".join(failed[:_MOST_SHOWN])
        again = "run the command again to retry them"
        raise JahsError(f"{len(failed)} of {len(jobs)} repetitions failed; {again}\n{shown}")
    return len(jobs)


def _tasks(settings: StudySettings, study: Study) -> tuple[str, ...]:
    """Return the selected tasks: the named ones, else the task of a single release, else the study's tasks."""
    if not settings.task and settings.release is not None and (settings.release / MANIFEST).is_file():
        return (read_release(settings.release).task.name,)
    return settings.task or study.tasks


def _has_worlds(arms: Iterable[Arm]) -> bool:
    return any(arm.world in WORLD_NAMES for arm in arms)


def _task_facts(study: Study, task: str, release: Path | None) -> TaskFacts:
    bench = open_for_study(task, release)
    for model in {arm.model for arm in study.arms}:
        open_for_study(task, release, model=model)  # refuse a family that it lacks here, not in every repetition
    opened = release_of(bench)
    if study.noise == "seeded" and not opened.has("noise.json"):
        raise MissingData(
            f"{task}: {study.name} draws training noise, but {bench.release} has no noise.json; --noise mean needs none"
        )
    unit = recorded_runtime(opened.table, bench.task) if _has_worlds(study.arms) else mean_runtime(bench)
    return facts_of(bench, unit_s=unit, n_evaluations=study.n_evaluations)


def _prepare_worlds(path: Path, tasks: Iterable[str], release: Path | None) -> None:
    """Build the missing worlds of tasks; they depend on the release only."""
    for name in tasks:
        if not (target := worlds_path(path, name)).exists():
            opened = release_of(open_benchmark(name, release))
            _log.info("%s: fitting the surrogates of the cross-validation", name)
            write_worlds(target, build_worlds(opened.table, opened.task, opened.noise))


def _run_all(settings: StudySettings, jobs: Sequence[RepetitionJob]) -> list[str]:
    """Run every job; return the paths and faults of those that failed."""
    progress = Progress(len(jobs), settings.study)
    failed = []
    for n_done, done in enumerate(run_jobs(run_repetition, jobs, where=settings.where), 1):
        line, fault = done.result
        failed += [f"{done.job.repetition.path}: {fault}"] if fault else []
        progress.update(n_done, line, spent_s=done.spent_s)
    progress.close()
    return failed


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--list"]:
        return run_command("experiments.run", _listing)
    if arguments[:1] == ["live"]:
        from experiments.live import command  # trains, so it needs torch

        return command.main(arguments[1:])
    settings = _parse(arguments)

    def work() -> object:
        return {"study": settings.study, "out": str(settings.out), "repetitions_run": run(settings)}

    return run_command(
        "experiments.run", work, stopped="every finished repetition is kept; run the command again to continue"
    )


def _listing() -> str:
    lines = []
    for study in STUDIES.values():
        lines.append(f"{study.name}: {study.question} ({study.n_seeds} seeds, {', '.join(study.tasks)})")
        lines += [f"    {arm.name}  [{arm.family}]" for arm in study.arms]
    lines.append("live: the same optimisers on real trainings; see python -m experiments.run live --help")
    return "\n".join(lines)


def _command(settings: StudySettings) -> list[str]:
    """Return the command line of these settings, without paths and processes, which do not change the results."""
    flags = ["python", "-m", "experiments.run", settings.study]
    flags += ["--seeds", str(settings.seeds)] if settings.seeds else []
    flags += [word for name in settings.task for word in ("--task", name)]
    flags += [word for pattern in settings.arms for word in ("--arms", pattern)]
    flags += ["--noise", settings.noise] if settings.noise else []
    return flags + (["--family", settings.family] if settings.family else [])


def _parse(arguments: Sequence[str]) -> StudySettings:
    parser = new_parser(
        "experiments.run",
        "Run a study, or continue it.",
        example="joint --family model-free --seeds 30 --workers 2 --out out/joint",
        more="--list lists the studies and their arms. `live`, whose proposals are trained, has options of its own: "
        "python -m experiments.run live --help",
    )
    parser.add_argument("study", help=", ".join([*STUDIES, "live"]))
    parser.add_argument("--out", type=Path, required=True, help="folder of the study, made if it does not exist")
    parser.add_argument("--seeds", type=int, help="number of seeds: 0, 1, 2 and so on (default: the study's)")
    add_where(parser)
    parser.add_argument(
        "--task", action="append", default=[], help="a task; repeatable (default: the release's, or the study's)"
    )
    parser.add_argument("--arms", action="append", default=[], help="pattern of arm names; repeatable (default: all)")
    parser.add_argument("--family", choices=("model-free", "model-based"), help="only arms of this family")
    add_release(parser)
    parser.add_argument("--noise", choices=("mean", "seeded"), help="means, or training noise (default: the study's)")
    given = vars(parser.parse_args(arguments))
    return StudySettings(**{**given, "task": tuple(given["task"]), "arms": tuple(given["arms"])})


if __name__ == "__main__":
    sys.exit(main())
