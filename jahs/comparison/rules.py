"""Rules that every log of a simulation obeys: its seeds, numbers, order and ending."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from jahs.simulate import Log, Trial
from jahs.simulate.settings import Settings as SimulationSettings

__all__ = ["rule_faults"]


def rule_faults(log: Log, settings: SimulationSettings) -> list[str]:
    """Return every violation of these rules by the trials and the ending of a log."""
    return [
        *_seed_faults(log.trials, settings),
        *_number_faults(log.trials),
        *_status_faults(log.trials, settings),
        *_ending_faults(log.trials, log.ending or {}, settings),
    ]


def _seed_faults(trials: Sequence[Trial], settings: SimulationSettings) -> Iterator[str]:
    """Yield trials whose noise has another seed than the simulation."""
    if settings.evaluation_seed not in {None, settings.seed}:
        yield (
            f"evaluation_seed={settings.evaluation_seed} must be None or seed={settings.seed}: a run on a leaderboard "
            "cannot choose its noise"
        )
    yield from (
        f"trial {trial.trial}: seed={trial.seed}, but the header says evaluation_seed={settings.evaluation_seed}"
        for trial in trials
        if trial.seed != settings.evaluation_seed
    )


def _number_faults(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield missing trials, and trials out of the order of their starts or ends."""
    by_number = sorted(trials, key=lambda trial: trial.trial)
    numbers = [trial.trial for trial in by_number]
    if len(set(numbers)) == len(numbers) and numbers != list(range(len(numbers))):
        missing = next(number for number, found in enumerate(numbers) if number != found)
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
        if trial.status == "unfinished" and trial.end != settings.budget:
            yield f"trial {trial.trial}: unfinished at {trial.end} s, but the budget ends at {settings.budget} s"


def _ending_faults(
    trials: Sequence[Trial], ending: Mapping[str, object], settings: SimulationSettings
) -> Iterator[str]:
    """Yield differences between the last line and the trials."""
    if not ending:
        return
    clock = max((trial.end for trial in trials), default=0.0)
    if ending.get("clock") == settings.budget and settings.thinking != "free":
        clock = settings.budget or clock  # the optimiser was thinking when the budget ended
    why = "optimizer"
    if settings.budget is not None and clock >= settings.budget:
        why = "budget"
    elif settings.n_trials is not None and len(trials) >= settings.n_trials:
        why = "n_trials"
    for name, wanted in (("n_trials", len(trials)), ("clock", clock), ("ended", why)):
        if isinstance(ending.get(name), bool) or ending.get(name) != wanted:
            yield f"the last line says {name}={ending.get(name)!r}, but the trials say {wanted!r}"
    if more := sorted(set(ending) - {"n_trials", "clock", "ended"}):
        yield f"the last line has {', '.join(more)}, which no simulation writes"
