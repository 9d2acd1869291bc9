"""SMAC: scenarios and target functions, through its facades."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest
from smac import HyperbandFacade, HyperparameterOptimizationFacade, MultiFidelityFacade, RandomFacade
from smac.initial_design import RandomInitialDesign, SobolInitialDesign

from experiments.optimizers import make
from jahs.adapters import smac as jahs_smac
from jahs.errors import InvalidArgument, InvalidFidelity
from jahs.queries.views import View
from jahs.simulate import Simulation
from tests.contracts.adapter import AdapterContract
from tests.contracts.optimizer import VIEWS, OptimizerContract
from tests.fake_bench import FakeBench

BENCH = FakeBench()
QUIET = {"logging_level": 50, "overwrite": True}


@pytest.fixture
def make_scenario(tmp_path):
    def make(bench=BENCH, metrics="valid_acc", **arguments):
        return jahs_smac.make_scenario(
            bench, metrics, **{"seed": 0, "n_trials": 15, "output_directory": tmp_path, **arguments}
        )

    return make


make_space = cache(jahs_smac.make_space)


class TestSpace(AdapterContract):
    adapter = jahs_smac

    @pytest.mark.parametrize("design", [RandomInitialDesign, SobolInitialDesign], ids=lambda one: one.__name__)
    def test_what_its_initial_designs_select_are_configs(self, design, make_scenario) -> None:
        scenario = make_scenario(n_trials=500)
        for configuration in design(scenario, n_configs=500, max_ratio=1.0, seed=0).select_configurations():
            jahs_smac.to_config(configuration, BENCH.space)

    @pytest.fixture(autouse=True)
    def _scenarios(self, make_scenario):
        self.make_scenario = make_scenario

    def sample(self, space, n):
        return self.make_scenario(View(BENCH, fixed=space.fixed)).configspace.sample_configuration(n)

    def export(self, config, space):
        return jahs_smac.from_config(config, make_space(space), space)

    def check(self, params, space):
        params.check_valid_configuration()


@pytest.mark.parametrize("facade", [RandomFacade, HyperparameterOptimizationFacade], ids=lambda one: one.__name__)
def test_a_black_box_facade_minimises_the_error_at_the_full_fidelity(facade, make_scenario) -> None:
    smac = facade(make_scenario(), jahs_smac.make_objective(BENCH), **QUIET)
    best = jahs_smac.to_config(smac.optimize(), BENCH.space)
    costs = [trial.cost for trial in smac.runhistory.values()]
    assert len(costs) == 15
    assert min(costs) == 100 - BENCH.query(best).valid_acc


@pytest.mark.parametrize("facade", [HyperbandFacade, MultiFidelityFacade], ids=lambda one: one.__name__)
def test_budgets_are_rounded_once_and_told_as_metrics_of_the_whole_epoch(facade, make_scenario) -> None:
    smac = facade(make_scenario(has_budgets=True), jahs_smac.make_objective(BENCH), **QUIET)
    smac.optimize()
    seen = {}
    for key, told in smac.runhistory.items():
        config = jahs_smac.to_config(smac.runhistory.get_config(key.config_id), BENCH.space)
        seen[key.budget] = round(key.budget)
        asked = BENCH.query(config, at=round(key.budget))
        assert told.cost == 100 - asked.valid_acc
        assert told.additional_info["cost"] == asked.runtime
    assert seen == {4 / 3: 1, 4.0: 4, 12.0: 12}


def test_several_metrics_are_told_by_name(make_scenario) -> None:
    metrics = ("valid_acc", "latency")
    smac = HyperparameterOptimizationFacade(
        make_scenario(metrics=metrics), jahs_smac.make_objective(BENCH, metrics), **QUIET
    )
    front = [jahs_smac.to_config(found, BENCH.space) for found in smac.optimize()]
    assert smac.scenario.objectives == ["valid_error", "latency"]
    told = {tuple(trial.cost) for trial in smac.runhistory.values()}
    assert {(100 - one.valid_acc, one.latency) for one in map(BENCH.query, front)} <= told


def test_several_metrics_and_budgets_need_the_highest_budget_as_the_incumbents_measure(make_scenario) -> None:
    metrics = ("valid_acc", "latency")
    scenario = make_scenario(metrics=metrics, has_budgets=True)
    intensifier = MultiFidelityFacade.get_intensifier(scenario, incumbent_selection="highest_budget")
    smac = MultiFidelityFacade(scenario, jahs_smac.make_objective(BENCH, metrics), intensifier=intensifier, **QUIET)
    assert smac.optimize()
    assert len(smac.runhistory) == 15


def test_the_same_seed_asks_for_the_same_configs(make_scenario, tmp_path) -> None:
    def configs(folder: str):
        scenario = make_scenario(has_budgets=True, seed=3, output_directory=tmp_path / folder)
        smac = HyperbandFacade(scenario, jahs_smac.make_objective(BENCH), **QUIET)
        smac.optimize()
        return [jahs_smac.to_config(found, BENCH.space) for found in smac.runhistory.get_configs()]

    assert configs("one") == configs("other")


def test_seeds_of_a_noisy_scenario_are_draws_of_the_noise(make_scenario) -> None:
    target = jahs_smac.make_objective(BENCH, seed=1)
    noisy = jahs_smac.make_objective(BENCH, seed=1, has_noise=True)
    configuration = jahs_smac.make_space(BENCH.space).get_default_configuration()
    default = BENCH.space.default()
    assert target(configuration, seed=2)[0] == 100 - BENCH.query(default, seed=1).valid_acc
    assert noisy(configuration, seed=2)[0] == 100 - BENCH.query(default, seed=2).valid_acc
    smac = RandomFacade(make_scenario(deterministic=False), noisy, **QUIET)
    smac.optimize()
    assert {key.seed for key in smac.runhistory} != {0}


def test_a_config_that_breaks_a_constraint_is_worse_than_every_other() -> None:
    target = jahs_smac.make_objective(
        BENCH, ("valid_acc", "latency"), constraints={"n_params": 20_000}, worst={"latency": 9.0}
    )
    for config in BENCH.sample(20, seed=0):
        asked = BENCH.query(config)
        told, facts = target(jahs_smac.from_config(config, jahs_smac.make_space(BENCH.space), BENCH.space))
        broken = max(asked.n_params / 20_000 - 1, 0)
        expected = (100 - asked.valid_acc, asked.latency) if not broken else (100 + broken, 9 + broken)
        assert (told["valid_error"], told["latency"]) == pytest.approx(expected)
        assert facts["metrics"]["valid_acc"] == pytest.approx(asked.valid_acc)


def test_a_metric_without_a_bound_needs_its_worst_value() -> None:
    with pytest.raises(InvalidArgument, match="worst: latency has no largest value"):
        jahs_smac.make_objective(BENCH, ("valid_acc", "latency"), constraints={"n_params": 20_000})


def test_a_budget_beyond_the_last_epoch_is_refused() -> None:
    configuration = jahs_smac.make_space(BENCH.space).get_default_configuration()
    with pytest.raises(InvalidFidelity, match="13"):
        jahs_smac.make_objective(BENCH)(configuration, budget=13.2)


@pytest.mark.parametrize("name", ["smac_black_box", "smac_multi_fidelity"])
class TestSmac(OptimizerContract):
    n_trials = 16  # within the initial design, but for one test below
    has_many_objectives = True

    @pytest.fixture
    def optimizer(self, name):
        return lambda view, **settings: make(name, view, **settings)


def proposals(hash_seed: int) -> str:
    """Return what SMAC proposes in a process of its own, whose sets have an order of their own."""
    code = (
        "from tests.contracts.optimizer import VIEWS\n"
        "from experiments.optimizers import make\n"
        "from jahs.simulate.simulation import Simulation\n"
        "view = VIEWS['nas']\n"
        "optimizer = make('smac_black_box', view, seed=0, n_trials=16)\n"
        "print([str(trial.config) for trial in Simulation(view, 16, n_trials=16).run(optimizer)])"
    )
    variables = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=variables
    ).stdout


def test_proposals_do_not_depend_on_the_order_of_sets() -> None:
    assert proposals(hash_seed=1) == proposals(hash_seed=2)


def test_a_model_is_fitted_after_the_initial_design() -> None:
    view = VIEWS["nas"]
    trials = Simulation(view, 2, n_trials=8).run(make("smac_black_box", view, seed=0, n_trials=8))
    assert len({str(trial.config) for trial in trials}) == 8


def test_configs_are_equal_if_their_values_are() -> None:
    space = BENCH.space
    make("smac_black_box", View(BENCH), seed=0, n_trials=4)  # it compares arrays first
    configuration_space = jahs_smac.make_space(space, seed=0)
    first, *others = configuration_space.sample_configuration(20)
    config = dict(first)
    rounded = config | {"WeightDecay": config["WeightDecay"] + 1e-12}  # ConfigSpace rounds to nine digits
    larger = config | {"WeightDecay": config["WeightDecay"] * 1.001}
    assert all(other != first for other in others)
    for values in (config, rounded, larger):
        other = type(first)(configuration_space, values=values)
        assert (other == first) == (dict(other) == config)
    assert first != config
