"""Spread of trainings around a prediction: a table of factors for each variable that it depends on.

Spread is measured in a space without bounds: a bounded value y in 0..100 is z = t / sqrt(1 - t^2), with
t = (y - 50) / 51. The one point more keeps both bounds finite. Only sums, products, quotients and roots occur, here as
wherever noise is drawn, and IEEE 754 rounds those alike everywhere: a number is the same bits alone, in a batch and on
any machine.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.schema import COLUMNS
from jahs.spaces.parameters import PARAMETERS, is_number

LEVELS: Final = tuple(range(0, 101, 5))
"""Predicted accuracies at which a spread is given; in between it is interpolated."""

RATES: Final = tuple(round(10 ** (-3 + i / 4), 6) for i in range(13))
"""Learning rates at which a factor is given; in between it is interpolated."""

SIZES: Final = ("N", "W", "Resolution")
MOST: Final = 1.5
"""No spread is larger: such trainings are anywhere already."""

PER_LEVEL: Final = 0.2

SIZE_COLUMNS: Final = tuple(COLUMNS.index(key) for key in SIZES)
RATE_COLUMN: Final = COLUMNS.index("LearningRate")

_N, _W, _RESOLUTION = SIZE_COLUMNS
_CODES: Final = tuple(PARAMETERS[key].codes for key in SIZES)
_SIZE_OF: Final = {size: i for i, size in enumerate(product(*_CODES))}
_MIDDLE: Final = 50.0
_HALF: Final = 51.0
_RATES: Final = np.array(RATES)

Numbers: TypeAlias = Any
"""A float, or an array of float64: the arithmetic, and so every bit, is the same."""

_Same = TypeVar("_Same", float, NDArray[np.float64])


class Tables(NamedTuple):
    """The factors of a `Spread`: lists, which are faster for one row, or arrays."""

    level: Any  # at each predicted accuracy of `LEVELS`
    epoch: Any
    size: Any  # of (N, W, Resolution), all 27
    rate: Any  # at each learning rate of `RATES`
    tail: float

    def arrays(self) -> Tables:
        """Return the same tables for many rows."""
        level, epoch, size, rate = map(np.array, self[:4])
        return Tables(level, epoch, size, rate, self.tail)


class Place(NamedTuple):
    """The place of a row in `Tables`; of many rows, each is an array."""

    epoch: Any  # from 0
    size: Any
    rate: Any  # the last of `RATES` that is not above the learning rate
    beyond: Any  # the share of the way to the next one


def place_of(x: Sequence[float]) -> Place:
    """Return the place of an encoded row, 15 numbers."""
    rate = x[RATE_COLUMN]
    at = min(max(bisect_right(RATES, rate) - 1, 0), len(RATES) - 2)
    beyond = clip((rate - RATES[at]) / (RATES[at + 1] - RATES[at]), 0.0, 1.0)
    return Place(int(x[-1]) - 1, _SIZE_OF[x[_N], x[_W], x[_RESOLUTION]], at, beyond)


def places_of(X: NDArray[np.float32]) -> Place:
    """Return the places of encoded rows, (n, 15)."""
    n, w, r = (np.searchsorted(codes, X[:, i]) for codes, i in zip(_CODES, SIZE_COLUMNS, strict=True))
    rate = X[:, RATE_COLUMN].astype(np.float64)
    at = clip(np.searchsorted(_RATES, rate, side="right") - 1, 0, len(RATES) - 2)
    beyond = clip((rate - _RATES[at]) / (_RATES[at + 1] - _RATES[at]), 0.0, 1.0)
    return Place(X[:, -1].astype(np.uint64) - np.uint64(1), 9 * n + 3 * w + r, at, beyond)


def to_line(y: _Same) -> _Same:
    """Map accuracies to the whole line."""
    t = (y - _MIDDLE) / _HALF
    z: _Same = t / sqrt(1.0 - t * t)
    return z


def from_line(z: _Same) -> _Same:
    """Map the whole line to accuracies; what would leave 0..100 stops there."""
    y: _Same = clip(_MIDDLE + _HALF * (z / sqrt(1.0 + z * z)), 0.0, 100.0)
    return y


def clip(x: Numbers, low: float, high: float) -> Numbers:
    """Return what is nearest to x in [low, high]."""
    return min(max(x, low), high) if type(x) is float else np.minimum(np.maximum(x, low), high)


def sqrt(x: Numbers) -> Numbers:
    """Return the square root, which IEEE 754 rounds alike in both libraries."""
    return math.sqrt(x) if type(x) is float else np.sqrt(x)


def between(table: Any, at: Any, share: Numbers) -> Numbers:
    """Return the value a share of the way from an entry of a table to the next one."""
    return table[at] + (table[at + 1] - table[at]) * share


def split(x: Numbers, n_knots: int) -> tuple[Any, Numbers]:
    """Return the last knot 0, 1, ... that is not above x, but never the last one of all, and how far x is beyond it."""
    knot = min(int(x), n_knots - 2) if type(x) is float else np.minimum(x.astype(np.intp), n_knots - 2)
    return knot, x - knot


def deviation(tables: Tables, level: tuple[Any, Numbers], place: Place) -> Numbers:
    """Return the standard deviation on the line around predicted accuracies, `split` among `LEVELS`."""
    found = between(tables.level, *level) * tables.epoch[place.epoch] * tables.size[place.size]
    found = found * between(tables.rate, place.rate, place.beyond)
    return min(found, MOST) if type(found) is float else np.minimum(found, MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Standard deviation of an accuracy on the line, as a product of factors, and the shape of its distribution."""

    level: tuple[float, ...]  # standard deviation at each predicted accuracy of `LEVELS`
    epoch: tuple[float, ...]  # a factor for each epoch
    N: tuple[float, ...] = (1.0, 1.0, 1.0)  # a factor for each choice, here and below
    W: tuple[float, ...] = (1.0, 1.0, 1.0)
    Resolution: tuple[float, ...] = (1.0, 1.0, 1.0)
    rate: tuple[float, ...] = (1.0,) * len(RATES)  # a factor at each learning rate of `RATES`
    tail: float = 0.0  # 0 is normal; a standard normal g becomes g (1 + tail g^2), scaled to unit variance

    def __post_init__(self) -> None:
        """Refuse tables of a wrong length and factors that are not positive, every fault at once."""
        lengths = {"level": len(LEVELS), "rate": len(RATES), "epoch": len(self.epoch)} | dict.fromkeys(SIZES, 3)
        faults = []
        for name, length in lengths.items():
            values = getattr(self, name)
            if len(values) != length or not values or not all(is_number(v) and v > 0 for v in values):
                faults.append(f"{name}={values!r} is not {length} positive numbers")
        faults += _tail_faults(self.tail)
        if faults:
            raise InvalidArgument("\n".join(faults))

    def tables(self) -> Tables:
        """Return the factors as lists."""
        sizes = [n * w * r for n, w, r in product(self.N, self.W, self.Resolution)]
        return Tables(list(self.level), list(self.epoch), sizes, list(self.rate), self.tail)

    def of_rows(self, y: NDArray[np.float64], X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the standard deviation for predicted accuracies in 0..100 and encoded rows, (n,)."""
        found: NDArray[np.float64] = deviation(self.tables().arrays(), split(y * PER_LEVEL, len(LEVELS)), places_of(X))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpread:
    """Spread of a positive factor: 2 asinh of what is added, so about its logarithm."""

    spread: float  # standard deviation
    tail: float = 0.0  # as in `Spread`

    def __post_init__(self) -> None:
        """Refuse an invalid spread, every fault at once."""
        faults = _tail_faults(self.tail)
        if not is_number(self.spread) or not 0 < self.spread <= MOST:
            faults.append(f"spread={self.spread!r} is not a number in (0, {MOST}]")
        if faults:
            raise InvalidArgument("\n".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Correlation of the noise of one training, between its epochs and between its three accuracies.

    Every number is a share of variance or a correlation; pairs are for the beginning of the training and for its last
    epoch, and change linearly with the epoch.

    Attributes:
        halving: correlation of the slow part, which all three accuracies share, between an epoch and half of it.
        train: share of the slow part in training accuracy; the rest is new in every epoch.
        evaluation: share of the slow part in validation and testing accuracy.
        twins: correlation between validation and testing accuracy, at least the share of the slow part. What exceeds
            it is new in every epoch, but common to the two.
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
        if faults:
            raise InvalidArgument("\n".join(faults))

    def slow_loadings(self, max_epoch: int) -> list[tuple[float, ...]]:
        """Return, for each epoch, by what to multiply independent normal numbers to get the slow part.

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
def with_tail(g: NDArray[np.float64], tail: float | NDArray[np.float64]) -> NDArray[np.float64]: ...
def with_tail(g: Numbers, tail: Numbers) -> Numbers:
    """Return standard normal numbers with a tail, of unit variance again.

    The normal distribution's fourth and sixth moments are 3 and 15, so g (1 + tail g^2) has this variance.
    """
    return g * (1.0 + tail * g * g) * (1.0 / sqrt(1.0 + 6.0 * tail + 15.0 * tail * tail))


_Part = TypeVar("_Part", Spread, TimeSpread, Correlation)


def read_part(cls: type[_Part], state: object, *, where: str) -> _Part:
    """Return the part that `asdict` described, lists for tuples; InvalidArgument says what does not fit."""
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


def _tail_faults(tail: Any) -> list[str]:  # Any: whatever a file holds
    return [] if is_number(tail) and 0 <= tail <= 1 else [f"tail={tail!r} is not a number in 0..1"]
