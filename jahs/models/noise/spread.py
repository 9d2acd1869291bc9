"""Spread of trainings around a prediction: a table of factors for each variable that it depends on.

Spread is measured on an unbounded scale: a value y in 0..100 becomes z = t / sqrt(1 - t^2), with t = (y - 50) / 51; 51
rather than 50 keeps both bounds finite. Only sums, products, quotients and roots occur, as everywhere in drawing noise,
and IEEE 754 rounds those alike everywhere: a number has the same bits alone, in a batch and on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any, Final, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, refuse
from jahs.schema import COLUMNS, SIZE_KEYS
from jahs.spaces.parameters import PARAMETERS, is_number

LEVELS: Final = tuple(range(0, 101, 5))
"""Predicted accuracies at which a spread is given; in between it is interpolated."""

RATES: Final = tuple(round(10 ** (-3 + i / 4), 6) for i in range(13))
"""Learning rates at which a factor is given; in between it is interpolated."""

MOST: Final = 1.5
"""The largest spread; with it, draws are already spread over the whole range."""

SIZE_COLUMNS: Final = tuple(COLUMNS.index(key) for key in SIZE_KEYS)
RATE_COLUMN: Final = COLUMNS.index("LearningRate")
PER_LEVEL: Final = 0.2

_CODES: Final = tuple(PARAMETERS[key].codes for key in SIZE_KEYS)
_MIDDLE: Final = 50.0
_HALF: Final = 51.0
_RATES: Final = np.array(RATES)
_Floats = NDArray[np.float64]

SpreadTables: TypeAlias = tuple[
    list[float], list[float], list[float], dict[tuple[float, float, float], float], list[float], float, float
]
"""The tables of `Spread.tables`."""


def to_line(y: _Floats) -> _Floats:
    """Map accuracies to the unbounded scale."""
    t = (y - _MIDDLE) / _HALF
    return np.asarray(t / np.sqrt(1.0 - t * t))


def from_line(z: _Floats) -> _Floats:
    """Map the unbounded scale to accuracies, clipped to 0..100."""
    t = z / np.sqrt(1.0 + z * z)
    return np.minimum(np.maximum(_MIDDLE + _HALF * t, 0.0), 100.0)


def to_line_one(y: float) -> float:
    """Return `to_line` of one accuracy."""
    t = (y - _MIDDLE) / _HALF
    return t / math.sqrt(1.0 - t * t)


def from_line_one(z: float) -> float:
    """Return `from_line` of one number."""
    y = _MIDDLE + _HALF * (z / math.sqrt(1.0 + z * z))
    return 0.0 if y < 0.0 else 100.0 if y > 100.0 else y


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Standard deviation of an accuracy on the unbounded scale, as a product of factors; shape of the distribution.

    It depends on the predicted accuracy in one way early in a training and in another at its end: between `level` and
    `last` it is interpolated linearly in the epoch.
    """

    level: tuple[float, ...]  # standard deviation at each predicted accuracy of `LEVELS`, before the first epoch
    epoch: tuple[float, ...]  # a factor for each epoch
    last: tuple[float, ...]  # standard deviation at each of `LEVELS` at the last epoch
    N: tuple[float, ...] = (1.0, 1.0, 1.0)  # a factor for each choice, here and below
    W: tuple[float, ...] = (1.0, 1.0, 1.0)
    Resolution: tuple[float, ...] = (1.0, 1.0, 1.0)
    rate: tuple[float, ...] = (1.0,) * len(RATES)  # a factor at each learning rate of `RATES`
    tail: float = 0.0  # 0 is normal; a standard normal g becomes g (1 + tail g^2), scaled to unit variance

    def __post_init__(self) -> None:
        """Refuse tables of a wrong length and factors that are not positive, every fault at once."""
        lengths = {"level": len(LEVELS), "last": len(LEVELS), "rate": len(RATES), "epoch": len(self.epoch)}
        lengths |= dict.fromkeys(SIZE_KEYS, 3)
        faults = []
        for name, length in lengths.items():
            values = getattr(self, name)
            if len(values) != length or not values or not all(is_number(v) and v > 0 for v in values):
                faults.append(f"{name}={values!r} is not {length} positive numbers")
        faults += _tail_faults(self.tail)
        refuse(*faults)

    def tables(self) -> SpreadTables:
        """Return level, last, epoch, size by (N, W, Resolution), rate, tail and its factor for unit variance."""
        sizes = {
            (a, b, c): n * w * r
            for (a, b, c), (n, w, r) in zip(product(*_CODES), product(self.N, self.W, self.Resolution), strict=True)
        }
        lists = (list(self.level), list(self.last), list(self.epoch))
        return *lists, sizes, list(self.rate), self.tail, tail_scale(self.tail)

    def of_rows(self, y: _Floats, X: NDArray[np.float32]) -> _Floats:
        """Return the standard deviation for predicted accuracies in 0..100 and encoded rows, (n,)."""
        level, last, epoch, sizes, rate, _, _ = self.tables()
        place = y * PER_LEVEL
        cell = np.minimum(place.astype(np.intp), len(LEVELS) - 2)
        first, final = (_between(np.array(table), cell, place - cell) for table in (level, last))
        found = first + (final - first) * (X[:, -1].astype(np.float64) / len(epoch))
        found = found * np.array(epoch)[X[:, -1].astype(np.intp) - 1]
        at_n, at_w, at_r = (np.searchsorted(codes, X[:, i]) for codes, i in zip(_CODES, SIZE_COLUMNS, strict=True))
        found = found * np.array(list(sizes.values()))[at_n * 9 + at_w * 3 + at_r]
        given = X[:, RATE_COLUMN].astype(np.float64)
        at = np.minimum(np.maximum(np.searchsorted(_RATES, given, side="right") - 1, 0), len(RATES) - 2)
        share = np.minimum(np.maximum((given - _RATES[at]) / (_RATES[at + 1] - _RATES[at]), 0.0), 1.0)
        return np.asarray(np.minimum(found * _between(np.array(rate), at, share), MOST))


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpread:
    """Spread of a positive factor, measured on 2 asinh(a) with a normal a: about the logarithm of the factor."""

    spread: float  # standard deviation
    tail: float = 0.0  # as in `Spread`

    def __post_init__(self) -> None:
        """Refuse an invalid spread, every fault at once."""
        faults = _tail_faults(self.tail)
        if not is_number(self.spread) or not 0 < self.spread <= MOST:
            faults.append(f"spread={self.spread!r} is not a number in (0, {MOST}]")
        refuse(*faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Correlation of the noise of one training, between its epochs and between its three accuracies.

    Every number is a share of variance or a correlation; pairs are for the beginning of the training and for its last
    epoch, and are interpolated linearly.

    Attributes:
        halving: correlation of the slow part, which all three accuracies share, between an epoch and half of it.
        train: share of the slow part in training accuracy; the rest is new in every epoch.
        evaluation: share of the slow part in validation and testing accuracy.
        twins: correlation between validation and testing accuracy, at least the share of the slow part. The excess is
            new in every epoch, but common to the two.
    """

    halving: float = 0.7
    train: tuple[float, float] = (0.9, 0.95)
    evaluation: tuple[float, float] = (0.4, 0.9)
    twins: tuple[float, float] = (0.95, 0.95)

    def __post_init__(self) -> None:
        """Refuse an invalid share, every fault at once."""
        faults = []
        for name in ("train", "evaluation", "twins"):
            pair = getattr(self, name)
            if len(pair) != 2 or not all(is_number(v) and 0 <= v <= 1 for v in pair):
                faults.append(f"{name}={pair!r} is not two numbers in 0..1")
        if not is_number(self.halving) or not 0 <= self.halving <= 1:
            faults.append(f"halving={self.halving!r} is not a number in 0..1")
        if not faults and any(e > t for e, t in zip(self.evaluation, self.twins, strict=True)):
            faults.append(f"evaluation={self.evaluation} exceeds twins={self.twins}")
        refuse(*faults)

    def slow_loadings(self, max_epoch: int) -> list[tuple[float, ...]]:
        """Return, for each epoch, the factors of independent normal numbers that give the slow part.

        Its knots are the last epoch, half of it, a quarter of it and so on; each is `halving` times the later one and a
        new number. Between knots it is interpolated and scaled to unit variance. Trailing zeros are left out, so the
        last epoch has one loading.
        """
        fresh = math.sqrt(1.0 - self.halving * self.halving)
        knots = [float(max_epoch)]
        of_knot: list[tuple[float, ...]] = [(1.0,)]
        while knots[-1] > 1.0:
            knots.append(knots[-1] / 2.0)
            of_knot.append((*(self.halving * loading for loading in of_knot[-1]), fresh))
        loadings: list[tuple[float, ...]] = []
        for epoch in range(1, max_epoch + 1):
            later = max(k for k, knot in enumerate(knots) if knot >= epoch)
            if knots[later] == epoch:
                loadings.append(of_knot[later])
                continue
            share = (epoch - knots[later + 1]) / (knots[later] - knots[later + 1])
            rest = 1.0 - share
            scale = math.sqrt(share * share + rest * rest + 2.0 * share * rest * self.halving)
            ends = zip((*of_knot[later], 0.0), of_knot[later + 1], strict=True)
            loadings.append(tuple((share * a + rest * b) / scale for a, b in ends))
        return loadings

    def weights(self, max_epoch: int) -> list[tuple[float, float, float, float, float]]:
        """Return the weights of each epoch: slow and new in training accuracy; slow, common and new in the others."""
        found = []
        for epoch in range(1, max_epoch + 1):
            train, evaluation, twins = (
                pair[0] + (pair[1] - pair[0]) * (epoch / max_epoch)
                for pair in (self.train, self.evaluation, self.twins)
            )
            shares = (train, 1.0 - train, evaluation, max(twins - evaluation, 0.0), 1.0 - twins)
            found.append(tuple(math.sqrt(share) for share in shares))
        return found  # type: ignore[return-value]  # five of them


@overload
def with_tail(g: float, tail: float) -> float: ...
@overload
def with_tail(g: _Floats, tail: float | _Floats) -> _Floats: ...
def with_tail(g: Any, tail: Any) -> Any:  # Any: see the overloads
    """Return standard normal numbers with a tail, of unit variance again."""
    return g * (1.0 + tail * g * g) * tail_scale(tail)


def tail_scale(tail: Any) -> Any:  # Any: a float, or an array
    """Return the factor for unit variance of g (1 + tail g^2): the normal's fourth and sixth moments are 3 and 15."""
    root = np.sqrt if isinstance(tail, np.ndarray) else math.sqrt
    return 1.0 / root(1.0 + 6.0 * tail + 15.0 * tail * tail)


_Part = TypeVar("_Part", Spread, TimeSpread, Correlation)


def read_part(cls: type[_Part], state: object, *, where: str) -> _Part:
    """Return the part that `asdict` described, lists for tuples; InvalidArgument lists every fault."""
    names = [field.name for field in fields(cls)]
    if not isinstance(state, Mapping) or set(state) != set(names):
        raise InvalidArgument(f"{where}: not a mapping of {', '.join(names)}")
    try:
        values: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in state.items()
        }  # Any: JSON
        return cls(**values)
    except (InvalidArgument, TypeError) as err:
        raise InvalidArgument("\n".join(f"{where}: {line}" for line in str(err).splitlines())) from err


def part_state(part: Spread | TimeSpread | Correlation) -> dict[str, object]:
    """Return a part as JSON can hold it; floats keep every bit."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(part).items()}


def _between(table: _Floats, at: NDArray[np.intp], share: _Floats) -> _Floats:
    return np.asarray(table[at] + (table[at + 1] - table[at]) * share)


def _tail_faults(tail: Any) -> list[str]:  # Any: whatever a file holds
    return [] if is_number(tail) and 0 <= tail <= 1 else [f"tail={tail!r} is not a number in 0..1"]
