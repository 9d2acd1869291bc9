"""Settings of a simulation: workers, budget, continuation, failures, the optimiser's own time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal, TypeAlias, cast

from jahs.errors import refuse
from jahs.spaces.fidelities import is_list
from jahs.spaces.parameters import is_integer, is_number, show
from jahs.spaces.seeds import SEED_RANGE, is_seed

Thinking: TypeAlias = Literal["free", "measured"] | float
"""The cost of the optimiser's own time: nothing, as measured by a clock, or seconds per ask."""

MOST_THINKING: Final = 1e15
"""Maximum seconds of thinking at a time: more could sum to an infinite time, which no log can hold."""

_MOST_WORKERS: Final = 1_000_000
_LEAST_SPEED: Final = 1e-9  # slower trials could end at an infinite time


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a simulation, checked; see `jahs.simulate.Simulation` for their meaning.

    NumPy numbers are accepted and become Python numbers.
    """

    workers: int = 4
    budget: float | None = None
    n_trials: int | None = None
    seed: int = 0
    mode: Literal["asynchronous", "synchronous"] = "asynchronous"
    continuation: Literal["resume", "scratch"] = "resume"
    speeds: Sequence[float] | None = None
    failure_rate: float = 0.0
    thinking: Thinking = "free"
    evaluation_seed: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings out of their range; one error names all of them."""
        faults = [
            f"{name}={show(value)} is not {expected}"
            for name, expected, is_valid in _RANGES
            if not is_valid(value := getattr(self, name))
        ]
        if self.budget is None and self.n_trials is None:
            faults.append("budget (simulated seconds) and n_trials are both None; give at least one of them")
        if self.speeds is not None and not _are_speeds(self.speeds, self.workers):
            each = f"each of the {show(self.workers)} workers"
            faults.append(f"speeds={show(self.speeds)} is not one number >= {_LEAST_SPEED:g} for {each}")
        refuse(*faults)
        for name, value in self.facts().items():
            object.__setattr__(self, name, value)

    def facts(self) -> dict[str, object]:
        """Return the settings as the header of a log holds them."""
        return {
            "seed": int(self.seed),
            "workers": int(self.workers),
            "budget": None if self.budget is None else float(self.budget),
            "n_trials": None if self.n_trials is None else int(self.n_trials),
            "mode": self.mode,
            "continuation": self.continuation,
            "speeds": None if self.speeds is None else [float(speed) for speed in self.speeds],
            "failure_rate": float(self.failure_rate),
            "thinking": self.thinking if isinstance(self.thinking, str) else float(self.thinking),
            "evaluation_seed": None if self.evaluation_seed is None else int(self.evaluation_seed),
        }

    def fails_at(self, trial: int) -> float | None:
        """Return the share of its cost after which a trial fails, or None if it does not: a function of the seed."""
        if not self.failure_rate:
            return None
        words = blake2b(f"{self.seed} {trial}".encode(), digest_size=16, person=b"jahs-failures-1").digest()
        chance, share = (int.from_bytes(words[at : at + 8], "little") / 2**64 for at in (0, 8))
        return share if chance < self.failure_rate else None


def _is_count(value: object, most: int) -> bool:
    return is_integer(value) and bool(1 <= value <= most)


def _is_word(value: object, *words: str) -> bool:
    return isinstance(value, str) and value in words


def _is_positive(value: object) -> bool:
    return is_number(value) and cast("float", value) > 0


def is_thinking_time(value: object) -> bool:
    """Return whether a value is a number of seconds that an optimiser may think at a time."""
    return is_number(value) and 0 <= float(cast("float", value)) <= MOST_THINKING  # NumPy compares float16 as float16


def _are_speeds(speeds: object, workers: object) -> bool:
    has_right_length = is_list(speeds) and is_integer(workers) and len(speeds) == workers
    return has_right_length and all(
        is_number(speed) and cast("float", speed) >= _LEAST_SPEED for speed in cast("Sequence[object]", speeds)
    )


_RANGES: Final[tuple[tuple[str, str, Callable[[object], bool]], ...]] = (
    ("workers", f"an integer in 1..{_MOST_WORKERS}", lambda value: _is_count(value, _MOST_WORKERS)),
    ("budget", "a positive number of seconds, or None", lambda value: value is None or _is_positive(value)),
    ("n_trials", "a positive integer, or None", lambda value: value is None or _is_count(value, 2**53)),
    ("seed", f"an integer in {SEED_RANGE}", is_seed),
    ("mode", "'asynchronous' or 'synchronous'", lambda value: _is_word(value, "asynchronous", "synchronous")),
    ("continuation", "'resume' or 'scratch'", lambda value: _is_word(value, "resume", "scratch")),
    ("failure_rate", "a number in [0, 1)", lambda value: is_number(value) and 0 <= cast("float", value) < 1),
    (
        "thinking",
        f"'free', 'measured' or a number of seconds up to {MOST_THINKING:g}",
        lambda value: _is_word(value, "free", "measured") or is_thinking_time(value),
    ),
    ("evaluation_seed", f"an integer in {SEED_RANGE}, or None", lambda value: value is None or is_seed(value)),
)
