"""ConfigSpace: its space, and what it makes of our types."""

from __future__ import annotations

from functools import cache

import ConfigSpace
import pytest

import jahs
from jahs.adapters import configspace
from jahs.errors import InvalidArgument, InvalidConfig
from tests.contracts.adapter import AdapterContract

make_space = cache(configspace.make_space)


class TestSpace(AdapterContract):
    adapter = configspace

    def sample(self, space, n):
        return configspace.make_space(space, seed=0).sample_configuration(n)

    def export(self, config, space):
        return configspace.from_config(config, make_space(space), space)

    def check(self, params, space):
        params.check_valid_configuration()


def test_orders_scales_and_defaults_are_those_of_the_space() -> None:
    made = configspace.make_space(jahs.space())
    assert isinstance(made["Resolution"], ConfigSpace.OrdinalHyperparameter)
    assert tuple(made["W"].sequence) == (4, 8, 16)
    assert isinstance(made["Op1"], ConfigSpace.CategoricalHyperparameter)
    assert made["LearningRate"].log
    assert made["WeightDecay"].log
    default = configspace.to_config(made.get_default_configuration(), jahs.space())
    assert default == jahs.space().default()


def test_every_call_makes_a_space_of_its_own() -> None:
    first, second = (configspace.make_space(jahs.space(), seed=3) for _ in range(2))
    assert first is not second
    assert first.sample_configuration(5) == second.sample_configuration(5)


def test_a_space_that_went_through_json_samples_the_same_kinds(tmp_path) -> None:
    configspace.make_space(jahs.space()).to_json(tmp_path / "space.json")
    again = ConfigSpace.ConfigurationSpace.from_json(tmp_path / "space.json")
    assert again == configspace.make_space(jahs.space())
    for configuration in again.sample_configuration(20):
        configspace.to_config(configuration, jahs.space())


def test_the_benchmark_and_its_views_take_a_configuration_as_it_is() -> None:
    bench = jahs.Benchmark("fashion_mnist_mini", engine="numpy")
    for asked in (bench, bench.view(fixed={"N": 5, "W": 16})):
        configurations = configspace.make_space(asked.space, seed=0).sample_configuration(4)
        assert all("Optimizer" not in configuration for configuration in configurations)
        configs = [configspace.to_config(each, asked.space) for each in configurations]
        for configuration, config in zip(configurations, configs, strict=True):
            assert asked.query(configuration, at=3) == asked.query(config, at=3)
            assert asked.trajectory(configuration)["runtime"].tolist() == asked.trajectory(config)["runtime"].tolist()
        found, wanted = asked.query_many(configurations), asked.query_many(configs)
        assert all(found[name].tolist() == wanted[name].tolist() for name in wanted)


def test_what_is_no_configuration_and_no_seed_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="not a mapping"):
        configspace.to_config(None, jahs.space())
    for seed in (-1, "a", 2**32):
        with pytest.raises(InvalidArgument, match=r"seed=.* is not an integer in 0\.\.2\*\*32-1"):
            configspace.make_space(jahs.space(), seed=seed)
