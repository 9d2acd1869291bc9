"""pymoo: variables, and a problem that evaluates a generation at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import RankAndCrowdingSurvival
from pymoo.core.mixed import MixedVariableGA, MixedVariableSampling
from pymoo.core.variable import Choice, Integer, Real
from pymoo.optimize import minimize

import jahs
from jahs.adapters import pymoo as jahs_pymoo
from jahs.errors import InvalidConfig
from jahs.queries.views import View
from tests.contracts.adapter import AdapterContract
from tests.fake_bench import FakeBench


class TestSpace(AdapterContract):
    adapter = jahs_pymoo

    def sample(self, space, n):
        problem = jahs_pymoo.make_problem(View(FakeBench(), fixed=space.fixed))
        drawn = MixedVariableSampling()(problem, n, random_state=np.random.default_rng(0))
        return [individual.X for individual in drawn]

    def check(self, params, space):
        for name, variable in jahs_pymoo.make_space(space).items():
            if isinstance(variable, Choice):
                assert params[name] in variable.options
            else:
                lowest, highest = variable.bounds
                assert lowest <= params[name] <= highest


def test_choices_with_an_order_are_integers_and_floats_are_logarithms() -> None:
    made = jahs_pymoo.make_space(jahs.space())
    assert isinstance(made["N"], Integer)
    assert isinstance(made["Resolution"], Integer)
    assert isinstance(made["Op1"], Choice)
    assert isinstance(made["Activation"], Choice)
    assert isinstance(made["LearningRate"], Real)
    assert made["LearningRate"].bounds == (-3.0, 0.0)


def test_a_generation_is_one_query_and_all_objectives_are_minimised() -> None:
    bench = FakeBench()
    problem = jahs_pymoo.make_problem(
        bench, ("valid_acc", "latency"), constraints={"n_params": 20_000, "valid_acc": 50}
    )
    configs = jahs.space().sample(30, seed=0)
    F, G = problem.evaluate(np.array([jahs_pymoo.from_config(config, bench.space) for config in configs], dtype=object))
    answers = bench.query_many(configs)
    assert F[:, 0] == pytest.approx(100 - answers["valid_acc"])
    assert F[:, 1] == pytest.approx(answers["latency"])
    assert G[:, 0] == pytest.approx(answers["n_params"] - 20_000)
    assert G[:, 1] == pytest.approx(50 - answers["valid_acc"])


def test_nsga2_finds_configs_that_keep_the_constraint_and_the_same_ones_again() -> None:
    bench = FakeBench()
    problem = jahs_pymoo.make_problem(bench, ("valid_acc", "latency"), constraints={"n_params": 20_000})

    def search():
        algorithm = MixedVariableGA(pop_size=12, survival=RankAndCrowdingSurvival())
        return minimize(problem, algorithm, ("n_gen", 6), seed=1)

    found = search()
    configs = [jahs_pymoo.to_config(x, bench.space) for x in found.X]
    answers = bench.query_many(configs)
    assert (answers["n_params"] <= 20_000).all()
    assert found.F[:, 0] == pytest.approx(100 - answers["valid_acc"])
    assert [jahs_pymoo.to_config(x, bench.space) for x in search().X] == configs


def test_one_metric_is_one_objective() -> None:
    view = View(FakeBench(), search="nas")
    found = minimize(jahs_pymoo.make_problem(view), MixedVariableGA(pop_size=8), ("n_gen", 4), seed=0)
    config = jahs_pymoo.to_config(found.X, view.space)
    assert pytest.approx([100 - view.query(config).valid_acc]) == found.F


def test_a_position_or_logarithm_that_means_nothing_is_refused_with_every_fault() -> None:
    x = jahs_pymoo.from_config(jahs.space().default(), jahs.space())
    bad = {**x, "N": 3, "Op1": 0.5, "LearningRate": 0.1, "Activation": "ReLU", "WeightDecay": math.nan}
    del bad["W"]
    with pytest.raises(InvalidConfig) as caught:
        jahs_pymoo.to_config(bad, jahs.space())
    assert [line.split("=")[0].split()[0] for line in caught.value.faults] == [
        "Activation",
        "LearningRate",
        "N",
        "Op1",
        "W",
        "WeightDecay",
    ]
    assert "N=3 is not a position: 0 is 1, 1 is 3, 2 is 5" in caught.value.faults
