"""What a trial log claims, worked out again from the release that it names.

Nothing that a log says about results is believed: every metric of every trial is asked again, times are checked against
the costs that the release answers, and test accuracies are asked only here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.logs import FINISHED, trial_log
from experiments.analysis.steps import incumbents
from experiments.benches import release_facts
from experiments.rules import rule_faults
from jahs.errors import CorruptFile, InvalidArgument, InvalidConfig, InvalidFidelity, JahsError, ProtocolMismatch
from jahs.files.hashing import digest_facts
from jahs.queries.benchmark import Benchmark
from jahs.queries.views import View
from jahs.simulate import Log, Trial
from jahs.simulate.continuation import network_of
from jahs.simulate.settings import Settings
from jahs.spaces.parameters import is_number

__all__ = ["Claim", "Terms", "check_log", "claim_of", "settings_of", "view_of"]

_RELATIVE: Final = 1e-5  # processors differ in the last bits of a float32
_MOST_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What logs must have in common to be compared.

    Attributes:
        task, release: what was asked.
        searched, fidelities: of the view.
        workers, budget_s: simulated; no budget: None.
        n_trials: how many trials might start; None: as many as the budget allows.
        mode, continuation, failure_rate, thinking: of the simulation.
        is_noisy: whether answers were draws of training noise.
    """

    task: str
    release: str
    searched: tuple[str, ...]
    fidelities: tuple[str, ...]
    workers: int
    budget_s: float | None
    n_trials: int | None
    mode: str
    continuation: str
    failure_rate: float
    thinking: str | float
    is_noisy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a log is worth.

    Attributes:
        terms: with what it may be compared.
        name: of the optimiser, or of the arm of a study.
        settings: of the optimiser but for its seed, as text.
        fixed: values that the view fixes, where a view that was given none would fix other ones.
        seed: of the run.
        valid_error: of the incumbent at the end, as the release answers it; NaN without one.
        test_error: its mean test error, which no optimiser sees; NaN where the release has none.
        n_trials: how many there were.
        digest: of the trials: two logs with the same one are the same run.
    """

    terms: Terms
    name: str
    settings: str
    fixed: Mapping[str, object]
    seed: int
    valid_error: float
    test_error: float
    n_trials: int
    digest: str


def claim_of(log: Log, bench: Benchmark) -> Claim:
    """Check a log and return what it is worth.

    Raises:
        ProtocolMismatch: it is of another release, or its results or times are not those of this one; every fault.
        CorruptFile: it holds trials or a header that cannot be.
    """
    view = view_of(log.header, bench)
    try:
        faults = check_log(log, view)
    except (InvalidConfig, InvalidFidelity, InvalidArgument, OverflowError) as err:
        raise CorruptFile(f"there are trials that this view cannot ask for: {err}") from err
    if faults:
        more = [f"and {len(faults) - _MOST_SHOWN} more"] if len(faults) > _MOST_SHOWN else []
        raise ProtocolMismatch("\n".join([*faults[:_MOST_SHOWN], *more]))
    header = log.header
    columns = trial_log(header, log.trials)
    rows = incumbents(columns).rows
    valid, test = _final_errors(view, columns.trials[rows[-1]] if len(rows) else None)
    settings, said = settings_of(header), header.get("optimizer_settings")
    shown = {k: v for k, v in said.items() if k != "seed"} if isinstance(said, Mapping) else {}
    return Claim(
        terms=Terms(
            task=str(header["task"]),
            release=release_facts(bench).sha256,
            searched=tuple(view.space.searched),
            fidelities=tuple(view.fidelities),
            workers=_integer(header, "workers"),
            budget_s=_budget(header),
            n_trials=_n_trials(header),
            mode=settings.mode,
            continuation=settings.continuation,
            failure_rate=settings.failure_rate,
            thinking=settings.thinking,
            is_noisy=settings.evaluation_seed is not None,
        ),
        name=str(header.get("arm") or header.get("optimizer")),
        settings=", ".join(f"{name}={value}" for name, value in shown.items()),
        fixed=_fixed_by_hand(view),
        seed=_integer(header, "seed"),
        valid_error=valid,
        test_error=test,
        n_trials=len(log.trials),
        digest=digest_facts({"trials": [trial.to_dict() for trial in log.trials]}),
    )


def view_of(header: Mapping[str, Any], bench: Benchmark) -> View:  # Any: JSON
    """Return the view that a log's header describes.

    Raises:
        ProtocolMismatch: the log is of another task or release, or describes no view of this one.
    """
    faults = []
    if header.get("task") != bench.task.name:
        faults.append(f"task={header.get('task')!r}, but this release answers for {bench.task.name!r}")
    pinned = release_facts(bench)
    if str(header.get("release")) not in pinned.answers_as:
        faults.append(f"release={header.get('release')!r}, but the pinned release is {pinned.sha256!r}")
    if faults:
        raise ProtocolMismatch("\n".join(faults))
    try:
        said = header["view"]
        searched, fidelities = tuple(said["searched"]), tuple(said["fidelities"])
        fixed = {key: value for key, value in said["fixed"].items() if key not in fidelities}
        view = View(bench, fidelities=fidelities, fixed=fixed)
    except (KeyError, TypeError, AttributeError, JahsError) as err:
        raise ProtocolMismatch(f"the header describes no view of this benchmark: {err}") from err
    if searched != view.space.searched or said["fidelities"] != dict(view.full):
        raise ProtocolMismatch(
            f"the header says that {', '.join(map(str, searched))} are searched up to {said['fidelities']}; the "
            f"view that fixes {fixed} searches {', '.join(view.space.searched)} up to {dict(view.full)}"
        )
    return view


def check_log(log: Log, view: View) -> list[str]:
    """Return everything in which a log is not what the release and the rules of a simulation allow."""
    faults = []
    if log.ending is None:
        faults.append("the log was cut short: its last line does not say how it ended")
    if log.header.get("speeds") is not None:
        faults.append(f"speeds={log.header['speeds']}: workers of other speeds cannot be compared")
    trials = log.trials
    if len({trial.trial for trial in trials}) != len(trials):
        faults.append("some trials stand in the log twice")
    n_trials = _n_trials(log.header)
    if n_trials is not None and len(trials) > n_trials:
        faults.append(f"there are {len(trials)} trials, but n_trials={n_trials}")
    if n_trials is None and _budget(log.header) is None:
        faults.append("the header says neither a budget nor n_trials")
    found = [*_time_faults(log), *_metric_faults(trials, view), *_cost_faults(trials, view)]
    return [*faults, *found, *rule_faults(log, settings_of(log.header))]


def _time_faults(log: Log) -> list[str]:
    """Workers that do two things at once or are not there, and results after the budget."""
    n_workers, budget = _integer(log.header, "workers"), _budget(log.header)
    faults = []
    busy_until: dict[int, float] = {}
    for trial in sorted(log.trials, key=lambda t: (t.start, t.end, t.trial)):
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
    """Metrics that the release does not answer, and finished trials that do not say what it answers."""
    told = [trial for trial in trials if trial.metrics or trial.status == FINISHED]
    answers = _ask(view, told)
    faults = []
    for i, trial in enumerate(told):
        for name, said in trial.metrics.items():
            if name not in answers:
                faults.append(f"trial {trial.trial}: {name}={said}, which the release does not answer")
            elif not abs(said - answers[name][i]) <= _RELATIVE * max(1.0, abs(answers[name][i])):
                faults.append(f"trial {trial.trial}: {name}={said}, but the release answers {answers[name][i]}")
        if trial.status == FINISHED and "valid_acc" not in trial.metrics and np.isfinite(answers["valid_acc"][i]):
            faults.append(f"trial {trial.trial}: finished without valid_acc")
    return faults


def _cost_faults(trials: Sequence[Trial], view: View) -> list[str]:
    """Trials that took less time than training takes, after all that the same network had been trained by their start.

    A log does not say which epochs were reported. So whatever a training had passed by then, running or not, counts as
    a checkpoint: no honest log is refused, and no second of training is believed that no trial of the log has spent.
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
    """Runtime of each network at each epoch, (max_epoch,): up to its last one; that one alone if it has one trial."""
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
    """Ask the benchmark for metrics (None: all) of every trial, (n,) each."""
    configs, epochs = [], []
    for trial in trials:
        sizes = {name: value for name, value in trial.fidelity.items() if name != "epoch"}
        epoch = int(trial.fidelity["epoch"])
        asked = sizes if epoch == view.max_epoch else trial.fidelity  # the last epoch needs no fidelity
        if strange := [name for name in asked if name not in view.fidelities]:
            raise CorruptFile(f"trial {trial.trial}: {', '.join(strange)} is no fidelity of its view")
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


def _final_errors(view: View, chosen: Trial | None) -> tuple[float, float]:
    if chosen is None:
        return float("nan"), float("nan")
    test = float("nan")
    if "test_acc" in view.metrics:
        test = 100.0 - float(view.query_many([chosen.config], metrics=("test_acc",))["test_acc"][0])
    return 100.0 - float(_ask(view, [chosen])["valid_acc"][0]), test


def _fixed_by_hand(view: View) -> dict[str, object]:
    usual = View(view.bench, fidelities=tuple(view.fidelities), search=view.space.searched, fixed="default").space.fixed
    return {name: value for name, value in view.space.fixed.items() if value != usual[name]}


def settings_of(header: Mapping[str, Any]) -> Settings:  # Any: JSON
    """Return the settings that a header names.

    Raises:
        CorruptFile: they are none of a simulation.
    """
    given: dict[str, Any] = {each.name: header.get(each.name) for each in fields(Settings)}  # Any: JSON
    try:
        return Settings(**given)
    except InvalidArgument as err:
        raise CorruptFile(f"the header says what no simulation does: {err}") from err


def _integer(header: Mapping[str, Any], name: str) -> int:
    value = header.get(name)
    if type(value) is not int:
        raise CorruptFile(f"the header says {name}={value!r}, which is no integer")
    return value


def _n_trials(header: Mapping[str, Any]) -> int | None:
    return None if header.get("n_trials") is None else _integer(header, "n_trials")


def _budget(header: Mapping[str, Any]) -> float | None:
    value = header.get("budget")
    if value is None:
        return None
    if not is_number(value) or value <= 0:
        raise CorruptFile(f"the header says budget={value!r}, which is no positive number of seconds")
    return float(value)
