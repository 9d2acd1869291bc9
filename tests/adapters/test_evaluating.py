"""Evaluations: directions, constraints, penalties, costs and seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.adapters.evaluating import Budgets, as_view, elapsed_times, make_evaluator
from jahs.errors import InvalidArgument, InvalidConfig, InvalidFidelity, UnknownName
from jahs.queries.views import FIDELITIES, View
from jahs.simulate import Proposal, Simulation
from tests.fake_bench import FakeBench

BENCH = FakeBench()
CONFIGS = BENCH.sample(30, seed=0)


def test_objectives_are_minimised_and_named_so() -> None:
    evaluator = make_evaluator(BENCH, ("valid-acc", "latency", "size_MB"))
    assert evaluator.names == ("valid_error", "latency", "n_params")
    for found in evaluator.evaluate_many(CONFIGS):
        asked = BENCH.query(found.config)
        assert found.objectives == {
            "valid_error": 100 - asked.valid_acc,
            "latency": asked.latency,
            "n_params": asked.n_params,
        }
        assert found.metrics["valid_acc"] == asked.valid_acc
        assert found.cost == asked.runtime
        assert found.fidelity == {"epoch": 12}


def test_only_what_is_needed_is_asked_for() -> None:
    found = make_evaluator(BENCH, "valid_acc", constraints={"n_params": 1}).evaluate(CONFIGS[0])
    assert set(found.metrics) == {"valid_acc", "n_params", "runtime"}


def test_facts_for_tools_hold_no_empty_mapping_which_parquet_cannot_store() -> None:
    assert make_evaluator(BENCH, "valid_acc").evaluate(CONFIGS[0]).info.keys() == {"metrics"}
    both = make_evaluator(BENCH, "valid_acc", constraints={"n_params": 1}).evaluate(CONFIGS[0]).info
    assert both.keys() == {"metrics", "violations"}


def test_many_configs_at_many_budgets_are_one_query_and_each_ones_own_answer() -> None:
    evaluator = make_evaluator(BENCH, "valid_acc")
    budgets = [1 + i % 12 for i in range(len(CONFIGS))]
    found = evaluator.evaluate_many(CONFIGS, budgets=budgets)
    for config, budget, one in zip(CONFIGS, budgets, found, strict=True):
        assert one.fidelity == {"epoch": budget}
        assert one.metrics["valid_acc"] == BENCH.query(config, at=budget).valid_acc
        assert evaluator.evaluate(config, budget=budget).objectives == one.objectives
    assert evaluator.evaluate_many([]) == []


def test_budgets_are_any_sequence_with_one_for_each_config() -> None:
    evaluator = make_evaluator(BENCH, "valid_acc")
    found = evaluator.evaluate_many(CONFIGS[:3], budgets=[1, 2, 3])
    assert evaluator.evaluate_many(CONFIGS[:3], budgets=np.array([1, 2, 3])) == found
    with pytest.raises(InvalidFidelity, match="0 fidelities for 3 configs"):
        evaluator.evaluate_many(CONFIGS[:3], budgets=[])


@given(st.floats(1, 100), st.floats(1, 1e6))
def test_a_violation_is_the_distance_to_the_bound_in_the_metrics_unit(least: float, most: float) -> None:
    evaluator = make_evaluator(BENCH, "latency", constraints={"valid_acc": least, "n_params": most})
    for found in evaluator.evaluate_many(CONFIGS[:5]):
        assert found.violations["valid_acc"] == pytest.approx(least - found.metrics["valid_acc"])
        assert found.violations["n_params"] == pytest.approx(found.metrics["n_params"] - most)
        assert found.penalised == found.objectives


@given(st.floats(1e3, 2e5))
def test_a_penalised_config_is_worse_than_every_one_that_keeps_the_constraint(most: float) -> None:
    evaluator = make_evaluator(BENCH, "valid_acc", constraints={"n_params": most}, knows_constraints=False)
    found = evaluator.evaluate_many(CONFIGS)
    kept = [one.penalised["valid_error"] for one in found if one.violations["n_params"] <= 0]
    broken = sorted((one.violations["n_params"], one.penalised["valid_error"]) for one in found)[len(kept) :]
    assert max(kept, default=0) <= 100 < min((penalty for _, penalty in broken), default=101)
    assert [penalty for _, penalty in broken] == sorted(penalty for _, penalty in broken)


def test_worst_is_given_in_the_metrics_unit() -> None:
    evaluator = make_evaluator(
        BENCH,
        ("valid_acc", "latency"),
        constraints={"n_params": 1},
        worst={"valid_acc": 10, "latency": 3},
        knows_constraints=False,
    )
    found = evaluator.evaluate(CONFIGS[0])
    assert found.penalised == pytest.approx(
        {"valid_error": 90 + found.violations["n_params"], "latency": 3 + found.violations["n_params"]}
    )


def test_a_seed_is_a_draw_and_may_be_replaced() -> None:
    evaluator = make_evaluator(BENCH, "valid_acc", seed=1)
    asked = {seed: BENCH.query(CONFIGS[0], seed=seed).valid_acc for seed in (1, 2)}
    assert evaluator.evaluate(CONFIGS[0]).metrics["valid_acc"] == asked[1]
    assert evaluator.evaluate(CONFIGS[0], seed=2).metrics["valid_acc"] == asked[2]


def test_a_benchmark_without_runtime_has_no_cost() -> None:
    bench = FakeBench(names=("valid_acc",))
    assert math.isnan(make_evaluator(bench, "valid_acc").evaluate(CONFIGS[0]).cost)


@pytest.mark.parametrize("fidelities", [("epoch",), ("epoch", "N", "W", "Resolution"), ("epoch", "Resolution")])
def test_time_passes_along_a_path_as_in_a_simulation(fidelities: tuple[str, ...]) -> None:
    evaluator = make_evaluator(View(BENCH, fidelities=fidelities), "valid_acc")
    config = evaluator.view.sample(seed=3)
    times = elapsed_times(evaluator.evaluate_many([config] * 12, budgets=range(1, 13)))
    steps = iter([Proposal(config=config, at=evaluator.budgets.fidelity(budget)) for budget in range(1, 13)])
    trials = Simulation(evaluator.view, workers=1, n_trials=12).run(lambda so_far: next(steps))
    assert times == pytest.approx([trial.end for trial in trials])


def test_a_views_keys_are_completed_and_its_path_is_walked() -> None:
    view = View(BENCH, fidelities=("epoch", "Resolution"), fixed={"N": 5, "W": 16}, search="nas")
    cell = {f"Op{i}": np.int64(2) for i in range(1, 7)}
    found = make_evaluator(view, "valid_acc").evaluate(cell, budget=4.0)
    assert found.fidelity == {"epoch": 4, "Resolution": 0.5}
    assert found.metrics["valid_acc"] == view.query(found.config, at=found.fidelity).valid_acc


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"metrics": ()}, InvalidArgument, "metrics is empty"),
        ({"metrics": "accuracy"}, UnknownName, "metric='accuracy' does not exist"),
        ({"metrics": "test_acc"}, UnknownName, "test_acc"),
        ({"metrics": ("latency", "latency")}, InvalidArgument, "more than once"),
        ({"constraints": {"size": 1}}, UnknownName, "metric='size' does not exist"),
        ({"constraints": {"n_params": "small", "latency": math.nan}}, InvalidArgument, r"(?s)'small'.*latency=nan"),
        ({"worst": {"latency": 1}}, InvalidArgument, "worst: latency is not an objective"),
        ({"seed": 1.5}, InvalidArgument, "seed=1.5 is not an integer"),
        ({"seed": -1}, InvalidArgument, "seed=-1 is not an integer"),
    ],
    ids=[
        *("none", "unknown", "not-answered", "twice", "unknown-constraint", "not-finite", "not-an-objective"),
        *("fraction", "negative"),
    ],
)
def test_faults_of_the_arguments_are_named(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_evaluator(BENCH, **{"metrics": "valid_acc", **arguments})


def test_bounds_may_be_numbers_of_numpy() -> None:
    def bounds(number: object) -> list[tuple]:
        evaluator = make_evaluator(BENCH, "valid_acc", constraints={"n_params": number, "valid_acc": number})
        worst = make_evaluator(
            BENCH, "latency", constraints={"n_params": 1}, worst={"latency": number}, knows_constraints=False
        )
        return [*((one.metric.name, most) for one, most in evaluator.constraints), *worst.worst.items()]

    for number in (np.int64(3), np.float32(3), np.float64(3), np.uint8(3)):
        assert bounds(number) == bounds(3) == [("n_params", 3.0), ("valid_acc", 97.0), ("latency", 3.0)]
    for number in (np.bool_(True), True, np.float32("nan"), 10**400, np.longdouble("inf"), None, np.array([1])):
        with pytest.raises(InvalidArgument, match=r"n_params=.* is not a finite number"):
            bounds(number)


def test_a_bad_config_or_budget_is_refused() -> None:
    evaluator = make_evaluator(BENCH, "valid_acc")
    with pytest.raises(InvalidConfig, match="N=2"):
        evaluator.evaluate({**CONFIGS[0], "N": 2})
    with pytest.raises(InvalidFidelity):
        evaluator.evaluate(CONFIGS[0], budget=13)


BUDGETS = st.floats(1, 12)
SUBSETS = st.lists(st.sampled_from(FIDELITIES), min_size=1, unique=True)


def test_a_budget_is_an_epoch_where_the_epoch_alone_is_a_fidelity() -> None:
    budgets = Budgets(as_view(BENCH))
    assert (budgets.name, budgets.most) == ("epoch", 12)
    assert [budgets.fidelity(at)["epoch"] for at in (1, 4 / 3, 2.469, 2.5, 3.5, 12, 12.000000001)] == [
        1, 1, 2, 2, 4, 12, 12,
    ]  # fmt: skip


@given(BUDGETS, BUDGETS, SUBSETS)
def test_a_larger_budget_buys_no_less_of_anything(one: float, other: float, names: list[str]) -> None:
    budgets = Budgets(View(BENCH, fidelities=names))
    less, more = (budgets.fidelity(at) for at in sorted((one, other)))
    assert set(less) == set(names)
    assert all(less[name] <= more[name] for name in names)
    assert all(value in budgets.view.fidelities[name] for name, value in more.items())


@given(SUBSETS)
def test_the_least_budget_is_the_lowest_fidelity_and_the_most_the_full_one(names: list[str]) -> None:
    budgets = Budgets(View(BENCH, fidelities=names))
    assert budgets.name == ("epoch" if names == ["epoch"] else "budget")
    assert budgets.fidelity(1) == {name: values[0] for name, values in budgets.view.fidelities.items()}
    assert budgets.fidelity(budgets.most) == budgets.view.full


@pytest.mark.parametrize("names", [["epoch"], ["epoch", "N"]], ids=["epoch", "path"])
@pytest.mark.parametrize(
    "budget",
    [0, -1, 12.6, math.nan, math.inf, "full", True, 10**400],
    ids=["zero", "negative", "beyond", "nan", "infinite", "text", "bool", "huge"],
)
def test_what_is_no_budget_is_refused(names: list[str], budget: object) -> None:
    with pytest.raises(InvalidFidelity):
        Budgets(View(BENCH, fidelities=names)).fidelity(budget)


def test_a_view_stays_the_view_that_it_is() -> None:
    view = View(BENCH, search="nas")
    assert as_view(view) is view
    assert as_view(BENCH).space == BENCH.space


@pytest.mark.parametrize("bounds", [["n_params"], 0, "n_params"])
def test_bounds_that_are_not_a_mapping_are_refused(bounds) -> None:
    for option in ("constraints", "worst"):
        with pytest.raises(InvalidArgument, match=f"{option}=.* is not a mapping of metrics to bounds"):
            make_evaluator(BENCH, "valid_acc", **{option: bounds})
