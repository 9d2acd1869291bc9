"""What a search may choose: the ranges and choices of settings, and NePS's space of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `lower` to `upper`, both included; `default` is the prior's mode."""

    lower: float
    upper: float
    default: float
    is_log: bool = False
    is_integer: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values; the first is the default."""

    values: tuple[str | bool, ...]


Searched: TypeAlias = Mapping[str, Range | Choice]
"""The settings of a search by name."""


def default_point(searched: Searched) -> dict[str, Any]:  # Any: NePS's values
    """Return the default of every setting."""
    return {
        name: part.values[0] if isinstance(part, Choice) else (int if part.is_integer else float)(part.default)
        for name, part in searched.items()
    }


def neps_space(searched: Searched, *, has_priors: bool) -> Any:  # Any: NePS builds its space from a class
    """Return NePS's space; it refuses priors with optimisers that ignore them."""
    import neps

    def part_of(part: Range | Choice) -> Any:  # Any: NePS's parameters
        default: Any = 0 if isinstance(part, Choice) else part.default
        prior = {"prior": default, "prior_confidence": "low"} if has_priors else {}
        if isinstance(part, Choice):
            return neps.Categorical(part.values, **prior)
        kind = neps.Integer if part.is_integer else neps.Float
        return kind(part.lower, part.upper, log=part.is_log, **prior)  # type: ignore[arg-type]  # integers are floats

    return type("Space", (neps.PipelineSpace,), {name: part_of(part) for name, part in searched.items()})()
