"""The rules of a valid log: it agrees with the release, and with the behaviour of a simulation.

Every metric of every trial is queried again, and times are checked against the release's training costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from jahs.comparison.logs import FINISHED, Floats
from jahs.errors import CorruptFile
from jahs.queries.views import View
from jahs.simulate import Log, Trial
from jahs.simulate.answers import network_of, redrawn
from jahs.simulate.cluster import training_of
from jahs.simulate.settings import Settings as SimulationSettings

RELATIVE: Final = 1e-5  # tolerance: processors differ in the last bits of a float32


def check_log(log: Log, view: View, settings: SimulationSettings) -> list[str]:
    """Return every contradiction between a log and the release or the rules of a simulation."""
    trials = log.trials
    faults = []
    if log.ending is None:
        faults.append("the log was cut short: its last line must state how it ended")
    if settings.speeds is not None:
        faults.append(f"speeds={log.header['speeds']} must be None: workers of other speeds cannot be compared")
    if settings.n_trials is not None and len(trials) > settings.n_trials:
        faults.append(f"there are {len(trials)} trials, but n_trials={settings.n_trials}")
    return [
        *faults,
        *time_faults(trials, settings),
        *metric_faults(trials, view),
        *cost_faults(trials, view, settings),
        *_seed_faults(trials, settings),
        *number_faults(trials),
        *_status_faults(trials, settings),
        *_start_faults(trials, settings),
        *_ending_faults(trials, log, settings),
    ]


def time_faults(trials: Sequence[Trial], settings: SimulationSettings) -> Iterator[str]:
    """Yield overlapping trials of a worker, unknown workers, and results after the budget."""
    n_workers, budget = settings.workers, settings.budget
    busy_until: dict[int, float] = {}
    for trial in sorted(trials, key=lambda t: (t.start, t.end, t.trial)):
        if trial.worker >= n_workers:
            yield f"trial {trial.trial}: worker={trial.worker}, but there are {n_workers}"
        elif trial.start < busy_until.get(trial.worker, 0.0):
            yield (
                f"trial {trial.trial}: starts at {trial.start} s on worker {trial.worker}, which is busy until "
                f"{busy_until[trial.worker]} s"
            )
        else:
            busy_until[trial.worker] = trial.end
        if budget is not None and trial.end > budget:
            yield f"trial {trial.trial}: ends at {trial.end} s, after the budget of {budget} s"


def metric_faults(trials: Sequence[Trial], view: View) -> Iterator[str]:
    """Yield metrics that differ from the release's, and finished trials without them."""
    reported = [trial for trial in trials if trial.metrics or trial.status == FINISHED]
    answers = _ask(view, reported)
    for i, trial in enumerate(reported):
        for name, value in trial.metrics.items():
            if name not in answers:
                yield f"trial {trial.trial}: {name}={value}, but the release has no such metric"
            elif not abs(value - answers[name][i]) <= RELATIVE * max(1.0, abs(answers[name][i])):
                yield f"trial {trial.trial}: {name}={value}, but the release answers {answers[name][i]}"
        if trial.status == FINISHED and "valid_acc" not in trial.metrics and np.isfinite(answers["valid_acc"][i]):
            yield f"trial {trial.trial}: finished without valid_acc"


def cost_faults(trials: Sequence[Trial], view: View, settings: SimulationSettings) -> Iterator[str]:
    """Yield trials that are shorter than their training, given all earlier training of the same network.

    A log does not state the epochs of reports. So every epoch that any training has reached by then counts as a
    checkpoint, whether the training still runs or not. No honest log is refused, and some trial must have paid for
    every second of training. If training starts from scratch, no earlier payment counts.
    """
    reported = sorted((trial for trial in trials if trial.metrics), key=lambda t: (t.start, t.trial))
    runtimes = _runtimes(reported, view)
    passed = {network: np.full(view.max_epoch, np.inf) for network in runtimes}  # earliest time of each epoch
    for trial in reported:
        network, last = training_of(trial), int(trial.fidelity["epoch"]) - 1
        runtime, earliest = runtimes[network], passed[network]
        is_reached = earliest[:last] <= trial.start + RELATIVE * (1 + runtime[:last])
        paid = 0.0 if settings.continuation == "scratch" else float(runtime[:last][is_reached].max(initial=0.0))
        cost = float(runtime[last]) - paid
        if not trial.end - trial.start >= cost * (1 - RELATIVE) - RELATIVE:
            yield f"trial {trial.trial}: took {trial.end - trial.start:.6g} s, but its training costs {cost:.6g} s"
        earliest[: last + 1] = np.fmin(earliest[: last + 1], trial.start + runtime[: last + 1] - paid)


def _runtimes(trials: Sequence[Trial], view: View) -> dict[tuple[object, ...], Floats]:
    """Return each network's runtimes up to its last epoch, (max_epoch,).

    Only that epoch's if nothing can be continued: the network has one trial, or the epoch is not a fidelity.
    """
    by_network: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        by_network.setdefault(training_of(trial), []).append(trial)
    queries = []
    for group in by_network.values():
        last = max(group, key=lambda trial: trial.fidelity["epoch"])
        n_epochs = int(last.fidelity["epoch"])
        first = 1 if len(group) > 1 and "epoch" in view.fidelities else n_epochs
        queries += [replace(last, fidelity={**last.fidelity, "epoch": epoch}) for epoch in range(first, n_epochs + 1)]
    runtimes = {network: np.full(view.max_epoch, np.nan) for network in by_network}
    answers = _ask(view, queries, metrics=("runtime",))["runtime"]
    for trial, answer in zip(queries, answers.tolist(), strict=True):
        runtimes[training_of(trial)][int(trial.fidelity["epoch"]) - 1] = answer
    return runtimes


def _ask(view: View, trials: Sequence[Trial], *, metrics: Sequence[str] | None = None) -> dict[str, Floats]:
    """Query metrics (None: all) of every trial, (n,) each."""
    configs, epochs = [], []
    for trial in trials:
        sizes = {name: value for name, value in trial.fidelity.items() if name != "epoch"}
        epoch = int(trial.fidelity["epoch"])
        fidelity = sizes if epoch == view.max_epoch else trial.fidelity  # the last epoch need not be a fidelity
        if unknown := [name for name in fidelity if name not in view.fidelities]:
            raise CorruptFile(f"trial {trial.trial}: {', '.join(unknown)} must be a fidelity of its view")
        configs.append({**view.space.validate(trial.config), **sizes})
        epochs.append(epoch)
    columns = {name: np.full(len(trials), np.nan) for name in metrics or view.metrics}
    for seed in dict.fromkeys(trial.seed for trial in trials):
        rows = [i for i, trial in enumerate(trials) if trial.seed == seed]
        each_at = np.array(epochs)[rows]
        answers = view.bench.query_many([configs[i] for i in rows], each_at=each_at, seed=seed, metrics=metrics)
        for name, values in answers.items():
            columns[name][rows] = values
    return columns


def _seed_faults(trials: Sequence[Trial], settings: SimulationSettings) -> Iterator[str]:
    """Yield the faults of noise seeds. Allowed are the seed of the run and those of repeated trainings of a network.

    A log does not state the epochs that were asked of trials that stopped, so any of these seeds is accepted.
    """
    if settings.evaluation_seed not in {None, settings.seed}:
        yield (
            f"evaluation_seed={settings.evaluation_seed} must be None or seed={settings.seed}: a run on a leaderboard "
            "cannot choose its noise"
        )
    for trial in with_other_noise(trials, own := settings.evaluation_seed):
        yield f"trial {trial.trial}: seed={trial.seed}, but the header says evaluation_seed={own}"


def with_other_noise(trials: Sequence[Trial], own: int | None) -> Iterator[Trial]:
    """Yield the trials with neither the noise seed of their run nor that of a repeated training of their network."""
    n_before = Counter[tuple[object, ...]]()
    for trial in sorted(trials, key=lambda trial: trial.trial):
        network = network_of(trial.config, trial.fidelity)
        allowed = {own} if own is None else {redrawn(own, number) for number in range(n_before[network] + 1)}
        if trial.seed not in allowed:
            yield trial
        n_before[network] += 1


def number_faults(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield missing and repeated trials, and trials out of the order of their starts or ends."""
    by_number = sorted(trials, key=lambda trial: trial.trial)
    numbers = [trial.trial for trial in by_number]
    if len(set(numbers)) != len(numbers):
        yield "some trials are in the log twice"
    elif numbers != list(range(len(numbers))):
        missing = next(expected for expected, number in enumerate(numbers) if expected != number)
        yield f"trial {missing} is missing: trials are numbered from 0 without a gap, and all that start are logged"
    for before, after in pairwise(by_number):
        if after.start < before.start:
            yield f"trial {after.trial}: starts at {after.start} s, before trial {before.trial} at {before.start} s"
    for before, after in pairwise(trials):
        if after.end < before.end:
            yield f"trial {after.trial}: is logged after trial {before.trial}, which ended later"


def _status_faults(trials: Sequence[Trial], settings: SimulationSettings) -> Iterator[str]:
    for trial in trials:
        if trial.status == "failed" and settings.fails_at(trial.trial) is None:
            yield f"trial {trial.trial}: failed, but it must not fail with seed={settings.seed}"
        if trial.status == FINISHED and trial.end > trial.start and settings.fails_at(trial.trial) is not None:
            yield f"trial {trial.trial}: finished, but it must fail with seed={settings.seed}"
        if trial.status == "unfinished" and trial.end != settings.budget:
            yield f"trial {trial.trial}: unfinished at {trial.end} s, but the budget ends at {settings.budget} s"


def _start_faults(trials: Sequence[Trial], settings: SimulationSettings) -> Iterator[str]:
    """Yield trials that start while the optimiser thinks, or, if it is synchronous, while an earlier round runs.

    A round gives work to workers 0, 1, 2 and so on, later ones later if the optimiser thinks between its submissions.
    """
    seconds = 0.0 if isinstance(settings.thinking, str) else settings.thinking
    last, worker = 0.0, -1
    round_end, busy_until = 0.0, 0.0  # ends of the earlier rounds, and of all trials so far
    for place, trial in enumerate(sorted(trials, key=lambda each: (each.start, each.trial))):
        is_new_ask = place == 0 or trial.start > last
        if is_new_ask and trial.start < last + seconds * (1 - RELATIVE):
            yield f"trial {trial.trial}: starts at {trial.start} s, but thinking takes {seconds} s after {last} s"
        if trial.worker <= worker:
            round_end = busy_until
        if settings.mode == "synchronous" and trial.start < round_end:
            yield f"trial {trial.trial}: starts at {trial.start} s, but the trials before it run until {round_end} s"
        last, worker, busy_until = trial.start, trial.worker, max(busy_until, trial.end)


def _ending_faults(trials: Sequence[Trial], log: Log, settings: SimulationSettings) -> Iterator[str]:
    """Yield differences between the last line and the trials."""
    if not (ending := log.ending):
        return
    clock = max((trial.end for trial in trials), default=0.0)
    # Where you drive, `Simulation.think` charges thinking; the log then says so, or the header has no settings.
    has_thought = ending.get("thinking") is True or not log.header.get("optimizer_settings")
    can_think = settings.thinking != "free" or has_thought
    if ending.get("clock") == settings.budget and can_think:
        clock = settings.budget or clock  # the optimiser was thinking when the budget ended
    reason = "optimizer"
    if settings.budget is not None and clock >= settings.budget:
        reason = "budget"
    elif settings.n_trials is not None and len(trials) >= settings.n_trials:
        reason = "n_trials"
    for name, expected in (("n_trials", len(trials)), ("clock", clock), ("ended", reason)):
        if isinstance(ending.get(name), bool) or ending.get(name) != expected:
            yield f"the last line says {name}={ending.get(name)!r}, but the trials say {expected!r}"
    if extra := sorted(set(ending) - {"n_trials", "clock", "ended", "thinking"}):
        yield f"the last line has {', '.join(extra)}, which no simulation writes"
