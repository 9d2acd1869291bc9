"""The contract of every adapter: subclass `AdapterContract` and define how the tool samples and checks a config."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import jahs
from jahs.adapters.values import shown_parameters
from jahs.errors import InvalidConfig
from jahs.queries.views import View
from jahs.spaces.space import Space
from tests.fake_bench import FakeBench

N_SAMPLES = 1000
BENCH = FakeBench()
SPACES = {
    "joint": jahs.space(),
    "nas": View(BENCH, search="nas").space,
    "hpo": View(BENCH, search="hpo").space,
    "multi-fidelity": View(BENCH, fidelities=("epoch", "Resolution"), fixed={"N": 5, "W": 16}).space,
    "sizes": View(BENCH, search=("N", "W", "Resolution")).space,
}


def same(first: jahs.Config, second: jahs.Config) -> bool:
    """Return whether these configs are equal, floats to the digits that tools keep."""
    return all(
        math.isclose(value, second[name], rel_tol=1e-6) if isinstance(value, float) else value == second[name]
        for name, value in first.items()
    )


class AdapterContract:
    """An adapter has `make_space`, `to_config` and `from_config`."""

    adapter: Any

    def sample(self, space: Space, n: int) -> Iterable[Mapping[str, object]]:
        """Let the tool draw from its own space."""
        raise NotImplementedError

    def export(self, config: jahs.Config, space: Space) -> Mapping[str, object]:
        """Return the config in the form of the tool."""
        return self.adapter.from_config(config, space)

    def check(self, params: Mapping[str, object], space: Space) -> None:
        """Let the tool check that it can express this config; it raises if not."""
        raise NotImplementedError

    @pytest.fixture(params=list(SPACES))
    def space(self, request: pytest.FixtureRequest) -> Space:
        return SPACES[request.param]

    def test_what_the_tool_samples_are_configs_of_builtins(self, space: Space) -> None:
        configs = [self.adapter.to_config(params, space) for params in self.sample(space, N_SAMPLES)]
        assert len(configs) == N_SAMPLES
        assert jahs.validate_many(configs) == configs
        for config in configs:
            assert space.fixed.items() <= config.items()
            assert {type(value) for value in config.values()} <= {str, bool, int, float}
        assert json.loads(json.dumps(configs)) == configs

    def test_the_tool_samples_every_choice_as_often_and_floats_on_the_log_scale(self, space: Space) -> None:
        configs = [self.adapter.to_config(params, space) for params in self.sample(space, N_SAMPLES)]
        for name, parameter in shown_parameters(space).items():
            values = [config[name] for config in configs]
            if parameter.kind == "float":
                middle = math.sqrt(parameter.lower * parameter.upper)
                assert 400 < sum(value < middle for value in values) < 600
                continue
            counts = Counter(values)
            expected = N_SAMPLES / len(parameter.choices)
            assert set(counts) == set(parameter.choices)
            assert all(abs(count - expected) < 5 * math.sqrt(expected) for count in counts.values()), name

    def test_the_tool_can_express_every_config_and_gives_it_back(self, space: Space) -> None:
        for config in space.sample(N_SAMPLES, seed=1):
            params = self.export(config, space)
            self.check(params, space)
            assert same(self.adapter.to_config(params, space), config)

    @pytest.mark.parametrize("end", ["least", "most"])
    def test_the_ends_of_the_floats_are_expressible(self, end: str) -> None:
        space = SPACES["joint"]
        ends = {name: getattr(space.parameters[name], end) for name in ("LearningRate", "WeightDecay")}
        config = {**space.default(), **ends}
        params = self.export(config, space)
        self.check(params, space)
        assert same(self.adapter.to_config(params, space), config)

    def test_the_tool_is_not_shown_what_it_cannot_choose(self, space: Space) -> None:
        shown = set(self.export(space.default(), space))
        assert shown == set(space.searched) - {"Optimizer"}

    def test_a_config_of_another_space_is_refused_with_every_fault(self) -> None:
        space = jahs.space(fixed={"N": 5, "W": 16})
        with pytest.raises(InvalidConfig, match=r"(?s)N=1 is fixed at 5.*W=4 is fixed at 16"):
            self.export(space.default() | {"N": 1, "W": 4}, space)
