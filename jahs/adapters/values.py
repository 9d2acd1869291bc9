"""Conversion between configs and a tool's parameters, and the keys that a tool sees.

A tool sees the keys that it can choose: keys that the space searches and that have more than one legal value. Its
configs may have numpy's scalars, text or floats for integers, and a float beyond its range by a rounding error; ours
have builtins only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import numpy as np

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.spaces.configs import Config
from jahs.spaces.parameters import PARAMETERS, Parameter, Value, show, with_article
from jahs.spaces.space import Space

ROUNDING: Final = 1e-9
"""Relative tolerance of a float's range: tools sample its logarithm, and round."""


def shown_parameters(space: Space) -> dict[str, Parameter]:
    """Return the parameters that a tool can choose, in canonical order.

    Example:
        >>> list(shown_parameters(jahs.space().only("hyperparameters")))
        ['Activation', 'LearningRate', 'TrivialAugment', 'WeightDecay']
    """
    _check(space)
    return {name: parameter for name, parameter in space.parameters.items() if len(parameter.choices) != 1}


def to_config(params: Mapping[str, object], space: Space) -> Config:
    """Return a tool's parameters as a config of builtins; keys that `space` fixes may be left out.

    Text is read as the value it spells ("True", "0.25", "3"), a whole float as an integer, and a float beyond its range
    by a rounding error becomes the end of the range.

    Raises:
        InvalidConfig: one line for every fault, each beginning with its key.

    Example:
        >>> space = jahs.space().only(["TrivialAugment", "W"], at={"N": 5})
        >>> config = to_config({"TrivialAugment": np.str_("True"), "W": 8.0}, space)
        >>> config["TrivialAugment"], config["W"], config["N"]
        (True, 8, 5)
    """
    if not isinstance(params, Mapping):
        raise InvalidConfig([f"params={show(params)} is {type(params).__name__}, not a mapping of keys to values"])
    _check(space)
    chosen = {name: _read(PARAMETERS.get(name), value) for name, value in params.items()}
    return space.validate({**space.implied, **chosen})


def from_config(config: Mapping[str, object], space: Space) -> dict[str, Value]:
    """Return a config's values as a tool sees them, as builtins; InvalidConfig if it is not in `space`."""
    _check(space)
    validated = cast("dict[str, Value]", space.validate(config))
    return {name: _clip(parameter, validated[name]) for name, parameter in shown_parameters(space).items()}


def _check(space: object) -> None:
    """Refuse anything that is not a space, such as the benchmark that has it."""
    if not isinstance(space, Space):
        raise InvalidArgument(
            f"space={show(space)} is {with_article(type(space).__name__)}, not a Space; give bench.space"
        )


def _clip(parameter: Parameter, value: Value) -> Value:
    """Clip to the range: the float32 nearest to an end of the range is legal here, but not in the tools."""
    if parameter.kind != "float":
        return value
    return min(max(cast("float", value), parameter.lower), parameter.upper)


def _read(parameter: Parameter | None, value: object) -> object:
    """Return the builtin that `value` spells; return an illegal value unchanged, for validation to name."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if parameter is None or not isinstance(value, str | int | float):
        return value
    if parameter.kind == "float":
        return _read_float(parameter, value)
    for choice in parameter.choices:
        # True == 1, and "1.0" spells 1: each is accepted if it can mean only one choice.
        if value == choice or (isinstance(value, str) and value in _spellings(choice)):
            return choice
    return value


def _spellings(choice: Value) -> set[str]:
    if isinstance(choice, str | bool):
        return {str(choice)}
    return {str(choice), str(float(choice))}


def _read_float(parameter: Parameter, value: str | float) -> object:
    if isinstance(value, bool):
        return value
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return value
    if parameter.lower * (1 - ROUNDING) <= number <= parameter.upper * (1 + ROUNDING):
        return number if parameter.least <= number <= parameter.most else _clip(parameter, number)
    return number
