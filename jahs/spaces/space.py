"""The joint space and its sub-spaces: sampling, validation and one-step moves.

A config always has all 14 keys. A sub-space searches some of them and fixes the others at one value each.

    >>> import jahs
    >>> space = jahs.space(fixed={"N": 5, "W": 16})
    >>> config = space.sample(seed=0)
    >>> config["N"], config["W"]
    (5, 16)
"""

from __future__ import annotations

import math
import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument, InvalidConfig, UnknownName
from jahs.schema import CONFIG_KEYS, OPS
from jahs.spaces.columns import COLUMN_DTYPES, Columns, rows
from jahs.spaces.configs import Config, Sampler, mapping_of, read_values, unknown_key_faults, validate
from jahs.spaces.parameters import PARAMETERS, Parameter, Value, is_integer, is_iterable, is_number, show
from jahs.spaces.seeds import read_seed

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "architecture": OPS,
    "hyperparameters": ("Activation", "LearningRate", "Optimizer", "TrivialAugment", "WeightDecay"),
    "fidelities": ("N", "Resolution", "W"),
}
"""Names for sets of keys: the cell, the hyperparameters, and the sizes that JAHS-Bench-201 uses as fidelities."""

STEP: Final = 1.7782794100389228
"""Default factor between a float and its neighbours: 10**(1/4), a twelfth of either range on its log scale."""

_LARGEST_FACTOR: Final = sys.float_info.max

MOST_ROWS: Final = 10_000_000
"""The most configs that one call draws: 3 GB as columns, 9 GB as dicts. Draw more in parts, each with its own seed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Space(Sampler):
    """The joint space, or the part of it where some keys are fixed. Made by `jahs.space()`.

    Attributes:
        fixed_items: the keys that are not searched and their values, in canonical order.
    """

    fixed_items: tuple[tuple[str, Value], ...] = ()

    def __post_init__(self) -> None:
        """Read the fixed values as builtins in canonical order, refusing every fault at once."""
        try:
            given = dict(self.fixed_items)
        except (TypeError, ValueError) as err:
            raise InvalidArgument(f"fixed={show(self.fixed_items)} is not a mapping of keys to values") from err
        clean, faults = read_values(given)
        if faults := [*faults, *unknown_key_faults(given)]:
            raise InvalidConfig(faults)
        object.__setattr__(self, "fixed_items", tuple(clean.items()))

    @property
    def fixed(self) -> dict[str, Value]:
        """The keys that are not searched, and their values."""
        return dict(self.fixed_items)

    @property
    def implied(self) -> dict[str, Value]:
        """The values that a config may leave out: those of fixed keys, and of keys with a single legal value."""
        single = {name: each.choices[0] for name, each in PARAMETERS.items() if len(each.choices) == 1}
        return {**single, **self.fixed}

    @property
    def searched(self) -> tuple[str, ...]:
        """The keys that are searched, in canonical order."""
        fixed = self.fixed
        return tuple(name for name in CONFIG_KEYS if name not in fixed)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The definition of every searched key."""
        return {name: PARAMETERS[name] for name in self.searched}

    def __repr__(self) -> str:
        fixed = self.fixed
        rows = [("parameter", "kind", "values", "default")]
        for name, parameter in PARAMETERS.items():
            kind = f"{parameter.kind}, log" if parameter.is_log else parameter.kind
            values = parameter.span if parameter.kind == "float" else ", ".join(map(str, parameter.choices))
            shown = f"{fixed[name]} (fixed)" if name in fixed else values
            rows.append((name, kind, shown, str(parameter.default)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"Space: {len(self.searched)} of {len(CONFIG_KEYS)} parameters are searched", *lines])

    def fix(self, values: Mapping[str, object]) -> Space:
        """Return the space where these keys, too, are fixed; a key that was already fixed gets the new value.

        Raises:
            InvalidConfig: a key does not exist or a value is not legal; every fault at once.
        """
        if not isinstance(values, Mapping):
            raise InvalidArgument(f"values={show(values)} is not a mapping of keys to values")
        return Space(fixed_items=tuple(cast("Mapping[str, Value]", {**self.fixed, **values}).items()))

    def only(self, keys: str | Iterable[str], *, at: Mapping[str, object] | None = None) -> Space:
        """Return the space that searches only `keys`, a name in `GROUPS` or an iterable of keys.

        Every other key keeps its fixed value, or is fixed at its value in `at`, or at its default. The defaults of N
        and W are those of the smallest network.

        Raises:
            UnknownName: a key does not exist.
            InvalidArgument: a key would be both searched and fixed, or `at` has another value than this space.
            InvalidConfig: a key of `at` does not exist or its value is not legal; every fault at once.

        Example:
            >>> space().only("architecture", at={"N": 5, "W": 16}).searched
            ('Op1', 'Op2', 'Op3', 'Op4', 'Op5', 'Op6')
        """
        chosen = _keys(keys)
        if unsearched := [key for key in chosen if key in self.fixed]:
            raise InvalidArgument(f"keys: {', '.join(unsearched)} cannot be searched: this space fixes them")
        if at is not None and not isinstance(at, Mapping):
            raise InvalidArgument(f"at={show(at)} is not a mapping of keys to values")
        if both := [key for key in chosen if key in (at or {})]:
            raise InvalidArgument(f"at: {', '.join(both)} cannot be both searched and fixed")
        given = Space().fix(at or {}).fixed
        if moved := [f"{key}={value!r}" for key, value in given.items() if self.fixed.get(key, value) != value]:
            raise InvalidArgument(f"at: {', '.join(moved)} must not be set: this space already fixes other values")
        defaults = {name: parameter.default for name, parameter in PARAMETERS.items() if name not in chosen}
        return Space().fix({**defaults, **self.fixed, **given})

    def default(self) -> Config:
        """Return JAHS-Bench-201's default, with the fixed values in their places."""
        values = {name: parameter.default for name, parameter in PARAMETERS.items()}
        return cast("Config", {**values, **self.fixed})

    def validate(self, config: Mapping[str, object]) -> Config:
        """Return `config` as `jahs.validate` does, after checking that it has this space's fixed values.

        Raises:
            InvalidConfig: one line for every fault, each beginning with its key.
        """
        faults: list[str] = []
        try:
            clean: Mapping[str, object] = validate(config)
        except InvalidConfig as err:
            clean, faults = read_values(mapping_of(config))[0], [*err.faults]
        faults += [
            f"{name}={actual!r} is fixed at {value!r} in this space"
            for name, value in self.fixed_items
            if (actual := clean.get(name, value)) != value
        ]
        if faults:
            raise InvalidConfig(faults)
        return cast("Config", clean)

    def _sample(self, n: int, seed: int | None) -> list[Config]:
        return rows(self.sample_columns(n, seed=seed))

    def sample_columns(self, n: int, *, seed: int | None) -> Columns:
        """Return `n` random configs as one array per key.

        Choices are uniform, floats uniform on their log scale. The values are a pure function of (seed, row, key): they
        are the same on every platform and for every version of numpy, the first k rows do not depend on n, and fixing a
        key changes no other one. With `seed=None` the operating system's entropy is used.

        Raises:
            InvalidArgument: if `n` is not an integer in 0..`MOST_ROWS` or `seed` is not one in 0..2**64-1.
        """
        if not is_integer(n) or not 0 <= n <= MOST_ROWS:
            raise InvalidArgument(f"n={show(n)} is not an integer in 0..{MOST_ROWS}")
        key = secrets.randbits(64) if seed is None else read_seed(seed, bits=64)
        # Sixteen words per row, so that row i begins at Philox's counter 4 * i; raw words never change with numpy.
        words = np.random.Philox(key=key).random_raw(16 * int(n)).reshape(n, 16)
        return self.columns_from_words(words[:, : len(CONFIG_KEYS)])

    def columns_from_words(self, words: npt.NDArray[np.uint64]) -> Columns:
        """Return the configs of a uint64 matrix of random words, one row and 14 words per config.

        This converts another stream of random numbers to configs: word j of a row only decides key j.
        """
        if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.shape[1:] != (len(CONFIG_KEYS),):
            given = f"{words.dtype} {words.shape}" if isinstance(words, np.ndarray) else type(words).__name__
            raise InvalidArgument(f"words: {given} is not a uint64 matrix of {len(CONFIG_KEYS)} columns")
        fixed = self.fixed
        columns: Columns = {}
        for j, (name, parameter) in enumerate(PARAMETERS.items()):
            if name in fixed:
                columns[name] = np.full(len(words), fixed[name], dtype=COLUMN_DTYPES[name])
            elif parameter.kind == "float":
                columns[name] = _log_uniform(words[:, j], parameter)
            else:
                choices = np.array(parameter.choices, dtype=COLUMN_DTYPES[name])
                columns[name] = choices[(words[:, j] >> np.uint64(32)) * np.uint64(len(choices)) >> np.uint64(32)]
        return columns

    def neighbors(self, config: Mapping[str, object], *, factor: float = STEP) -> list[Config]:
        """Return every config that is one move away, in a fixed order.

        A move changes one searched key: a categorical one to any other choice, an ordinal one to the next smaller or
        larger choice, a float to itself divided or multiplied by `factor`. A float's move that would leave the range
        is left out, not clipped.

        Raises:
            InvalidConfig: the config is not in this space.
            InvalidArgument: `factor` is not a finite number of at least 1.001.
        """
        if not is_number(factor) or not 1.001 <= (factor := float(factor)) <= _LARGEST_FACTOR:
            raise InvalidArgument(f"factor={show(factor)} is not a finite number of at least 1.001")
        start = self.validate(config)
        moves = []
        for name, parameter in self.parameters.items():
            values = _moves(parameter, start[name], factor)  # type: ignore[literal-required]  # a key of Config
            moves += [cast("Config", {**start, name: value}) for value in values]
        return moves


def space(fixed: Mapping[str, object] | None = None) -> Space:
    """Return the joint space of JAHS-Bench-201, or the part of it where the keys of `fixed` have the given values.

    Raises:
        InvalidConfig: a key does not exist or a value is not legal; every fault at once.

    Example:
        >>> space(fixed={"N": 4})
        Traceback (most recent call last):
        jahs.errors.InvalidConfig: N=4 is not one of 1, 3, 5 (nearest: 3)
    """
    return Space() if fixed is None else Space().fix(fixed)


def _keys(keys: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(keys, str):
        if keys in GROUPS:
            return GROUPS[keys]
        if keys in PARAMETERS:
            return (keys,)
        raise UnknownName.of("keys", keys, [*GROUPS, *CONFIG_KEYS])
    if not is_iterable(keys) or isinstance(keys, Mapping):
        raise InvalidArgument(f"keys={show(keys)} is not a name or an iterable of names")
    chosen = tuple(keys)
    for key in chosen:
        if not isinstance(key, str) or key not in PARAMETERS:
            raise UnknownName.of("keys", key, CONFIG_KEYS)
    return chosen


def _moves(parameter: Parameter, value: Value, factor: float) -> list[Value]:
    if parameter.kind == "float":
        number = cast("float", value)
        return [v for v in (number / factor, number * factor) if parameter.lower <= v <= parameter.upper]
    at = parameter.choices.index(value)
    if parameter.kind == "ordinal":
        return [*parameter.choices[max(at - 1, 0) : at], *parameter.choices[at + 1 : at + 2]]
    return [choice for choice in parameter.choices if choice != value]


def _log_uniform(words: npt.NDArray[np.uint64], parameter: Parameter) -> npt.NDArray[np.float64]:
    """Map words to `lower * (upper / lower) ** u`, u in [0, 1), with the same bits on every processor.

    `np.exp` and `np.power` differ in the last digit between processors, and `config_id` would with them. Sums and
    products do not, so 2**x is taken as an exact power of two times a Taylor polynomial (error below 1e-16).
    """
    u = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    n_decades = round(math.log10(parameter.upper / parameter.lower))
    exponent = u * (n_decades * 3.321928094887362)  # log2(10), a literal for the same reason
    whole = np.floor(exponent + 0.5)
    x = (exponent - whole) * 0.6931471805599453  # in [-0.35, 0.35]
    power = np.ones_like(x)
    for k in range(14, 0, -1):
        power = 1.0 + power * x / k
    values = parameter.lower * np.ldexp(power, whole.astype(np.int32))
    return np.asarray(np.clip(values, parameter.lower, parameter.upper))
