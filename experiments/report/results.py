"""A study's logs, reduced to the content of its page. Time is in mean full evaluations."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from experiments.folder import StudyFolder, read_folder
from experiments.packs import LogContent, is_pack, read_pack, season_of
from experiments.study import Arm, Repetition, Study
from experiments.views import open_view
from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.logs import FINISHED, Floats, trial_log
from jahs.comparison.steps import Steps, incumbents, on_grid
from jahs.comparison.terms import ViewChoice
from jahs.errors import CorruptFile, ProtocolMismatch
from jahs.queries.benchmark import Benchmark
from jahs.simulate import Log, read_log
from jahs.spaces.configs import Config
from workshop.jobs import in_processes

_FEW: Final = 64  # logs; for more, processes are worth starting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepetitionResult:
    """One log, reduced."""

    repetition: Repetition
    incumbents: Steps  # the incumbent's mean validation error over time. With training noise it may rise.
    configs: tuple[Config, ...]  # the config of each incumbent
    observed: float  # the last incumbent's validation error in its log, with its training noise; NaN without one
    full_times: Floats  # ends of the trials at the highest fidelity, (n,), if metrics were requested
    full_configs: tuple[Config, ...]
    full_metrics: Mapping[str, Floats]  # the requested metrics of these trials, to be minimised, as means
    n_trials: int
    n_finished: int
    # The optimiser's settings except its seed.
    settings: Mapping[str, Any]  # Any: JSON

    def points(self, names: Sequence[str]) -> tuple[Floats, Floats]:
        """Return times and metrics (n, m) of the full trials that have all of these metrics."""
        if not self.full_metrics:
            return np.empty(0), np.empty((0, len(names)))
        F = np.stack([self.full_metrics[name] for name in names], axis=1)
        is_known = ~np.isnan(F).any(axis=1)
        return self.full_times[is_known], F[is_known]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Results:
    """The content of a study's folder."""

    folder: StudyFolder
    study: Study
    # tasks, arms: tasks and arms with at least one result, in order.
    tasks: tuple[str, ...]
    arms: tuple[Arm, ...]
    by_arm: Mapping[tuple[str, str], tuple[RepetitionResult, ...]]  # results by task and arm, in order of seeds
    # The same on the release's refits, in order of refits and seeds.
    on_refits: Mapping[tuple[str, str], tuple[RepetitionResult, ...]]
    # Benchmarks by task, for test accuracies and reference points; empty if the models are not there.
    bench: Mapping[str, Benchmark]

    def arms_of(self, chapter: str, task: str | None = None) -> tuple[Arm, ...]:
        """Return the arms of a chapter with at least one result on this task, or on any."""
        return tuple(
            arm for arm in self.arms if arm.chapter == chapter and (task is None or (task, arm.name) in self.by_arm)
        )

    def seeds(self, task: str, arms: Sequence[Arm]) -> list[int]:
        """Return the seeds that all these arms have finished on a task."""
        sets = [{result.repetition.seed for result in self.by_arm.get((task, arm.name), ())} for arm in arms]
        return sorted(set.intersection(*sets)) if sets else []

    def of(self, task: str, arm: Arm, seeds: Sequence[int] | None = None) -> list[RepetitionResult]:
        """Return the results of an arm on a task in order of seeds; `seeds` selects some."""
        results = self.by_arm.get((task, arm.name), ())
        return [result for result in results if seeds is None or result.repetition.seed in seeds]

    def of_chapter(self, task: str, arm: Arm) -> list[RepetitionResult]:
        """Return the results of an arm with the seeds that all arms of its chapter have finished on a task."""
        return self.of(task, arm, self.seeds(task, self.arms_of(arm.chapter, task)))

    def steps(self, task: str, arm: Arm, seeds: Sequence[int] | None = None) -> list[Steps]:
        """Return validation error over time for each seed."""
        return [result.incumbents for result in self.of(task, arm, seeds)]

    def errors(self, task: str, arms: Sequence[Arm], seeds: Sequence[int], times: Floats) -> Floats:
        """Return the validation errors of some seeds over time, (n_arms, n_seeds, n_times); NaN before a result."""
        return np.stack([on_grid(self.steps(task, arm, seeds), times) for arm in arms])


@functools.cache
def best_at_full_size(bench: Benchmark, metric: str) -> float:
    """Return the best known mean of a metric at the sizes that studies with one objective search or end at."""
    return bench.best(metric, open_view(bench, ViewChoice(), seed=0)).value


def read_results(path: Path, *, bench: Mapping[str, Benchmark], workers: int = 1) -> Results:
    """Read every log of a study's folder, or its pack.

    Args:
        bench: the benchmarks of its tasks; a pack of means with one objective needs none.

    Raises:
        ProtocolMismatch: a benchmark has another release than the logs, or settings differ between logs of one arm.
    """
    folder = read_folder(path)
    study = folder.study
    for task, benchmark in bench.items():
        facts, release = folder.tasks[task], release_of(benchmark)
        if facts.release not in release.answers_as:
            raise ProtocolMismatch(
                f"{task}: the logs used release {facts.release[:16]} (season {season_of(folder.tasks)}), this one is "
                f"{release.sha256[:16]}; a page does not mix seasons: name their release, or run the study again"
            )
    metrics = tuple(dict.fromkeys(name for names in study.combinations for name in names))
    if is_pack(path):
        known = {task: [name for name in metrics if name in benchmark.metrics] for task, benchmark in bench.items()}
        read = []
        for log in read_pack(path):
            unknown = np.full(len(log.found), np.nan)  # queried again below
            read.append(_reduced(log, folder, dict.fromkeys(known.get(log.repetition.task, ()), unknown)))
    else:
        calls = [{"folder": folder, "repetition": repetition, "metrics": metrics} for repetition in folder.finished()]
        read = in_processes(read_repetition, calls, workers=workers if len(calls) > _FEW else 1)
    _check_settings(read)
    is_of_release = all(arm.is_of_release for arm in study.arms)  # other worlds have no means
    if (study.noise == "seeded" and is_of_release) or (metrics and is_pack(path)):
        read = _by_mean(read, study, bench)
    by_arm: dict[tuple[str, str], tuple[RepetitionResult, ...]] = {}
    on_refits: dict[tuple[str, str], tuple[RepetitionResult, ...]] = {}
    for result in sorted(read, key=lambda r: (r.repetition.refit or 0, r.repetition.seed)):
        own = result.repetition
        group = by_arm if own.refit is None else on_refits
        group[own.task, own.arm] = (*group.get((own.task, own.arm), ()), result)
    return Results(
        folder=folder,
        study=study,
        tasks=tuple(task for task in folder.tasks if any(key[0] == task for key in by_arm)),
        arms=tuple(arm for arm in study.arms if any(key[1] == arm.name for key in by_arm)),
        by_arm=by_arm,
        on_refits=on_refits,
        bench=bench,
    )


def _by_mean(read: Sequence[RepetitionResult], study: Study, bench: Mapping[str, Benchmark]) -> list[RepetitionResult]:
    """Return results with the means of their configs in place of draws, from the models that answered."""
    parts: dict[tuple[str, int | None, str | None], list[int]] = {}
    for number, result in enumerate(read):
        repetition = result.repetition
        parts.setdefault((repetition.task, repetition.refit, study.arm(repetition.arm).model), []).append(number)
    replaced = list(read)
    for (task, refit, model), numbers in parts.items():
        is_other = refit is not None or model is not None
        answers = open_benchmark(task, bench[task].release, refit=refit, model=model) if is_other else bench[task]
        results = [read[number] for number in numbers]
        errors = _means(answers, [result.configs for result in results], ["valid_acc"])["valid_acc"]
        names = sorted({name for result in results for name in result.full_metrics})
        metrics = _means(answers, [result.full_configs for result in results], names)
        for i, number in enumerate(numbers):
            steps = Steps(times=results[i].incumbents.times, values=errors[i])
            full_metrics = {name: metrics[name][i] for name in results[i].full_metrics}
            replaced[number] = replace(results[i], incumbents=steps, full_metrics=full_metrics)
    return replaced


def _means(bench: Benchmark, configs: Sequence[Sequence[Config]], names: Sequence[str]) -> dict[str, list[Floats]]:
    """Return metrics at the last epoch, to be minimised, of the configs of each run."""
    columns = bench.objectives([*chain.from_iterable(configs)], metrics=names).T if names else ()
    return {name: split_by_run(column, configs) for name, column in zip(names, columns, strict=True)}


def split_by_run(values: Floats, configs: Sequence[Sequence[Config]]) -> list[Floats]:
    """Return the values of each run, given those of the configs of all runs."""
    return np.split(values, np.cumsum([len(of_run) for of_run in configs]))[:-1]


def read_repetition(folder: StudyFolder, repetition: Repetition, *, metrics: Sequence[str]) -> RepetitionResult:
    """Read and reduce one log."""
    log = read_own_log(folder, repetition)
    trials = trial_log(log.header, log.trials)
    full = trials.full()
    content = LogContent(
        repetition=repetition,
        found=full,
        configs=tuple(trials.trials[row].config for row in np.flatnonzero(trials.is_full).tolist()),
        n_trials=len(trials),
        n_finished=sum(trial.status == FINISHED for trial in trials.trials),
        settings=log.header.get("optimizer_settings"),
    )
    return _reduced(content, folder, {name: full.minimised(name) for name in metrics if name in full.metrics})


def read_own_log(folder: StudyFolder, repetition: Repetition) -> Log:
    """Read the log of a repetition; refuse one of another repetition, and one that was cut short."""
    source = folder.path / repetition.path
    log = read_log(source)
    release, digest = folder.tasks[repetition.task].release, folder.study.digest_of(repetition.arm)
    expected = {**asdict(repetition), "release": release, "arm_digest": digest}
    fields = [(key, log.header.get(key), value) for key, value in expected.items()]
    if wrong := [f"{key}={actual!r} instead of {value!r}" for key, actual, value in fields if actual != value]:
        raise CorruptFile(f"{source} belongs to another repetition: {', '.join(wrong)}; remove it and run again")
    if log.ending is None:
        raise CorruptFile(f"{source} was cut short; remove it and run again")
    return log


def _reduced(log: LogContent, folder: StudyFolder, metrics: Mapping[str, Floats]) -> RepetitionResult:
    """Return the trials at the highest fidelity as a page needs them, with their configs and these metrics."""
    best, unit_s = incumbents(log.found), folder.tasks[log.repetition.task].mean_runtime_s
    return RepetitionResult(
        repetition=log.repetition,
        incumbents=best.steps.scaled(unit_s),
        configs=tuple(log.configs[row] for row in best.rows.tolist()),
        observed=float(best.steps.values[-1]) if len(best.rows) else math.nan,
        full_times=log.found.end / unit_s if metrics else np.empty(0),
        full_configs=log.configs if metrics else (),
        full_metrics=metrics,
        n_trials=log.n_trials,
        n_finished=log.n_finished,
        settings={k: v for k, v in log.settings.items() if k != "seed"} if isinstance(log.settings, Mapping) else {},
    )


def _check_settings(read: Sequence[RepetitionResult]) -> None:
    """Refuse an arm whose optimiser had different settings in some repetitions, as after a change of its defaults."""
    first: dict[tuple[str, str], RepetitionResult] = {}  # priors depend on the task
    for result in read:
        before = first.setdefault((result.repetition.task, result.repetition.arm), result)
        if result.settings != before.settings:
            names = sorted({*result.settings, *before.settings})
            one, two = ({name: r.settings.get(name) for name in names} for r in (before, result))
            differing = "; ".join(f"{name}={one[name]!r} and {two[name]!r}" for name in names if one[name] != two[name])
            raise ProtocolMismatch(
                f"the arm {result.repetition.arm} was run with several settings of its optimiser: {differing}, in "
                f"{before.repetition.path} and {result.repetition.path}; remove all logs with one of them and run again"
            )
