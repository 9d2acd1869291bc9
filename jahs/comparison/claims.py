"""The result that a trial log claims, checked against the release that it names.

Incumbents are scored by their means, whatever noise the optimiser saw. Test accuracies are queried only here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, cast

import numpy as np

from jahs.comparison.benches import errors_by_refits, release_of
from jahs.comparison.logs import TrialLog, trial_log
from jahs.comparison.rules import RELATIVE, check_log
from jahs.comparison.runs import Factory, make_optimizer
from jahs.comparison.steps import Steps, incumbents
from jahs.comparison.terms import STUDIES
from jahs.errors import (
    CorruptFile,
    InvalidArgument,
    InvalidConfig,
    InvalidFidelity,
    JahsError,
    OptimizerFailed,
    ProtocolMismatch,
    first_of,
)
from jahs.files.hashing import digest_facts
from jahs.queries.benchmark import Benchmark
from jahs.queries.views import View
from jahs.schema import SIZE_KEYS
from jahs.simulate import Log, Simulation, Trial, visible
from jahs.simulate.settings import Settings as SimulationSettings

_MOST_SHOWN: Final = 5
_EXACT: Final = ("trial", "config", "fidelity", "seed", "worker", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms that logs must share to be compared."""

    task: str
    release: str  # sha256 of its manifest
    searched: tuple[str, ...]  # keys that the view searches
    fidelities: tuple[str, ...]  # fidelities of the view
    sizes: tuple[tuple[str, float], ...]  # N, W and Resolution where the view fixes them
    workers: int  # simulated workers
    budget_s: float | None  # simulated seconds; None: unlimited
    n_trials: int | None  # maximum number of trials; None: unlimited
    mode: str
    continuation: str
    failure_rate: float
    thinking: str | float
    is_noisy: bool  # whether answers contained training noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The result of a checked log."""

    terms: Terms
    name: str  # name of the optimiser, or of the arm of a study
    settings: str  # settings of the optimiser except its seed, as text
    fixed: Mapping[str, object]  # values that the view fixes and that differ from its defaults, sizes excepted
    seed: int  # seed of the simulation
    has_several_objectives: bool  # whether the log is of a study of several objectives
    valid_error: float  # the release's mean for the final incumbent (%); NaN without an incumbent
    test_error: float  # the same for the test error (%); NaN if the release does not answer it
    refit_error: float  # the refits' mean validation error for it (%); NaN without refits
    digest: str  # digest of the trials; equal digests mean the same run
    incumbents: Steps = field(repr=False, compare=False)  # mean validation error of the log's incumbents, over time
    full: TrialLog = field(repr=False, compare=False)  # trials at the highest fidelity, with the release's means


def claim_of(log: Log, bench: Benchmark) -> Claim:
    """Check a log and return its result.

    ProtocolMismatch lists the first contradictions between log and release; CorruptFile means an invalid log.
    """
    view = view_of(log.header, bench)
    try:
        settings = settings_of(log.header)
        faults = check_log(log, view, settings)
    except (InvalidConfig, InvalidFidelity, InvalidArgument, OverflowError) as err:
        raise CorruptFile(f"some trials are invalid in this view: {err}") from err
    if faults:
        raise ProtocolMismatch("\n".join(first_of(faults, _MOST_SHOWN)))
    header = log.header
    name = header.get("arm") or header.get("optimizer")
    if not name:
        raise ProtocolMismatch("the header names no optimizer; give facts={'optimizer': 'NAME'} to the Simulation")
    study = STUDIES.get(str(header.get("study")))
    columns = trial_log(header, log.trials)
    full, steps = by_mean(columns, view)
    final = [columns.trials[row].config for row in incumbents(columns).rows[-1:].tolist()]
    test_error = refit_error = math.nan
    if final:
        refit_error = float(errors_by_refits(bench, final)[0])
        if "test_acc" in view.metrics:
            test_error = 100.0 - float(view.query_many(final, metrics=("test_acc",))["test_acc"][0])
    return Claim(
        terms=terms_of(view, settings, bench),
        name=str(name),
        settings=", ".join(f"{name}={value}" for name, value in _optimizer_settings(header).items()),
        fixed=_fixed_by_hand(view),
        seed=settings.seed,
        has_several_objectives=study is not None and len(study.objectives) > 1,
        valid_error=float(steps.values[-1]) if len(steps.values) else math.nan,
        test_error=test_error,
        refit_error=refit_error,
        digest=digest_facts({"trials": [trial.to_dict() for trial in log.trials]}),
        incumbents=steps,
        full=full,
    )


def terms_of(view: View, settings: SimulationSettings, bench: Benchmark) -> Terms:
    """Return the terms of a simulation of a benchmark with these settings."""
    return Terms(
        task=bench.task.name,
        release=release_of(bench).sha256,
        searched=tuple(view.space.searched),
        fidelities=tuple(view.fidelities),
        sizes=tuple(
            (name, cast("float", value))
            for name, value in view.space.fixed.items()
            if name in SIZE_KEYS and name not in view.fidelities
        ),
        workers=settings.workers,
        budget_s=settings.budget,
        n_trials=settings.n_trials,
        mode=settings.mode,
        continuation=settings.continuation,
        failure_rate=settings.failure_rate,
        thinking=settings.thinking,
        is_noisy=settings.evaluation_seed is not None,
    )


def view_of(header: Mapping[str, Any], bench: Benchmark) -> View:  # Any: JSON
    """Return the view that a log's header describes; ProtocolMismatch if it has another task or release."""
    faults = []
    if header.get("task") != bench.task.name:
        faults.append(f"task={header.get('task')!r}, but the task of this release is {bench.task.name!r}")
    release = release_of(bench)
    if str(header.get("release")) not in release.answers_as:
        faults.append(f"release={header.get('release')!r}, but the pinned release is {release.sha256!r}")
    faults += [
        f"{name}={header.get(name)!r}, but this comparison requires {name}={expected!r}"
        for name, expected in (("refit", bench.refit), ("model", bench.model))
        if header.get(name) != expected
    ]
    if faults:
        raise ProtocolMismatch("\n".join(faults))
    try:
        facts = header["view"]
        searched, fidelities = tuple(facts["searched"]), tuple(facts["fidelities"])
        fixed = {key: value for key, value in facts["fixed"].items() if key not in fidelities}
        view = View(bench, fidelities=fidelities, fixed=fixed)
    except (KeyError, TypeError, AttributeError, JahsError) as err:
        raise ProtocolMismatch(f"the view in the header is invalid: {err}") from err
    if searched != view.space.searched or facts["fidelities"] != dict(view.full):
        raise ProtocolMismatch(
            f"the header says that {', '.join(map(str, searched))} are searched up to {facts['fidelities']}, but the "
            f"view that fixes {fixed} searches {', '.join(view.space.searched)} up to {dict(view.full)}"
        )
    return view


def by_mean(columns: TrialLog, view: View) -> tuple[TrialLog, Steps]:
    """Return the trials at the highest fidelity and the incumbent's validation error over time, both by their means.

    The incumbent is chosen by the values in the trials, noise included, and scored by the release's mean.
    """
    full = columns.full()
    configs = [columns.trials[row].config for row in np.flatnonzero(columns.is_full).tolist()]
    answers = view.query_many(configs, metrics=tuple(full.metrics)) if configs and full.metrics else full.metrics
    means = {name: np.where(np.isnan(logged), np.nan, answers[name]) for name, logged in full.metrics.items()}
    best, rescored = incumbents(full), replace(full, metrics=means)
    values = rescored.minimised("valid_acc")[best.rows] if len(best.rows) else np.empty(0)
    return rescored, Steps(times=best.steps.times, values=values)


def _fixed_by_hand(view: View) -> dict[str, object]:
    fidelities, searched = tuple(view.fidelities), view.space.searched
    defaults = View(view.bench, fidelities=fidelities, search=searched, fixed="default").space.fixed
    return {
        name: value for name, value in view.space.fixed.items() if value != defaults[name] and name not in SIZE_KEYS
    }


def settings_of(header: Mapping[str, Any]) -> SimulationSettings:  # Any: JSON
    """Return the simulation's settings in a header; CorruptFile if they are invalid."""
    settings: dict[str, Any] = {each.name: header.get(each.name) for each in fields(SimulationSettings)}  # Any: JSON
    try:
        return SimulationSettings(**settings)
    except InvalidArgument as err:
        raise CorruptFile(f"the settings in the header are invalid: {err}") from err


def replay(factory: Factory, log: Log, bench: Benchmark) -> int:
    """Run the optimiser again; return the number of trials if all are equal to the log's.

    ProtocolMismatch names the first difference; OptimizerFailed if the factory or the optimiser raised.
    """
    view, settings = view_of(log.header, bench), settings_of(log.header)
    if settings.thinking == "measured":
        raise ProtocolMismatch("thinking='measured' depends on a machine's clock; such a run cannot be replayed")
    names = log.header.get("metrics")
    metrics = tuple(map(str, names)) if isinstance(names, list) else None
    optimizer_settings, study = _optimizer_settings(log.header), STUDIES.get(str(log.header.get("study")))
    objectives = tuple(optimizer_settings.pop("objectives", ()) or (study.objectives if study else ("valid_acc",)))
    simulation = Simulation(view, **settings.facts(), metrics=metrics)  # type: ignore[arg-type]  # as checked
    try:
        optimizer = make_optimizer(
            factory, visible(view, metrics), seed=settings.seed, objectives=objectives, settings=optimizer_settings
        )
        trials = simulation.run(optimizer)
    except JahsError as err:
        raise OptimizerFailed(f"the rerun failed: {err}") from err
    for number, (logged, rerun) in enumerate(zip(log.trials, trials, strict=False)):
        if fault := _difference(logged, rerun):
            raise ProtocolMismatch(
                f"the rerun differs at trial {logged.trial}, which ended as number {number + 1}, of the log of "
                f"{log.header.get('optimizer')}: {fault}"
            )
    if len(trials) != len(log.trials):
        raise ProtocolMismatch(f"the rerun has {len(trials)} trials, the log {len(log.trials)}")
    return len(trials)


def _optimizer_settings(header: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return the optimiser's settings in a header, without its seed."""
    settings = header.get("optimizer_settings")
    return {name: value for name, value in settings.items() if name != "seed"} if isinstance(settings, Mapping) else {}


def _difference(logged: Trial, rerun: Trial) -> str | None:
    for name in _EXACT:
        old, new = getattr(logged, name), getattr(rerun, name)
        if old != new:
            if name == "config":
                return "; ".join(
                    f"the log says {key}={old[key]!r}, the rerun {new[key]!r}" for key in old if old[key] != new[key]
                )
            return f"the log says {name}={old!r}, the rerun {new!r}"
    numbers = {"start": (logged.start, rerun.start), "end": (logged.end, rerun.end)}
    numbers |= {name: (logged.metrics.get(name, math.nan), value) for name, value in rerun.metrics.items()}
    for name, (old, new) in numbers.items():
        if not math.isclose(old, new, rel_tol=RELATIVE, abs_tol=RELATIVE):
            return f"the log says {name}={old!r}, the rerun {new!r}"
    return None
