"""Mutation and crossover of configs."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from jahs.spaces.configs import Config
from jahs.spaces.parameters import Parameter, Value
from jahs.spaces.space import Space


def log_share(parameter: Parameter, value: float) -> float:
    """Return the position in [0, 1] of a value in a float's range on a log scale."""
    return math.log(value / parameter.lower) / math.log(parameter.upper / parameter.lower)


def log_uniform(parameter: Parameter, share: float) -> float:
    """Return the value of a float at a position in [0, 1] in its range on a log scale."""
    value = parameter.lower * float((parameter.upper / parameter.lower) ** share)
    return min(max(value, parameter.lower), parameter.upper)


def mutated(space: Space, config: Config, rng: np.random.Generator, *, keys: list[str], decades: float) -> Config:
    """Return a config in which each of `keys` has another value.

    A choice becomes any other one. A float is multiplied by a log-uniform factor of at most `decades` powers of ten up
    or down, and reflected at the ends of its range.
    """
    values: dict[str, Any] = dict(config)
    for key in keys:
        values[key] = _other(space.parameters[key], values[key], rng, decades)
    return cast("Config", values)


def crossed(a: Config, b: Config, rng: np.random.Generator, *, keys: list[str]) -> Config:
    """Return a config that takes each of `keys` from `a` or `b` with equal probability, and all other keys from `a`."""
    values: dict[str, Any] = dict(a)
    for key, is_from_b in zip(keys, rng.random(len(keys)) < 0.5, strict=True):
        if is_from_b:
            values[key] = b[key]  # type: ignore[literal-required]  # a key of Config
    return cast("Config", values)


def values_of(config: Config) -> tuple[Value, ...]:
    """Return the values of a config, which identify it, as a hashable tuple."""
    return tuple(cast("dict[str, Value]", config).values())


def _other(parameter: Parameter, value: Value, rng: np.random.Generator, decades: float) -> Value:
    if parameter.kind != "float":
        others = [choice for choice in parameter.choices if choice != value]
        return others[int(rng.integers(len(others)))]
    low, high = math.log10(parameter.lower), math.log10(parameter.upper)
    x = math.log10(cast("float", value)) + decades * float(rng.uniform(-1, 1))
    x = 2 * low - x if x < low else 2 * high - x if x > high else x
    return min(max(float(10.0**x), parameter.lower), parameter.upper)
