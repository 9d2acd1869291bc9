"""Values that no parameter accepts, shared by every test of bad input."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import math
from collections.abc import Iterator, Mapping

import numpy as np


class Unprintable:
    """Its repr raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Verbose:
    """Its repr has many long lines."""

    def __repr__(self) -> str:
        return "line\n" * 10_000


class Incomparable:
    """Comparing or hashing it raises."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")


class Colour(enum.Enum):
    RED = "ReLU"


class ReadOnly(Mapping[str, object]):
    """A mapping that is no dict."""

    def __init__(self, items: Mapping[str, object]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> object:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


NUMBERS = (
    math.nan,
    math.inf,
    -math.inf,
    -1,
    -1e-300,
    1e300,
    10**400,
    -(10**5000),
    2**63,
    np.float32("nan"),
    np.float64("inf"),
    np.int64(-(2**63)),
    np.uint64(2**64 - 1),
    np.longdouble("1e4000"),
    1j,
    np.complex64(1),
    decimal.Decimal("0.1"),
    fractions.Fraction(1, 2),
)
"""Outside of every range, or no float; 0 is left out since it is an operation."""

OBJECTS = (
    None,
    ...,
    "",
    "\n",
    "\x00",
    "x" * 100_000,
    "\ud800",
    b"SGD",
    bytearray(b"1"),
    (),
    [],
    [1],
    {},
    {"a": 1},
    set(),
    object(),
    type,
    len,
    Colour.RED,
    Unprintable(),
    Verbose(),
    Incomparable(),
    np.array([]),
    np.array([1, 2]),
    np.array([[1]]),
    np.array(None),
    np.datetime64("2020-01-01"),
    np.void(b"abc"),
    dt.date(2020, 1, 1),
)

VALUES = (*NUMBERS, *OBJECTS)
"""No parameter of the space accepts any of these."""

KEYS = ("", "\n", "x" * 100_000, "\ud800", 4, None, (), 1.5, "lr\nN=3", b"N", Colour.RED)
"""Keys that no config has."""

SEEDS = (-1, 2**64, 1.0, 1.5, math.nan, "0", True, np.True_, [0], b"", np.float64(1), object())
"""Not integers in 0..2**64-1."""
