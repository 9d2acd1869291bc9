"""DEHB: its own vectors, its run and its asking and telling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ConfigSpace import UniformFloatHyperparameter
from dehb import DEHB

import jahs
from experiments.optimizers import make
from jahs.adapters import dehb as jahs_dehb
from jahs.queries.views import View
from tests.contracts.adapter import AdapterContract
from tests.contracts.optimizer import OptimizerContract
from tests.fake_bench import FakeBench

BENCH = FakeBench()

# DEHB 0.1.2 is of ConfigSpace 0.7 and calls names that ConfigSpace 1 still has, but deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")


@pytest.fixture
def make_dehb(tmp_path):
    def make(bench=BENCH, **arguments):
        settings = {"eta": 3, "seed": 0, "n_workers": 1, "output_path": tmp_path, "save_freq": "end", **arguments}
        return DEHB(**jahs_dehb.make_arguments(bench), **settings)

    return make


def position(hyperparameter, params) -> float:
    """Where a value lies in the unit interval: a choice in the middle of its part, a float not quite at an end.

    From 0 or 1 DEHB computes a float that is a digit beyond its range, and raises; its search does not get there.
    """
    value = params[hyperparameter.name]
    if isinstance(hyperparameter, UniformFloatHyperparameter):
        share = math.log(value / hyperparameter.lower) / math.log(hyperparameter.upper / hyperparameter.lower)
        return min(max(share, 1e-12), 1 - 1e-12)
    choices = getattr(hyperparameter, "choices", None) or hyperparameter.sequence
    return (choices.index(value) + 0.5) / len(choices)


class TestSpace(AdapterContract):
    adapter = jahs_dehb

    @pytest.fixture(autouse=True)
    def _optimisers(self, make_dehb):
        self.make_dehb = make_dehb
        self.made = {}

    def de(self, space):
        if space not in self.made:
            dehb = self.make_dehb(View(BENCH, fixed=space.fixed))
            self.made[space] = dehb.de[dehb.fidelities[0]]
        return self.made[space]

    def sample(self, space, n):
        vectors = np.random.default_rng(0).random((n, len(jahs_dehb.make_space(space))))
        return [self.de(space).vector_to_configspace(vector) for vector in vectors]

    def export(self, config, space):
        return jahs_dehb.from_config(config, self.de(space).cs, space)

    def check(self, params, space):
        params.check_valid_configuration()
        # DEHB's own way back from its vectors leads there. (Its way to a vector takes Op1=3 to the vector of Op1=2.)
        vector = np.array([position(hyperparameter, params) for hyperparameter in self.de(space).cs.values()])
        again = self.de(space).vector_to_configspace(vector)
        for name, value in dict(params).items():
            assert again[name] == (pytest.approx(value) if isinstance(value, float) else value)


def test_a_run_minimises_the_error_and_counts_simulated_seconds(make_dehb) -> None:
    dehb = make_dehb()
    trajectory, _, history = dehb.run(fevals=25)
    configuration, fitness = dehb.get_incumbents()
    assert fitness == min(trajectory)
    asked = {BENCH.query(jahs_dehb.to_config(configuration, BENCH.space), at=at).valid_acc for at in (1, 4, 12)}
    assert 100 - fitness in asked
    assert len(history) == 25
    assert {row[4] for row in history} == {4 / 3, 4.0, 12.0}
    for row in history:
        assert row[3] == row[5]["metrics"]["runtime"]


def test_ask_and_tell_with_the_objective(make_dehb) -> None:
    dehb = make_dehb()
    evaluate = jahs_dehb.make_objective(BENCH)
    for _ in range(15):
        job = dehb.ask()
        told = evaluate(job["config"], job["fidelity"])
        config = jahs_dehb.to_config(job["config"], BENCH.space)
        asked = BENCH.query(config, at=round(job["fidelity"]))
        assert told["fitness"] == 100 - asked.valid_acc
        assert told["cost"] == asked.runtime
        dehb.tell(job, told)
    assert jahs.validate(jahs_dehb.to_config(dehb.get_incumbents()[0], BENCH.space))


def test_a_config_that_breaks_a_constraint_is_worse_than_every_other() -> None:
    evaluate = jahs_dehb.make_objective(BENCH, constraints={"n_params": 20_000})
    made = jahs_dehb.make_space(BENCH.space)
    for config in BENCH.sample(20, seed=0):
        asked = BENCH.query(config)
        told = evaluate(jahs_dehb.from_config(config, made, BENCH.space), 12)
        expected = 100 - asked.valid_acc if asked.n_params <= 20_000 else 100 + asked.n_params / 20_000 - 1
        assert told["fitness"] == pytest.approx(expected)


def test_a_view_of_several_fidelities_has_one_budget_along_its_path(make_dehb) -> None:
    view = View(BENCH, fidelities=("epoch", "Resolution"), fixed={"N": 5, "W": 16})
    dehb = make_dehb(view)
    job = dehb.ask()
    assert job["fidelity"] == pytest.approx(4 / 3)
    config = jahs_dehb.to_config(job["config"], view.space)
    told = jahs_dehb.make_objective(view)(job["config"], job["fidelity"])
    assert told["fitness"] == 100 - view.query(config, at={"epoch": 1, "Resolution": 0.25}).valid_acc


class TestDehb(OptimizerContract):
    @pytest.fixture
    def optimizer(self):
        return lambda view, **settings: make("dehb", view, **settings)
