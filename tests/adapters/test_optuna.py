"""Optuna and OptunaHub: distributions, objectives, constraints, pruning and the problem."""

from __future__ import annotations

import optuna
import pytest

import jahs
from experiments.optimizers import make
from jahs.adapters import optuna as jahs_optuna
from jahs.errors import InvalidArgument
from jahs.queries.views import View
from tests.contracts.adapter import AdapterContract
from tests.contracts.optimizer import OptimizerContract
from tests.fake_bench import FakeBench

optuna.logging.set_verbosity(optuna.logging.WARNING)
BENCH = FakeBench()


def make_study(**arguments) -> optuna.Study:
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), **arguments)


class TestSpace(AdapterContract):
    adapter = jahs_optuna

    def sample(self, space, n):
        study, made = make_study(), jahs_optuna.make_space(space)
        return [study.ask(made).params for _ in range(n)]

    def check(self, params, space):
        # Creating a trial raises where a value is not in its distribution.
        optuna.create_trial(params=params, distributions=jahs_optuna.make_space(space), value=0.0)


def test_a_trial_suggests_from_the_same_distributions() -> None:
    trial = make_study().ask()
    config = jahs_optuna.suggest(trial, jahs.space())
    assert trial.distributions == jahs_optuna.make_space(jahs.space())
    assert jahs_optuna.to_config(trial.params, jahs.space()) == config


def test_a_fixed_trial_suggests_the_config_that_it_was_made_of() -> None:
    for config in jahs.space().sample(20, seed=0):
        trial = optuna.trial.FixedTrial(jahs_optuna.from_config(config, jahs.space()))
        assert jahs_optuna.suggest(trial, jahs.space()) == config


def test_a_study_maximises_the_accuracy_in_its_own_unit() -> None:
    study = make_study(directions=jahs_optuna.directions("valid_acc"))
    study.optimize(jahs_optuna.make_objective(BENCH), n_trials=15)
    assert study.best_value == max(trial.value for trial in study.trials)
    best = jahs_optuna.to_config(study.best_params, BENCH.space)
    assert BENCH.query(best, metrics=("valid_acc",)).valid_acc == study.best_value
    assert study.best_trial.user_attrs["cost"] == BENCH.query(best).runtime


def test_an_enqueued_config_is_evaluated_as_it_is() -> None:
    config = jahs.space().sample(seed=5)
    study = make_study(direction="maximize")
    study.enqueue_trial(jahs_optuna.from_config(config, jahs.space()))
    study.optimize(jahs_optuna.make_objective(BENCH), n_trials=1)
    assert jahs_optuna.to_config(study.trials[0].params, jahs.space()) == config


def test_several_metrics_go_in_their_own_directions() -> None:
    metrics = ("valid_acc", "latency")
    study = make_study(directions=jahs_optuna.directions(metrics))
    study.optimize(jahs_optuna.make_objective(BENCH, metrics), n_trials=20)
    found = {trial.number: trial.values for trial in study.trials}
    front = {
        i
        for i, (acc, latency) in found.items()
        if not any(a >= acc and b <= latency and (a, b) != (acc, latency) for a, b in found.values())
    }
    assert {trial.number for trial in study.best_trials} == front


def test_constraints_are_told_and_kept() -> None:
    study = make_study(direction="maximize")
    bound = 20_000
    study.optimize(jahs_optuna.make_objective(BENCH, constraints={"n_params": bound}), n_trials=30)
    sizes = [BENCH.query(jahs_optuna.to_config(trial.params, BENCH.space)).n_params for trial in study.trials]
    assert [trial.constraints["n_params"] for trial in study.trials] == [size - bound for size in sizes]
    assert min(sizes) < study.best_trial.user_attrs["n_params"] <= bound < max(sizes)


def test_a_pruner_stops_trials_at_the_budgets_and_they_cost_less() -> None:
    study = make_study(direction="maximize", pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1))
    study.optimize(jahs_optuna.make_objective(BENCH, budgets=(1, 3)), n_trials=25)
    assert {tuple(trial.intermediate_values) for trial in study.trials} >= {(1,), (1, 3, 12)}
    for trial in study.trials:
        config = jahs_optuna.to_config(trial.params, BENCH.space)
        last = max(trial.intermediate_values)
        assert trial.user_attrs["cost"] == BENCH.query(config, at=last).runtime
        assert trial.intermediate_values[last] == BENCH.query(config, at=last).valid_acc
        assert (trial.state.name == "PRUNED") == (last < 12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": ("valid_acc", "latency"), "budgets": (1,)}, "prunes studies of one metric only"),
        ({"budgets": (3, 1)}, r"budgets=\[3, 1\]: not integers in 1..12, ascending"),
        ({"budgets": (0,)}, "not integers in 1..12"),
        ({"budgets": (1.5,)}, "not integers in 1..12"),
        ({"budgets": ("a",)}, r"budgets=\['a'\]: not integers in 1..12"),
        ({"budgets": (None, 1)}, "not integers in 1..12"),
        ({"budgets": (float("nan"),)}, "not integers in 1..12"),
    ],
    ids=["several-metrics", "descending", "zero", "not-whole", "text", "none", "nan"],
)
def test_budgets_that_cannot_be_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        jahs_optuna.make_objective(BENCH, **arguments)


@pytest.mark.parametrize(
    ("metrics", "given"), [("valid_acc", {}), (("valid_acc", "latency"), {"directions": ["minimize", "minimize"]})]
)
def test_a_study_that_would_minimise_the_accuracy_is_refused(metrics, given: dict) -> None:
    with pytest.raises(InvalidArgument, match=r"must have \['maximize'.*create_study\(directions=\['maximize'"):
        optuna.create_study(**given).optimize(jahs_optuna.make_objective(BENCH, metrics), n_trials=1)


def test_a_view_is_searched_and_evaluated_in_its_own_space() -> None:
    view = View(BENCH, fidelities=("epoch", "Resolution"), fixed={"N": 5, "W": 16})
    study = make_study(direction="maximize", pruner=optuna.pruners.NopPruner())
    study.optimize(jahs_optuna.make_objective(view, budgets=(2,)), n_trials=3)
    for trial in study.trials:
        config = jahs_optuna.to_config(trial.params, view.space)
        assert "Resolution" not in trial.params
        assert trial.value == view.query(config).valid_acc
        small = view.query(config, at={"epoch": 2, "Resolution": 0.25})
        assert trial.intermediate_values[2] == small.valid_acc
        assert trial.user_attrs["cost"] == small.runtime + view.query(config).runtime  # a larger network begins anew


@pytest.mark.filterwarnings("ignore:optuna.*set_metric_names is experimental")
def test_the_hub_problem_has_directions_names_and_constraints() -> None:
    problem = jahs_optuna.make_problem(BENCH, ("valid_acc", "latency"), constraints={"n_params": 20_000})
    study = make_study(directions=problem.directions)
    study.set_metric_names(problem.metric_names)
    study.optimize(problem, n_trials=10)
    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    for trial in study.trials:
        assert problem.evaluate(trial.params) == tuple(trial.values)
        assert problem.evaluate_constraints(trial.params) == trial.constraints


def test_the_hub_problem_of_one_metric_is_a_number() -> None:
    problem = jahs_optuna.make_problem(BENCH)
    study = make_study(directions=problem.directions)
    study.optimize(problem, n_trials=3)
    assert isinstance(problem.evaluate(study.best_params), float)
    assert problem.evaluate_constraints(study.best_params) == {}


@pytest.mark.parametrize("name", ["optuna_tpe", "optuna_nsga2"])
class TestOptuna(OptimizerContract):
    has_many_objectives = True

    @pytest.fixture
    def optimizer(self, name):
        return lambda view, **settings: make(name, view, **settings)
