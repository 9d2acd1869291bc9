"""What a config is: its 14 parameters as JAHS-Bench-201 defines them, when it is valid, and its identity.

This is the one definition of the space; everything else (sampling, encoding, adapters) reads `PARAMETERS`.

The law of the float ranges: a value is legal if it lies in the range *or* is the float32 nearest to one of the range's
ends. So rounding a legal value to float32, as the encoded matrix does, never makes it illegal. It matters at one end
only: float32(1e-5) is 9.999999747378752e-06, just under WeightDecay's lower end. Nothing is clipped or rounded here.
"""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import blake2b
from operator import itemgetter
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, TypedDict, cast

import numpy as np

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.schema import CONFIG_KEYS, OPS

__all__ = ["PARAMETERS", "Config", "Parameter", "Value", "config_codes", "config_id", "validate", "validate_many"]

Value: TypeAlias = str | bool | int | float

_MOST_LISTED: Final = 20
_MOST_SHOWN: Final = 60


class Config(TypedDict):
    """A point of the space: all 14 keys, builtins only; never the epoch or a seed."""

    Activation: str
    LearningRate: float
    N: int
    Op1: int
    Op2: int
    Op3: int
    Op4: int
    Op5: int
    Op6: int
    Optimizer: str
    Resolution: float
    TrivialAugment: bool
    W: int
    WeightDecay: float


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
        """Return `value` as a legal builtin; numpy scalars are taken, nothing is rounded or clipped.

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
            given = type(value).__name__
            raise self._fault(value, f"is {_article(given)}, not {_article(wanted.__name__)}: {self.allowed}")
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
        return InvalidConfig([f"{self.name}={_show(value)} {problem}{hint}"])

    def _nearest(self, value: object) -> Value | None:
        """The legal value that was probably meant, or None where nothing suggests one."""
        if isinstance(value, str):
            if isinstance(self.default, str):
                lowered = {str(choice).lower(): choice for choice in self.choices}
                close = get_close_matches(value[:_MOST_SHOWN].strip().lower(), lowered, n=1)
                return lowered[close[0]] if close else None
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
        near = min(choices, key=lambda choice: (abs(choice - number), choice))
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


def validate(config: Mapping[str, object]) -> Config:
    """Return `config` as a new dict of builtins in canonical key order.

    Numpy scalars are taken for the builtins they hold, and an int for a float. A bool is not an int, an int is not a
    bool, and 5.0 is not 5.

    Raises:
        InvalidConfig: one line for *every* fault, each beginning with its key, with the nearest legal value or key.

    Example:
        >>> validate({**jahs.space().default(), "N": 4, "W": 5})
        Traceback (most recent call last):
        jahs.errors.InvalidConfig: N=4 is not one of 1, 3, 5 (nearest: 3)
        W=5 is not one of 4, 8, 16 (nearest: 4)
    """
    if _codes_of_clean(config) is not None:
        return cast("Config", dict(zip(CONFIG_KEYS, _PICK(config), strict=True)))
    if not isinstance(config, Mapping):
        raise InvalidConfig([f"config={_show(config)} is {_article(type(config).__name__)}, not a mapping of 14 keys"])
    clean: dict[str, Value] = {}
    faults: list[str] = []
    for name, parameter in PARAMETERS.items():
        if name not in config:
            faults.append(f"{name} is missing: {parameter.allowed} (default: {parameter.default!r})")
            continue
        try:
            clean[name] = parameter.read(config[name])
        except InvalidConfig as fault:
            faults += fault.faults
    if faults := faults + list(_unknown_keys(config)):
        raise InvalidConfig(faults)
    return cast("Config", clean)


def validate_many(configs: Iterable[Mapping[str, object]]) -> list[Config]:
    """Validate every config; see `validate`.

    Raises:
        InvalidConfig: faults of the first faulty configs, each with its config's position; how many there are in all.
    """
    if isinstance(configs, Mapping):
        raise InvalidArgument("configs is one mapping; give a list of configs, or one config to jahs.validate()")
    clean: list[Config] = []
    faults: list[str] = []
    n_faulty = 0
    for i, config in enumerate(configs):
        try:
            clean.append(validate(config))
        except InvalidConfig as fault:  # noqa: PERF203  # costs nothing where nothing is raised
            n_faulty += 1
            faults += [f"{line} (config {i})" for line in fault.faults]
    if faults:
        raise many_faults(faults, len(faults), f"in {n_faulty} of {n_faulty + len(clean)} configs")
    return clean


def many_faults(faults: list[str], n_faults: int, where: str) -> InvalidConfig:
    """Build the error for a batch: the first `faults`, and a last line that counts the others."""
    listed = faults[:_MOST_LISTED]
    if n_faults > len(listed):
        listed.append(f"... {n_faults} faults {where}; the first {len(listed)} are listed")
    return InvalidConfig(listed)


def config_codes(config: Mapping[str, object]) -> tuple[float, ...]:
    """Return the 14 numbers of a config, in order: codes of the choices, LearningRate and WeightDecay in float64.

    Raises:
        InvalidConfig: as `validate`.
    """
    codes = _codes_of_clean(config)
    if codes is None:
        codes = _codes_of_clean(validate(config))
        assert codes is not None
    return codes


_HASHER: Final = blake2b(",".join(CONFIG_KEYS).encode(), digest_size=8, person=b"jahs-config-1")
_PACK: Final = struct.Struct("<14d").pack


def config_id(config: Mapping[str, object]) -> int:
    """Return the config's identity, a number in 0..2**64-1, the same in every process and on every platform.

    It is the 8-byte BLAKE2b digest of the key names and the 14 numbers of `config_codes` as little-endian float64.

    Raises:
        InvalidConfig: as `validate`.

    Example:
        >>> f"{config_id(jahs.space().default()):016x}"
        '80b25de12143d180'
    """
    return digest(_PACK(*config_codes(config)))


def digest(packed: bytes) -> int:
    """Return the id of a config from its 14 numbers as 112 little-endian bytes."""
    hasher = _HASHER.copy()
    hasher.update(packed)
    return int.from_bytes(hasher.digest(), "little")


_PICK: Final = itemgetter(*CONFIG_KEYS)
_TYPES: Final = tuple(type(parameter.default) for parameter in _ALL)
_CODES: Final = {p.name: dict(zip(p.choices, p.codes, strict=True)) for p in _ALL}
_ACTIVATION, _OP, _SGD = _CODES["Activation"], _CODES["Op1"], _CODES["Optimizer"]
_N, _W, _RESOLUTION, _AUGMENT = _CODES["N"], _CODES["W"], _CODES["Resolution"], _CODES["TrivialAugment"]
_LR_LEAST, _LR_MOST = PARAMETERS["LearningRate"].least, PARAMETERS["LearningRate"].most
_WD_LEAST, _WD_MOST = PARAMETERS["WeightDecay"].least, PARAMETERS["WeightDecay"].most


def _codes_of_clean(config: object) -> tuple[float, ...] | None:
    """Codes of a config that already holds exactly the right builtins; None for any other. Two microseconds."""
    if type(config) is not dict or len(config) != len(CONFIG_KEYS):
        return None
    try:
        values = _PICK(config)
        if tuple(map(type, values)) != _TYPES:
            return None
        activation, lr, n, op1, op2, op3, op4, op5, op6, optimizer, resolution, augment, w, wd = values
        if not (_LR_LEAST <= lr <= _LR_MOST and _WD_LEAST <= wd <= _WD_MOST):
            return None
        ops = (_OP[op1], _OP[op2], _OP[op3], _OP[op4], _OP[op5], _OP[op6])
        head, tail = (_ACTIVATION[activation], lr, _N[n]), (_SGD[optimizer], _RESOLUTION[resolution])
        return (*head, *ops, *tail, _AUGMENT[augment], _W[w], wd)
    except KeyError:
        return None


_FIDELITIES_OF_A_QUERY: Final = ("epoch", "epochs", "nepochs", "nepoch", "budget", "at")
_NICKNAMES: Final = MappingProxyType(
    {
        **{name.lower(): name for name in CONFIG_KEYS},
        "lr": "LearningRate",
        "wd": "WeightDecay",
        "act": "Activation",
        "opt": "Optimizer",
        "res": "Resolution",
        "ta": "TrivialAugment",
        "augment": "TrivialAugment",
        "width": "W",
        "depth": "N",
    }
)


def _unknown_keys(config: Mapping[str, object]) -> Iterator[str]:
    unknown = [key for key in config if key not in PARAMETERS]
    for key in unknown[:_MOST_LISTED]:
        text = _show_key(key)
        bare = "".join(char for char in text.lower() if char.isalnum())
        near = get_close_matches(bare, _NICKNAMES, n=1)
        if bare in _FIDELITIES_OF_A_QUERY:
            yield f"{text} is not a key of a config: it says how long to train, give it to the query"
        elif bare == "seed":
            yield f"{text} is not a key of a config: give it to the query"
        else:
            hint = f" (did you mean {_NICKNAMES[near[0]]}?)" if near else f"; the keys are {', '.join(CONFIG_KEYS)}"
            yield f"{text} is not a key of a config{hint}"
    if len(unknown) > _MOST_LISTED:
        yield f"... and {len(unknown) - _MOST_LISTED} more unknown keys"


def _to_builtin(value: object) -> object:
    """The builtin that a numpy scalar, an array of no dimensions or a subclass holds; anything else as it is."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
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


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _show(value: object) -> str:
    """The value on one short line, also when its repr is long, has several lines or raises."""
    try:
        text = _SHORT.repr(_to_builtin(value))
    except ValueError:  # an int of more digits than Python agrees to print
        text = "<a number of too many digits>"
    return " ".join(text.split())[: 2 * _MOST_SHOWN]


def _show_key(key: object) -> str:
    return key[:_MOST_SHOWN] if isinstance(key, str) and key.isprintable() and key else _show(key)


_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _MOST_SHOWN
