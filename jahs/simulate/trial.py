"""Proposals of an optimiser, and their outcomes: one line of a trial log each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from jahs.errors import InvalidConfig
from jahs.schema import TRIAL_KEYS
from jahs.spaces.configs import Config, validate
from jahs.spaces.parameters import is_number

Fidelity: TypeAlias = Mapping[str, int | float]
"""A fidelity: a value for every fidelity of the view; the epoch always."""

AskedFidelity: TypeAlias = float | Mapping[str, object] | None
"""A fidelity as an optimiser may write it: an epoch, a mapping that may leave names out, or None: the full one."""

Status: TypeAlias = Literal["finished", "unfinished", "failed", "stopped", "running"]

_LOGGED: Final = ("finished", "unfinished", "failed", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposal of an optimiser. A plain config is a proposal at the full fidelity.

    Attributes:
        config: the config; keys that the view fixes, and Optimizer, may be left out.
        at: an epoch, a mapping of fidelities (those left out are full), or None: the full fidelity.
        seed: seed of the training noise; None: the simulation's `evaluation_seed`, but another one, and so another
            training, if the network was proposed before at this epoch or a later one.
        reports: epochs before the last at which the optimiser wants to be shown the trial, and may stop it.
        tag: anything; it comes back with the trial and is not logged.
    """

    config: Mapping[str, object]
    at: AskedFidelity = None
    seed: int | None = None
    reports: tuple[int, ...] = ()
    tag: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One query made by an optimiser, in simulated time.

    Attributes:
        trial: number of the trial, counted from 0 in the order in which trials start.
        config: all 14 keys.
        fidelity: fidelity of the metrics; without metrics, the requested one.
        seed: seed of the training noise; None: the mean.
        metrics: values by name. A trial that was cut, stopped or failed has the metrics of its last report, or none.
        start, end: simulated seconds.
        worker: number of the worker, counted from 0.
        status: "finished", "unfinished" (cut by the budget), "failed" or "stopped"; "running" in a report.
        tag: the proposal's.
    """

    trial: int
    config: Config
    fidelity: Fidelity
    seed: int | None
    metrics: Mapping[str, float]
    start: float
    end: float
    worker: int
    status: Status
    tag: object = None

    def to_dict(self) -> dict[str, object]:
        """Return the trial as a line of a log holds it, with the keys `jahs.schema.TRIAL_KEYS`."""
        return {key: getattr(self, key) for key in TRIAL_KEYS}

    @classmethod
    def from_dict(cls, line: object) -> Trial:
        """Return the trial of a line.

        Raises:
            InvalidConfig: the config is not valid.
            ValueError: the line is not a trial; says which key is at fault.
        """
        if not isinstance(line, dict) or tuple(line) != TRIAL_KEYS:
            raise ValueError(f"a line holds the keys {', '.join(TRIAL_KEYS)}, in this order")
        faults = [f"{key}={line[key]!r}" for key, is_valid in _CHECKS.items() if not is_valid(line[key])]
        if not faults and not line["start"] <= line["end"]:
            faults.append(f"end={line['end']!r} is before start={line['start']!r}")
        try:
            config = validate(line["config"])
        except InvalidConfig as err:
            faults += err.faults
        if faults:
            raise ValueError("; ".join(faults))
        return cls(**{**line, "config": config})


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_time(value: object) -> bool:
    return is_number(value) and cast("float", value) >= 0


def _is_numbers(value: object) -> bool:
    return isinstance(value, dict) and all(map(is_number, value.values()))


_CHECKS: Final[Mapping[str, Callable[[object], bool]]] = {
    "trial": _is_count,
    "fidelity": lambda value: _is_numbers(value) and type(cast("dict[str, object]", value).get("epoch")) is int,
    "seed": lambda value: value is None or type(value) is int,
    "metrics": _is_numbers,
    "start": _is_time,
    "end": _is_time,
    "worker": _is_count,
    "status": lambda value: value in _LOGGED,
}
