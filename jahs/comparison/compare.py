"""Compare optimisers and logs with the results of a study under its terms: run, check, rank and write a page.

OUT/logs/<task>/<optimiser>/seed-0000.jsonl    one trial log for each run, complete or absent
OUT/report.md, index.html, curves.svg          the page
OUT/leaderboard.json                           its numbers
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.claims import Claim, terms_of
from jahs.comparison.leaderboard import (
    Refusal,
    are_chosen,
    boards_of,
    differences_text,
    each_once,
    find_logs,
    read_claim,
)
from jahs.comparison.page import Comparison, write_page
from jahs.comparison.processes import make_logs
from jahs.comparison.runs import RUN_AGAIN, Factory, Run, code_of, split_named
from jahs.comparison.shipped import ShippedResults, choose_shown, read_shipped
from jahs.comparison.standings import REFERENCE, Rollout, Rollouts, pairs_of, rollouts_of, standings_of
from jahs.comparison.terms import STUDIES, StudyTerms, open_terms
from jahs.errors import (
    CorruptFile,
    InvalidArgument,
    JahsError,
    MissingData,
    ProtocolMismatch,
    UnknownFormat,
    UnknownName,
    refuse,
)
from jahs.files.atomic import check_folder
from jahs.optimizers import OPTIMIZERS
from jahs.release.find import default_task, full_path
from jahs.simulate.log import read_header, read_log
from jahs.spaces.parameters import is_integer, is_number, show

BASELINES: Final = ("random_search", "hyperband", "asha", "regularized_evolution", "local_search", "nsga2")
"""Optimisers that a comparison runs by default if they take the study's objectives; NSGA-II needs several."""

_MOST_SECONDS: Final = 1e9  # alarms and timers overflow on more


def compare(
    *entries: str | Path | Factory,
    out: str | Path,
    study: str | None = None,
    task: str | None = None,
    seeds: int = 20,
    workers: int = 2,
    limit_s: float = 600.0,
    release: str | Path | None = None,
    against: Sequence[str] | None = None,
    beside: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare optimisers and logs with the results of a study: run, check every log, and write a page to `out`.

    The results of the studies come with the package; baselines are run for a release or study without them. Finished
    logs in `out` are not run again, so an interrupted comparison continues where it was.

    Args:
        *entries: what to compare: "FILE.py:NAME", a factory, an optimiser in one function, or trial logs and folders
            of them. A factory is called as `factory(view, seed=..., objectives=..., settings=...)`, with the arguments
            that it has. A factory given as an object runs in this process, others in processes of their own. A
            function given as an object keeps its state from seed to seed; one in a file starts anew for each.
            Finished logs of an object are kept only if it is a class or function at the top level of a module, so that
            its code can be compared. Lambdas, closures, partials, instances and code without a file require a new
            `out`.
        out: the folder, made if it does not exist.
        study: the study whose terms apply, see `jahs.terms`; None: the first log's, or else `baselines`.
        task: name of the task; None: the first log's, else the release's, else `DEFAULT_TASK`.
        seeds: number of seeds, which are 0, 1, 2 and so on.
        workers: number of processes.
        limit_s: seconds of wall time after which a run is ended.
        release: folder of a release, or of one per task; None: found by `jahs`.
        against: baselines to run, from `jahs.optimizers.OPTIMIZERS`, and random search; None: the results that come
            with the package, or without such results the usual baselines.
        beside: optimisers whose results come with the package, such as "dehb", to show with those of random search;
            None: all except those that were given a prior. Choose them before you see any results: Holm's correction
            is over the optimisers shown.
        progress: called with the numbers of finished runs and of all runs.

    Raises:
        InvalidArgument: an argument is invalid, the code of an optimiser cannot be read, or `out` has logs of an object
            whose code cannot be compared.
        UnknownName: there is no such study, task or baseline, or no such optimiser in the results of the study.
        MissingData: `beside` is given, but the package has no results of the study on this release.
        OptimizerFailed: an optimiser raised, proposed an invalid config or exceeded the limit; names the seed. Finished
            logs are kept.
        ProtocolMismatch: `out` has logs of other terms or other code, or no given log is valid or has these terms.
    """
    out = full_path(out)
    _check_numbers(seeds=seeds, workers=workers, limit_s=limit_s, out=out)
    folder = None if release is None else full_path(release)
    named, objects, paths = _sort_entries(entries)
    study, task = _study_of(paths, study, task, folder)
    terms = open_terms(study, task, folder)
    shipped = _read_shown(terms, against, beside)
    baselines = [] if shipped else _baselines(against, terms)
    names = [*(name for name, _ in (*named, *objects)), *baselines]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidArgument(f"several optimisers have the name {', '.join(duplicates)}; rename yours")

    release_path = None if folder is None else str(folder)
    run_of = partial(Run, study=study, task=task, budget_s=terms.budget_s, release=release_path)

    def runs_of(name: str, optimizer: str, code: str | None) -> list[Run]:
        logs = [str(out / "logs" / task / name / f"seed-{seed:04d}.jsonl") for seed in range(seeds)]
        return [run_of(name=name, optimizer=optimizer, code=code, seed=i, log=log) for i, log in enumerate(logs)]

    in_processes = [each for name, spec in named for each in runs_of(name, spec, code_of(spec))]
    in_processes += [each for name in baselines for each in runs_of(name, name, None)]
    here = [(each, factory) for name, factory in objects for each in runs_of(name, name, code_of(factory))]

    def check(log: Path) -> Claim | Refusal:
        return read_claim(log, opened=lambda name: open_benchmark(name, folder))

    checked = _check_logs(paths, check)
    check_folder(out)  # refused here, not after the runs
    own_logs = [Path(run.log) for run in (*in_processes, *(run for run, _ in here))]
    for log in make_logs(in_processes, here, workers=workers, limit_s=float(limit_s), progress=progress):
        checked[log] = check(log)  # while other processes make more
    in_order = dict.fromkeys([*own_logs, *checked])
    claims, refused = each_once({log: checked.get(log) or check(log) for log in in_order}, made=set(own_logs))
    refused = [
        replace(each, fault=f"{each.fault}; {_advice(Path(each.path))}") if Path(each.path) in own_logs else each
        for each in refused
    ]
    season_terms = terms_of(terms.view, terms.simulation(seed=0).settings, terms.bench)
    boards = boards_of(claims.values(), season=season_terms)
    if boards and boards[0].differs:
        raise ProtocolMismatch(
            f"no log has the terms of {study} on {task}: {differences_text(boards[0])}; run under "
            f"jahs.terms({study!r}, task={task!r}) or `jahs serve --study {study} --task {task}`, name another study "
            "or task, or rank logs of any terms with `jahs leaderboard`"
        )
    rollouts = rollouts_of([claim for claim in claims.values() if claim.terms == boards[0].terms], terms)
    ours = tuple(name for name in rollouts if name not in baselines)
    if shipped:
        labels = {name: f"{name} (yours)" if name in shipped.rollouts else name for name in rollouts}
        rollouts = {labels[name]: runs for name, runs in rollouts.items()} | _with_seeds_of(shipped.rollouts, rollouts)
        ours = tuple(labels[name] for name in ours)
    pairs = pairs_of(rollouts, first=ours)
    chosen = [name for name in ours if are_chosen(rollouts[name])]  # shipped results only follow these seeds
    comparison = Comparison(
        out=out,
        names=ours,
        terms=terms,
        season=shipped.season if shipped else None,
        standings=tuple(standings_of(rollouts, terms, pairs, chosen=chosen)),
        pairs=tuple(each for each in pairs if each[0] in ours),
        boards=tuple(boards),
        refused=tuple(refused),
    )
    write_page(comparison)
    return comparison


def _advice(log: Path) -> str:
    """Say what to do about a refused log of a run: a damaged one is run again, and one that breaks a rule is not."""
    try:
        read_log(log)
    except JahsError:
        return RUN_AGAIN
    return f"if the optimiser breaks this rule, change it, then remove {log.parent}"


def _read_shown(
    terms: StudyTerms, against: Sequence[str] | None, beside: Sequence[str] | None
) -> ShippedResults | None:
    """Return the results of the package that are shown; None if baselines are run."""
    if against is not None and beside is not None:
        raise InvalidArgument(
            "against runs baselines, and beside shows results that come with the package; give only one of them"
        )
    task, release = terms.bench.task.name, release_of(terms.bench)
    shipped = None if against is not None else read_shipped(terms.study, task, release.answers_as)
    if shipped is not None:
        return choose_shown(shipped, beside)
    if beside is not None:
        raise MissingData(
            f"the package has no results of {terms.study} on {task} for release {release.sha256[:16]}; name baselines "
            "to run as against= (in a terminal: --against) instead"
        )
    return None


def _with_seeds_of(shipped: Rollouts, rollouts: Rollouts) -> dict[str, Mapping[int, Rollout]]:
    """Return the shipped runs with the seeds of `rollouts`; all runs of an optimiser that has none of these seeds."""
    seeds = {seed for runs in rollouts.values() for seed in runs}
    return {name: {seed: run for seed, run in runs.items() if seed in seeds} or runs for name, runs in shipped.items()}


def _study_of(paths: Sequence[Path], study: str | None, task: str | None, release: Path | None) -> tuple[str, str]:
    """Return study and task: the arguments, else the first log's, else the release's."""
    header: Mapping[str, object] = {}
    if paths and (study is None or task is None):
        with suppress(CorruptFile, UnknownFormat, MissingData):  # the check of the log reports them
            header = read_header(find_logs(paths)[0])
    log_study = str(header.get("study"))
    task = task or str(header.get("task", default_task(release)))
    return study or (log_study if log_study in STUDIES else "baselines"), task


def _check_numbers(*, seeds: int, workers: int, limit_s: float, out: Path) -> None:
    counts = {"seeds": seeds, "workers": workers}
    wrong = {name: count for name, count in counts.items() if not (is_integer(count) and count >= 1)}
    faults = [f"{name}={show(count)} must be an integer >= 1" for name, count in wrong.items()]
    if not (is_number(limit_s) and 0 < limit_s <= _MOST_SECONDS):
        faults.append(f"limit_s={show(limit_s)} must be a number of seconds > 0 and at most 1e9")
    if out.exists() and not out.is_dir():
        faults.append(f"out={out} must be a folder; choose another one")
    refuse(*faults)


def _sort_entries(
    entries: Sequence[str | Path | Factory],
) -> tuple[list[tuple[str, str]], list[tuple[str, Factory]], list[Path]]:
    """Return optimisers in files as (name, FILE.py:NAME), those given as objects, and paths of logs."""
    named: list[tuple[str, str]] = []
    objects: list[tuple[str, Factory]] = []
    paths: list[Path] = []
    for entry in entries:
        if isinstance(entry, str) and (".py:" in entry or entry.endswith(".py")):
            file, name = split_named(entry)
            named.append((name, f"{file}:{name}"))
        elif isinstance(entry, str) and entry in OPTIMIZERS and not Path(entry).exists():
            raise InvalidArgument(f"{entry} is a baseline: --against {entry}; an optimiser of yours is FILE.py:NAME")
        elif isinstance(entry, str | Path):
            paths.append(Path(entry).expanduser())
        elif callable(entry):
            objects.append((getattr(entry, "__name__", type(entry).__name__), entry))
        else:
            raise InvalidArgument(
                f"{show(entry)} must be FILE.py:NAME, a factory, a function of the trials so far, or a path of logs; "
                "give a class rather than an optimiser, because every seed needs a new one"
            )
    return named, objects, paths


def _baselines(against: Sequence[str] | None, terms: StudyTerms) -> list[str]:
    has_many = len(terms.rules.objectives) > 1
    if against is None:
        return [name for name in BASELINES if (OPTIMIZERS[name].has_many_objectives if has_many else name != "nsga2")]
    if isinstance(against, str):
        raise InvalidArgument(f"against={show(against)} is not a list of names; for one give [{show(against)}]")
    for name in against:
        if name not in OPTIMIZERS:
            raise UnknownName.of("against", name, OPTIMIZERS)
        if has_many and not OPTIMIZERS[name].has_many_objectives:
            raise InvalidArgument(f"against: {name} takes one objective, but {terms.study} has several")
    return list(dict.fromkeys((REFERENCE, *against)))


def _check_logs(paths: Sequence[Path], check: Callable[[Path], Claim | Refusal]) -> dict[Path, Claim | Refusal]:
    """Check the given logs; at least one of each path must be valid."""
    checked: dict[Path, Claim | Refusal] = {}
    for path in paths:
        results = {log: checked.get(log) or check(log) for log in find_logs([path])}
        refused = [each for each in results.values() if isinstance(each, Refusal)]
        if len(refused) == len(results):
            raise ProtocolMismatch(f"{path} has no valid log; {refused[0].path}: {refused[0].fault}")
        checked |= results
    return checked
