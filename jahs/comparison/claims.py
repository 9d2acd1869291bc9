"""Check a trial log against the release that it names.

Every metric of every trial is queried again, and times are checked against the release's training costs. Test
accuracies are queried only here. Incumbents are scored by their means, whatever noise the optimiser saw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.benches import release_of
from jahs.comparison.logs import FINISHED, TrialLog, trial_log
from jahs.comparison.rules import rule_faults
from jahs.comparison.steps import Steps, incumbents
from jahs.errors import CorruptFile, InvalidArgument, InvalidConfig, InvalidFidelity, JahsError, ProtocolMismatch
from jahs.files.hashing import digest_facts
from jahs.queries.benchmark import Benchmark
from jahs.queries.views import View
from jahs.simulate import Log, Trial
from jahs.simulate.continuation import network_of
from jahs.simulate.settings import Settings as SimulationSettings

__all__ = ["Claim", "Terms", "by_mean", "check_log", "claim_of", "settings_of", "terms_of", "view_of"]

_RELATIVE: Final = 1e-5  # processors differ in the last bits of a float32
_MOST_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms that logs must share to be compared."""

    task: str
    release: str  # sha256 of its manifest
    searched: tuple[str, ...]  # keys of the view
    fidelities: tuple[str, ...]  # of the view
    workers: int  # simulated
    budget_s: float | None  # simulated seconds; None: unlimited
    n_trials: int | None  # at most; None: unlimited
    mode: str
    continuation: str
    failure_rate: float
    thinking: str | float
    is_noisy: bool  # whether answers contained training noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The result of a checked log."""

    terms: Terms
    name: str  # of the optimiser, or of the arm of a study
    settings: str  # of the optimiser except its seed, as text
    fixed: Mapping[str, object]  # values that the view fixes and that differ from its defaults
    seed: int  # of the simulation
    valid_error: float  # mean of the final incumbent by the release (%); NaN without an incumbent
    test_error: float  # its mean (%); NaN if the release has none
    n_trials: int
    digest: str  # of the trials; equal digests mean the same run
    incumbents: Steps = field(repr=False, compare=False)  # mean validation error of what the log chose, over time
    full: TrialLog = field(repr=False, compare=False)  # trials at the highest fidelity, with the release's means


def claim_of(log: Log, bench: Benchmark) -> Claim:
    """Check a log and return its result.

    ProtocolMismatch lists the first contradictions to the release; CorruptFile says what is invalid in itself.
    """
    view = view_of(log.header, bench)
    try:
        faults = check_log(log, view)
    except (InvalidConfig, InvalidFidelity, InvalidArgument, OverflowError) as err:
        raise CorruptFile(f"some trials are invalid in this view: {err}") from err
    if faults:
        more = [f"and {len(faults) - _MOST_SHOWN} more"] if len(faults) > _MOST_SHOWN else []
        raise ProtocolMismatch("\n".join([*faults[:_MOST_SHOWN], *more]))
    header = log.header
    columns = trial_log(header, log.trials)
    full, steps = by_mean(columns, view)
    chosen, test = incumbents(columns).rows, math.nan
    if len(chosen) and "test_acc" in view.metrics:
        final = columns.trials[chosen[-1]].config
        test = 100.0 - float(view.query_many([final], metrics=("test_acc",))["test_acc"][0])
    settings, said = settings_of(header), header.get("optimizer_settings")
    shown = {k: v for k, v in said.items() if k != "seed"} if isinstance(said, Mapping) else {}
    return Claim(
        terms=terms_of(view, settings, task=str(header["task"]), release=release_of(bench).sha256),
        name=str(header.get("arm") or header.get("optimizer")),
        settings=", ".join(f"{name}={value}" for name, value in shown.items()),
        fixed=_fixed_by_hand(view),
        seed=settings.seed,
        valid_error=float(steps.values[-1]) if len(steps.values) else math.nan,
        test_error=test,
        n_trials=len(log.trials),
        digest=digest_facts({"trials": [trial.to_dict() for trial in log.trials]}),
        incumbents=steps,
        full=full,
    )


def terms_of(view: View, settings: SimulationSettings, *, task: str, release: str) -> Terms:
    """Return the terms of a simulation with these settings."""
    return Terms(
        task=task,
        release=release,
        searched=tuple(view.space.searched),
        fidelities=tuple(view.fidelities),
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
    pinned = release_of(bench)
    if str(header.get("release")) not in pinned.answers_as:
        faults.append(f"release={header.get('release')!r}, but the pinned release is {pinned.sha256!r}")
    faults += [
        f"{name}={header.get(name)!r}, but what is compared here has {name}={own!r}"
        for name, own in (("refit", bench.refit), ("model", bench.model))
        if header.get(name) != own
    ]
    if faults:
        raise ProtocolMismatch("\n".join(faults))
    try:
        said = header["view"]
        searched, fidelities = tuple(said["searched"]), tuple(said["fidelities"])
        fixed = {key: value for key, value in said["fixed"].items() if key not in fidelities}
        view = View(bench, fidelities=fidelities, fixed=fixed)
    except (KeyError, TypeError, AttributeError, JahsError) as err:
        raise ProtocolMismatch(f"the view in the header is invalid: {err}") from err
    if searched != view.space.searched or said["fidelities"] != dict(view.full):
        raise ProtocolMismatch(
            f"the header says that {', '.join(map(str, searched))} are searched up to {said['fidelities']}, but the "
            f"view that fixes {fixed} searches {', '.join(view.space.searched)} up to {dict(view.full)}"
        )
    return view


def check_log(log: Log, view: View) -> list[str]:
    """Return every contradiction of a log to the release and to the rules of a simulation."""
    settings, trials = settings_of(log.header), log.trials
    faults = []
    if log.ending is None:
        faults.append("the log was cut short: its last line must state how it ended")
    if settings.speeds is not None:
        faults.append(f"speeds={log.header['speeds']} must be None: workers of other speeds cannot be compared")
    if len({trial.trial for trial in trials}) != len(trials):
        faults.append("some trials are in the log twice")
    if settings.n_trials is not None and len(trials) > settings.n_trials:
        faults.append(f"there are {len(trials)} trials, but n_trials={settings.n_trials}")
    found = [*_time_faults(trials, settings), *_metric_faults(trials, view), *_cost_faults(trials, view)]
    return [*faults, *found, *rule_faults(log, settings)]


def _time_faults(trials: Sequence[Trial], settings: SimulationSettings) -> list[str]:
    """Return overlapping trials of a worker, unknown workers, and results after the budget."""
    n_workers, budget = settings.workers, settings.budget
    faults = []
    busy_until: dict[int, float] = {}
    for trial in sorted(trials, key=lambda t: (t.start, t.end, t.trial)):
        if trial.worker >= n_workers:
            faults.append(f"trial {trial.trial}: worker={trial.worker}, but there are {n_workers}")
        elif trial.start < busy_until.get(trial.worker, 0.0):
            faults.append(
                f"trial {trial.trial}: starts at {trial.start} s on worker {trial.worker}, which is busy until "
                f"{busy_until[trial.worker]} s"
            )
        else:
            busy_until[trial.worker] = trial.end
        if budget is not None and trial.end > budget:
            faults.append(f"trial {trial.trial}: ends at {trial.end} s, after the budget of {budget} s")
    return faults


def _metric_faults(trials: Sequence[Trial], view: View) -> list[str]:
    """Return metrics that differ from the release's, and finished trials without them."""
    told = [trial for trial in trials if trial.metrics or trial.status == FINISHED]
    answers = _ask(view, told)
    faults = []
    for i, trial in enumerate(told):
        for name, said in trial.metrics.items():
            if name not in answers:
                faults.append(f"trial {trial.trial}: {name}={said}, but the release has no such metric")
            elif not abs(said - answers[name][i]) <= _RELATIVE * max(1.0, abs(answers[name][i])):
                faults.append(f"trial {trial.trial}: {name}={said}, but the release answers {answers[name][i]}")
        if trial.status == FINISHED and "valid_acc" not in trial.metrics and np.isfinite(answers["valid_acc"][i]):
            faults.append(f"trial {trial.trial}: finished without valid_acc")
    return faults


def _cost_faults(trials: Sequence[Trial], view: View) -> list[str]:
    """Return trials that are shorter than their training, given all earlier training of the same network.

    A log does not state the epochs of reports. So every epoch that a training has passed by then, running or not,
    counts as a checkpoint. No honest log is refused, and every second of training must have been spent by a trial.
    """
    told = sorted((trial for trial in trials if trial.metrics), key=lambda t: (t.start, t.trial))
    runtimes = _runtimes(told, view)
    passed = {network: np.full(view.max_epoch, np.inf) for network in runtimes}  # earliest time of each epoch
    faults = []
    for trial in told:
        network, last = network_of(trial), int(trial.fidelity["epoch"]) - 1
        runtime, earliest = runtimes[network], passed[network]
        is_there = earliest[:last] <= trial.start + _RELATIVE * (1 + runtime[:last])
        paid = float(runtime[:last][is_there].max(initial=0.0))
        cost = float(runtime[last]) - paid
        if not trial.end - trial.start >= cost * (1 - _RELATIVE) - _RELATIVE:
            faults.append(
                f"trial {trial.trial}: took {trial.end - trial.start:.6g} s, but its training costs {cost:.6g} s"
            )
        earliest[: last + 1] = np.fmin(earliest[: last + 1], trial.start + runtime[: last + 1] - paid)
    return faults


def _runtimes(trials: Sequence[Trial], view: View) -> dict[tuple[object, ...], NDArray[np.float64]]:
    """Return each network's runtimes up to its last epoch, (max_epoch,); only that epoch's if it has one trial."""
    by_network: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        by_network.setdefault(network_of(trial), []).append(trial)
    asked = []
    for same in by_network.values():
        last = max(same, key=lambda trial: trial.fidelity["epoch"])
        n_epochs = int(last.fidelity["epoch"])
        epochs = range(1 if len(same) > 1 else n_epochs, n_epochs + 1)
        asked += [replace(last, fidelity={**last.fidelity, "epoch": epoch}) for epoch in epochs]
    found = {network: np.full(view.max_epoch, np.nan) for network in by_network}
    answers = _ask(view, asked, metrics=("runtime",))["runtime"]
    for trial, answer in zip(asked, answers.tolist(), strict=True):
        found[network_of(trial)][int(trial.fidelity["epoch"]) - 1] = answer
    return found


def _ask(
    view: View, trials: Sequence[Trial], *, metrics: Sequence[str] | None = None
) -> dict[str, NDArray[np.float64]]:
    """Query metrics (None: all) of every trial, (n,) each."""
    configs, epochs = [], []
    for trial in trials:
        sizes = {name: value for name, value in trial.fidelity.items() if name != "epoch"}
        epoch = int(trial.fidelity["epoch"])
        asked = sizes if epoch == view.max_epoch else trial.fidelity  # the last epoch need not be a fidelity
        if strange := [name for name in asked if name not in view.fidelities]:
            raise CorruptFile(f"trial {trial.trial}: {', '.join(strange)} must be a fidelity of its view")
        configs.append({**view.space.validate(trial.config), **sizes})
        epochs.append(epoch)
    found = {name: np.full(len(trials), np.nan) for name in metrics or view.metrics}
    for seed in dict.fromkeys(trial.seed for trial in trials):
        rows = [i for i, trial in enumerate(trials) if trial.seed == seed]
        each_at = np.array(epochs)[rows]
        answers = view.bench.query_many([configs[i] for i in rows], each_at=each_at, seed=seed, metrics=metrics)
        for name, values in answers.items():
            found[name][rows] = values
    return found


def by_mean(columns: TrialLog, view: View) -> tuple[TrialLog, Steps]:
    """Return the trials at the highest fidelity and the incumbent's validation error over time, both by their means.

    The incumbent is chosen by what the trials say, with their noise; the release answers its mean.
    """
    full = columns.full()
    configs = [columns.trials[row].config for row in np.flatnonzero(columns.is_full).tolist()]
    answers = view.query_many(configs, metrics=tuple(full.metrics)) if configs and full.metrics else full.metrics
    means = {name: np.where(np.isnan(said), np.nan, answers[name]) for name, said in full.metrics.items()}
    chosen, reported = incumbents(full), replace(full, metrics=means)
    values = reported.minimised("valid_acc")[chosen.rows] if len(chosen.rows) else np.empty(0)
    return reported, Steps(times=chosen.steps.times, values=values)


def _fixed_by_hand(view: View) -> dict[str, object]:
    usual = View(view.bench, fidelities=tuple(view.fidelities), search=view.space.searched, fixed="default").space.fixed
    return {name: value for name, value in view.space.fixed.items() if value != usual[name]}


def settings_of(header: Mapping[str, Any]) -> SimulationSettings:  # Any: JSON
    """Return the simulation's settings in a header; CorruptFile if they are invalid."""
    given: dict[str, Any] = {each.name: header.get(each.name) for each in fields(SimulationSettings)}  # Any: JSON
    try:
        return SimulationSettings(**given)
    except InvalidArgument as err:
        raise CorruptFile(f"the settings in the header are invalid: {err}") from err
