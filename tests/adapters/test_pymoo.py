"""pymoo: variables, and a problem that evaluates a generation at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2, RankAndCrowdingSurvival
from pymoo.core.mixed import MixedVariableGA, MixedVariableSampling
from pymoo.core.variable import Choice, Integer, Real
from pymoo.optimize import minimize

import jahs
from jahs.adapters import pymoo as jahs_pymoo
from jahs.errors import InvalidArgument, InvalidConfig
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


def test_a_plain_nsga2_works_on_the_unit_encoding_and_is_told_of_it_otherwise() -> None:
    bench = FakeBench()
    problem = jahs_pymoo.make_problem(bench, ("valid_acc", "latency"), encoding="unit")
    found = minimize(problem, NSGA2(pop_size=20), ("n_gen", 5), seed=1)
    configs = [jahs_pymoo.to_config(x, bench.space) for x in found.X]
    assert pytest.approx(bench_objectives(bench, configs)) == found.F
    with pytest.raises(
        InvalidArgument, match=r"is for real variables; give make_problem\(\.\.\., encoding='unit'\), or"
    ):
        minimize(jahs_pymoo.make_problem(bench), NSGA2(pop_size=20), ("n_gen", 2), seed=1)
    with pytest.raises(InvalidArgument, match="encoding must be 'mixed' or 'unit', got 'real'"):
        jahs_pymoo.make_problem(bench, encoding="real")


def test_the_unit_encoding_comes_back_and_reaches_every_choice() -> None:
    space = jahs.space(fixed={"W": 8})
    for config in [*space.sample(50, seed=0), space.default()]:
        again = jahs_pymoo.to_config(jahs_pymoo.to_unit(config, space), space)
        assert again == {**config, **{key: pytest.approx(config[key]) for key in ("LearningRate", "WeightDecay")}}
    n = len(jahs_pymoo.make_space(space))
    low, high = (jahs_pymoo.to_config(np.full(n, end), space) for end in (0.0, 1.0))
    assert (low["Op1"], low["LearningRate"], low["N"]) == (0, 0.001, 1)
    assert (high["Op1"], high["LearningRate"], high["N"]) == (4, 1.0, 5)
    for wrong in (np.full(n, 1.1), np.full(n - 1, 0.5), np.full(n, np.nan), "unit"):
        with pytest.raises(InvalidConfig, match=r"is not one number in \[0, 1\] for each of Activation, LearningRate"):
            jahs_pymoo.to_config(wrong, space)


@pytest.mark.parametrize("encoding", ["mixed", "unit"])
def test_the_known_front_is_the_problems_pareto_front(encoding: str) -> None:
    bench = jahs.Benchmark("fashion_mnist_mini")
    metrics = ("latency", "valid_acc")
    problem = jahs_pymoo.make_problem(bench, metrics, encoding=encoding)
    front = bench.front(metrics)
    # The release stores the front as computed elsewhere: `np.exp` differs in the last digit between processors.
    np.testing.assert_allclose(problem.pareto_front(), front.F, rtol=1e-12)
    assert len(problem.pareto_set()) == len(front.F)
    np.testing.assert_allclose(problem.evaluate(problem.pareto_set()), front.F, rtol=1e-3)
    one = jahs_pymoo.make_problem(bench.view(search="nas"), encoding=encoding)
    assert one.pareto_front() == [[100 - bench.best(view=bench.view(search="nas")).value]]
    assert one.evaluate(one.pareto_set()) == one.pareto_front()


def test_where_no_front_is_known_there_is_none() -> None:
    bench = jahs.Benchmark("fashion_mnist_mini")
    metrics = ("valid_acc", "latency")
    for problem in (
        jahs_pymoo.make_problem(FakeBench(), metrics),
        jahs_pymoo.make_problem(bench, metrics, constraints={"n_params": 20_000}),
        jahs_pymoo.make_problem(bench, ("test_acc", "latency")),
        jahs_pymoo.make_problem(bench.view(search="nas"), metrics),
    ):
        assert problem.pareto_front() is None
        assert problem.pareto_set() is None


def bench_objectives(bench: FakeBench, configs: list) -> np.ndarray:
    answers = bench.query_many(configs)
    return np.column_stack([100 - answers["valid_acc"], answers["latency"]])


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
