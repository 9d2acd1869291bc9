"""Settings of optimisers: frozen dataclasses whose annotations define the allowed values.

A field is `Annotated[int, Within(1)]`, `Annotated[float, Within(0, 1)]`, either with `| None`, or a `Literal`. Other
fields are not checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from jahs.errors import refuse
from jahs.spaces.parameters import is_integer, is_number, show


@dataclass(frozen=True, slots=True)
class Within:
    """The finite numbers from `low` to `high`, except `excluded`, which is one of the two ends."""

    low: float
    high: float = math.inf
    excluded: float | None = None

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and value != self.excluded

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{'>' if self.excluded == self.low else '>='} {self.low}"
        opening, closing = "(" if self.excluded == self.low else "[", ")" if self.excluded == self.high else "]"
        return f"in {opening}{self.low}, {self.high}{closing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerSettings:
    """Settings that refuse values outside their annotations, and convert numpy's numbers to Python's."""

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument names all that are of a wrong type or out of range."""
        declared = get_type_hints(type(self), include_extras=True)
        refuse(*(fault for each in fields(self) for fault in _faults(each.name, declared[each.name], self)))
        for each in fields(self):
            if isinstance(value := getattr(self, each.name), np.number):
                object.__setattr__(self, each.name, value.item())


def _faults(name: str, declared: Any, settings: object) -> Iterator[str]:  # Any: a type hint
    value = getattr(settings, name)
    if get_origin(declared) is Literal:
        if not (isinstance(value, str) and value in get_args(declared)):
            yield f"{name}={show(value)} must be {' or '.join(map(repr, get_args(declared)))}"
    elif get_origin(declared) is Annotated:
        kind, within = get_args(declared)
        kinds = get_args(kind) or (kind,)
        is_valid = is_integer if int in kinds else is_number
        if not (value is None and NoneType in kinds) and not (is_valid(value) and value in within):
            yield f"{name}={show(value)} must be {'an integer' if int in kinds else 'a number'} {within}"
