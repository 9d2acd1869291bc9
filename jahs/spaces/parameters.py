"""The 14 parameters of the space, exactly as JAHS-Bench-201 defines them; everything else reads `PARAMETERS`.

The law of the float ranges: a value is legal if it lies in the range *or* is the float32 nearest to one of the range's
ends. So rounding a legal value to float32, as the encoded matrix does, never makes it illegal. It matters at one end
only: float32(1e-5) is 9.999999747378752e-06, just under WeightDecay's lower end. Nothing is clipped or rounded here.

Masked arrays are refused: a masked value is missing, and `np.asarray` would return the value under the mask.
"""

from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.schema import OPS, SIZE_KEYS

Value: TypeAlias = str | bool | int | float

_MOST_SHOWN: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One dimension of the space.

    Attributes:
        name: key in a config.
        kind: "categorical" (no order), "ordinal" (choices in order) or "float" (a range).
        default: JAHS-Bench-201's default.
        choices: legal values in JAHS-Bench-201's order; empty for a float.
        codes: number of each choice in the encoded matrix, in the order of `choices`.
        lower, upper: ends of a float's range, both included; NaN for the other kinds.
        is_log: whether a float is sampled on a log scale.
    """

    name: str
    kind: Literal["categorical", "ordinal", "float"]
    default: Value
    choices: tuple[Value, ...] = ()
    codes: tuple[float, ...] = ()
    lower: float = math.nan
    upper: float = math.nan
    is_log: bool = False

    @property
    def least(self) -> float:
        """Smallest legal float: `lower`, or the float32 nearest to it where that is smaller."""
        return min(self.lower, float(np.float32(self.lower)))

    @property
    def most(self) -> float:
        """Largest legal float: `upper`, or the float32 nearest to it where that is larger."""
        return max(self.upper, float(np.float32(self.upper)))

    @property
    def code_of(self) -> dict[Value, float]:
        """The code of each choice."""
        return dict(zip(self.choices, self.codes, strict=True))

    @property
    def span(self) -> str:
        """The range of a float in words."""
        return f"[{self.lower}, {self.upper}]"

    @property
    def allowed(self) -> str:
        """The legal values in words."""
        if self.kind == "float":
            return f"in {self.span}"
        return f"one of {', '.join(map(repr, self.choices))}"

    def read(self, value: object) -> Value:
        """Return `value` as a legal builtin; numpy scalars are accepted, nothing is rounded or clipped.

        Raises:
            InvalidConfig: one line beginning with the name, with the nearest legal value.

        Example:
            >>> PARAMETERS["N"].read(np.int64(5))
            5
        """
        builtin = _to_builtin(value)
        wanted = type(self.default)
        if type(builtin) is int and wanted is float:
            builtin = _to_float(builtin)
        if type(builtin) is not wanted:
            given = type(builtin if isinstance(value, np.generic) else value).__name__
            raise self._fault(value, f"is {with_article(given)}, not {with_article(wanted.__name__)}: {self.allowed}")
        if self.kind != "float":
            for choice in self.choices:
                if builtin == choice:
                    return choice
            raise self._fault(value, f"is not {self.allowed}")
        number = cast("float", builtin)
        if self.least <= number <= self.most:
            return number
        raise self._fault(value, f"is {'not a number in' if math.isnan(number) else 'outside'} {self.span}")

    def _fault(self, value: object, problem: str) -> InvalidConfig:
        nearest = self._nearest(_to_builtin(value))
        hint = "" if nearest is None else f" (nearest: {nearest!r})"
        return InvalidConfig([f"{self.name}={show(value)} {problem}{hint}"])

    def _nearest(self, value: object) -> Value | None:
        """Return the legal value that was probably meant, or None if there is no near one."""
        if isinstance(value, str):
            if isinstance(self.default, str):
                lowered = {str(choice).lower(): choice for choice in self.choices}
                matches = get_close_matches(value[:_MOST_SHOWN].strip().lower(), lowered, n=1)
                return lowered[matches[0]] if matches else None
            value = {"true": True, "false": False}.get(value[:_MOST_SHOWN].strip().lower(), _parse_number(value))
        if not isinstance(value, int | float) or math.isnan(number := _to_float(value)):
            return None
        if isinstance(self.default, bool):
            return next((choice for choice in self.choices if number == choice), None)
        if isinstance(value, bool) or isinstance(self.default, str):
            return None
        if self.kind == "float":
            return min(max(number, self.lower), self.upper)
        choices = cast("tuple[float, ...]", self.choices)
        inside = min(max(number, min(choices)), max(choices))  # else rounding makes distant ones equal
        near = min(choices, key=lambda choice: (abs(choice - inside), choice))
        return near if self.kind == "ordinal" or near == number else None


def _choice(name: str, choices: tuple[Value, ...], default: Value, *, is_ordinal: bool = False) -> Parameter:
    is_text = isinstance(default, str)
    codes = tuple(float(i) if is_text else float(choice) for i, choice in enumerate(choices))
    kind: Literal["ordinal", "categorical"] = "ordinal" if is_ordinal else "categorical"
    return Parameter(name=name, kind=kind, choices=choices, codes=codes, default=default)


_ALL = (
    _choice("Activation", ("ReLU", "Hardswish", "Mish"), "ReLU"),
    Parameter(name="LearningRate", kind="float", lower=1e-3, upper=1.0, is_log=True, default=1e-1),
    _choice("N", (1, 3, 5), 1, is_ordinal=True),
    *(_choice(op, (0, 1, 2, 3, 4), 0) for op in OPS),
    _choice("Optimizer", ("SGD",), "SGD"),
    _choice("Resolution", (0.25, 0.5, 1.0), 1.0, is_ordinal=True),
    _choice("TrivialAugment", (True, False), default=False),
    _choice("W", (4, 8, 16), 4, is_ordinal=True),
    Parameter(name="WeightDecay", kind="float", lower=1e-5, upper=1e-2, is_log=True, default=5e-4),
)

PARAMETERS: Final[Mapping[str, Parameter]] = MappingProxyType({parameter.name: parameter for parameter in _ALL})
"""The 14 parameters by name, in the order of `jahs.schema.CONFIG_KEYS`."""

LARGEST: Final = MappingProxyType({key: PARAMETERS[key].choices[-1] for key in SIZE_KEYS})
"""N, W and Resolution of the largest networks."""


def _to_builtin(value: object) -> object:
    """Return the builtin that a numpy scalar, a 0-d array or a subclass holds; anything else unchanged."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]  # np.ma.masked stays as it is
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):  # item() of 5 ns is 5
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, np.longdouble) and (np.isnan(value) or float(value) == value):
        return float(value)
    return value


def _to_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def with_article(name: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def is_integer(value: object) -> TypeGuard[int | np.integer]:
    """Return whether this is an integer, Python's or numpy's; bools and durations are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def as_index(value: Any) -> int | None:  # Any: whatever a user gives
    """Return an integer as a builtin, or None for anything else, such as a bool, 5.0 or a masked value."""
    try:
        return None if isinstance(value, bool | np.bool_) or masked_fault("", value) else operator.index(value)
    except TypeError:
        return None


def is_real(value: object) -> TypeGuard[int | float | np.integer | np.floating]:
    """Return whether this is an integer or a float, Python's or numpy's, including NaN and infinities."""
    return isinstance(value, float | np.floating) or is_integer(value)


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Return whether this has elements; an array without dimensions has none, although its class is iterable."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def is_number(value: object) -> bool:
    """Return whether this is a finite number that a float can hold, Python's or numpy's; bools are not."""
    if not is_real(value):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def show(value: object) -> str:
    """Show a value on one short line, also when its repr is long, has several lines or raises."""
    return " ".join(_SHORT.repr(_to_builtin(value)).split())[: 2 * _MOST_SHOWN]


def show_key(key: object) -> str:
    """Show a key on one line: text as it is, anything else as `show` does."""
    return key[:_MOST_SHOWN] if isinstance(key, str) and key.isprintable() and key else show(key)


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        try:
            repr(x)
        except ValueError:  # more digits than Python prints; since 3.14 reprlib words it differently
            return "<a number of too many digits>"
        return super().repr_int(x, level)


_SHORT: Final = _Short()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _MOST_SHOWN


def masked_fault(name: str, values: object) -> str | None:
    """Return a fault with the number of masked values and the row of the first one; None if no value is masked."""
    if not isinstance(values, np.ndarray) or not hasattr(values, "mask"):  # np.ma itself would have to be imported
        return None
    masked = np.argwhere(np.broadcast_to(values.mask, values.shape))
    if not len(masked):
        return None
    where = f", the first is in row {masked[0][0]}" if values.ndim else ""
    return f"{name} is masked in {len(masked)} of {values.size} values{where}; leave those out, or fill them in"


def refuse_masked(name: str, values: object) -> None:
    """Refuse an array of which any value is masked."""
    if fault := masked_fault(name, values):
        raise InvalidArgument(fault)


def read_floats(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return an array of numbers as float64; InvalidArgument if a value is masked or is not a number."""
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
    except ValueError as err:  # rows of different lengths
        raise InvalidArgument(f"{name}: {err}") from err
    if array.size and array.dtype.kind not in "iuf":  # numpy would read the numbers in texts and in durations
        raise InvalidArgument(f"{name} holds {array.dtype}, not numbers")
    return array.astype(np.float64)
