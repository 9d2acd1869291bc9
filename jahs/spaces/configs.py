"""Configs: their keys, validation, identity and random sampling."""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypedDict, cast, overload

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.schema import CONFIG_KEYS
from jahs.spaces.parameters import PARAMETERS, Value, is_iterable, show, show_key, with_article

MOST_LISTED: Final = 20
"""The number of faults of a batch that are listed; the others are counted."""


class Config(TypedDict):
    """A point of the space: all 14 keys, Python built-in types only; never the epoch or a seed."""

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


def validate(config: Mapping[str, object]) -> Config:
    """Return `config` as a new dict of builtins in canonical key order.

    Numpy scalars are converted to builtins, and an int to a float. A bool is not an int, an int is not a bool, and 5.0
    is not 5. A pandas Series is a mapping, too; a ConfigSpace `Configuration` may lack the keys that have one value.

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
    given = mapping_of(config)
    clean, faults = read_values(given)
    if faults := [*key_faults(given), *faults]:
        raise InvalidConfig(faults)
    return cast("Config", clean)


def read_values(given: Mapping[str, object]) -> tuple[dict[str, Value], list[str]]:
    """Return the given values that are legal, in canonical order, and the faults of the others."""
    clean: dict[str, Value] = {}
    faults: list[str] = []
    for name, parameter in PARAMETERS.items():
        if name in given:
            try:
                clean[name] = parameter.read(given[name])
            except InvalidConfig as fault:
                faults += fault.faults
    return clean, faults


def mapping_of(config: object) -> Mapping[str, object]:
    """Return a config as a mapping; InvalidConfig for anything that is not one."""
    given = as_mapping(config)
    if not isinstance(given, Mapping):
        raise InvalidConfig(
            [f"config={show(config)} is {with_article(type(config).__name__)}, not a mapping of 14 keys"]
        )
    return given


def as_mapping(config: Any) -> object:  # Any: whatever a user takes for a config
    """Return a Series as a dict, a ConfigSpace `Configuration` with the keys of one value, and all else unchanged."""
    if isinstance(config, Mapping):
        return {**_SINGLE, **config} if hasattr(config, "config_space") else config
    is_series = hasattr(config, "to_dict") and hasattr(config, "keys") and not hasattr(config, "columns")
    return config.to_dict() if is_series else config


def validate_many(configs: Iterable[Mapping[str, object]]) -> list[Config]:
    """Validate every config; see `validate`.

    Raises:
        InvalidConfig: the faults of the first invalid configs, each with its position, and the number of all.
    """
    if isinstance(configs, Mapping):
        raise InvalidArgument("configs is one mapping; give a list of configs, or one config to jahs.validate()")
    if is_frame(configs):
        raise InvalidArgument('configs is a DataFrame, not a list of configs; give configs.to_dict("records")')
    check_many(configs)
    return validate_each(configs, validate)


def validate_each(
    configs: Iterable[Mapping[str, object]], validate: Callable[[Mapping[str, object]], Config]
) -> list[Config]:
    """Validate every config by a function such as `jahs.validate`; raises as `validate_many`."""
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


def is_frame(configs: object) -> bool:
    """Return whether this is a DataFrame, whose library need not be installed."""
    return hasattr(configs, "columns") and hasattr(configs, "to_dict")


def check_many(configs: object) -> None:
    """Refuse anything that is not an iterable."""
    if not is_iterable(configs) or isinstance(configs, str | bytes):
        raise InvalidArgument(f"configs={show(configs)} is not an iterable of configs or a mapping of columns")


def many_faults(faults: list[str], n_faults: int, where: str) -> InvalidConfig:
    """Build the error for a batch: the first `faults`, and a last line that counts the others."""
    listed = faults[:MOST_LISTED]
    if n_faults > len(listed):
        listed.append(f"... {n_faults} faults {where}; the first {len(listed)} are listed")
    return InvalidConfig(listed)


def config_codes(config: Mapping[str, object]) -> tuple[float, ...]:
    """Return the 14 numbers of a config, in order: codes of the choices, LearningRate and WeightDecay in float64."""
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
    return id_of_codes(config_codes(config))


def id_of_codes(codes: Iterable[float]) -> int:
    """Return the id of the config that has these `config_codes`."""
    return digest(_PACK(*codes))


def digest(packed: bytes | memoryview[int]) -> int:
    """Return the id of a config from its 14 numbers as 112 little-endian bytes."""
    hasher = _HASHER.copy()
    hasher.update(packed)
    return int.from_bytes(hasher.digest(), "little")


_SINGLE: Final = {name: p.default for name, p in PARAMETERS.items() if len(p.choices) == 1}
_PICK: Final = itemgetter(*CONFIG_KEYS)
_TYPES: Final = tuple(type(parameter.default) for parameter in PARAMETERS.values())
_ACTIVATION, _N, _OP, _SGD, _RESOLUTION, _AUGMENT, _W = (
    PARAMETERS[key].code_of for key in ("Activation", "N", "Op1", "Optimizer", "Resolution", "TrivialAugment", "W")
)
_LR_LEAST, _LR_MOST = PARAMETERS["LearningRate"].least, PARAMETERS["LearningRate"].most
_WD_LEAST, _WD_MOST = PARAMETERS["WeightDecay"].least, PARAMETERS["WeightDecay"].most


def _codes_of_clean(config: object) -> tuple[float, ...] | None:
    """Return the codes of a config that holds exactly the right builtins, else None; the fast path of a query."""
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


_NAMES_OF_THE_EPOCH: Final = ("epoch", "epochs", "nepochs", "nepoch", "budget", "at")
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


def key_faults(config: Mapping[str, object]) -> Iterator[str]:
    """Yield a fault for each key that a config, or a mapping of columns, lacks or should not have."""
    for name, parameter in PARAMETERS.items():
        if name not in config:
            yield f"{name} is missing: {parameter.allowed} (default: {parameter.default!r})"
    yield from unknown_key_faults(config)


def unknown_key_faults(config: Mapping[str, object]) -> Iterator[str]:
    """Yield a fault for each key that a mapping should not have, with the key that was probably meant."""
    unknown = [key for key in config if key not in PARAMETERS]
    for key in unknown[:MOST_LISTED]:
        text = show_key(key)
        bare = "".join(char for char in text.lower() if char.isalnum())
        if bare in _NAMES_OF_THE_EPOCH:
            yield f"{text} is not a key of a config: give the epoch as at=, as in bench.query(config, at=5)"
        elif bare == "seed":
            yield f"{text} is not a key of a config: give it as seed=, as in bench.query(config, seed=0)"
        else:
            near = _nearest_nickname(bare)
            hint = f" (did you mean {_NICKNAMES[near]}?)" if near else f"; the keys are {', '.join(CONFIG_KEYS)}"
            yield f"{text} is not a key of a config{hint}"
    if len(unknown) > MOST_LISTED:
        yield f"... and {len(unknown) - MOST_LISTED} more unknown keys"


@lru_cache(maxsize=256)  # a batch often repeats its wrong keys
def _nearest_nickname(bare: str) -> str | None:
    if re.fullmatch(r"op[7-9]|op\d\d+", bare):
        return "op6"
    return next(iter(get_close_matches(bare, _NICKNAMES, n=1)), None)


class Sampler(ABC):
    """A source of random configs."""

    __slots__ = ()

    @overload
    def sample(self, n: None = None, *, seed: int | None) -> Config: ...
    @overload
    def sample(self, n: int, *, seed: int | None) -> list[Config]: ...
    def sample(self, n: int | None = None, *, seed: int | None) -> Config | list[Config]:
        """Return `n` random configs, or one if `n` is not given; all 14 keys.

        A space draws as described at `Space.sample_columns`; a table, and a view of one that fixes nothing, draws
        recorded configs.

        Raises:
            InvalidArgument: `n` is not an integer >= 0, or `seed` is not an integer >= 0 or None, or too large.

        Example:
            >>> import jahs
            >>> jahs.space().sample(3, seed=0)[:2] == jahs.space().sample(2, seed=0)
            True
        """
        configs = self._sample(1 if n is None else n, seed)
        return configs[0] if n is None else configs

    @abstractmethod
    def _sample(self, n: int, seed: int | None) -> list[Config]:
        """Return `n` random configs."""
