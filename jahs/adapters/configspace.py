"""ConfigSpace 1: the space as a `ConfigurationSpace`, which SMAC and DEHB take, too.

    from jahs.adapters import configspace

    configs = configspace.make_space(bench.space, seed=0).sample_configuration(10)
    bench.query(configspace.to_config(configs[0], bench.space))

It has the keys that have a choice; `to_config` adds the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jahs.adapters import values
from jahs.adapters.importing import import_tool
from jahs.spaces.configs import Config
from jahs.spaces.parameters import Parameter
from jahs.spaces.seeds import read_seed
from jahs.spaces.space import Space

__all__ = ["from_config", "make_space", "to_config"]


def make_space(space: Space, *, seed: int | None = None) -> Any:
    """Return a new `ConfigurationSpace` of the keys that `space` searches, N, W and Resolution as ordinals.

    Fixed keys and keys with one legal value are not hyperparameters: `to_config` adds them.

    Args:
        space: the searched keys.
        seed: seed of the configuration space.

    Raises:
        MissingDependency: ConfigSpace is not installed.
        InvalidArgument: the seed is not an integer in 0..2**32-1.
    """
    tool = import_tool("ConfigSpace", needs="ConfigSpace")
    configuration_space = tool.ConfigurationSpace(name="jahs", seed=None if seed is None else read_seed(seed, bits=32))
    configuration_space.add(*(_hyperparameter(tool, each) for each in values.shown_parameters(space).values()))
    return configuration_space


def to_config(configuration: Mapping[str, object], space: Space) -> Config:
    """Return the config, as builtins, for a `Configuration` of `make_space(space)`.

    Raises:
        InvalidConfig: one line for every fault.
    """
    return values.to_config(configuration, space)


def from_config(config: Mapping[str, object], configuration_space: Any, space: Space) -> Any:
    """Return `config` as a `Configuration` of a configuration space that `make_space(space)` returned.

    Raises:
        InvalidConfig: the config is not in `space`.
    """
    tool = import_tool("ConfigSpace", needs="ConfigSpace")
    return tool.Configuration(configuration_space, values=values.from_config(config, space))


def _hyperparameter(tool: Any, parameter: Parameter) -> Any:
    name, default = parameter.name, parameter.default
    if parameter.kind == "float":
        return tool.UniformFloatHyperparameter(
            name, parameter.lower, parameter.upper, default_value=default, log=parameter.is_log
        )
    if parameter.kind == "ordinal":
        return tool.OrdinalHyperparameter(name, parameter.choices, default_value=default)
    return tool.CategoricalHyperparameter(name, parameter.choices, default_value=default)
