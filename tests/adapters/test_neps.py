"""NePS: spaces with a fidelity and priors, its runs, its asking and telling, and its chance."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pandas as pd
import pytest

import jahs
from experiments.optimizers import make
from experiments.optimizers.tools import neps as neps_tool
from jahs.adapters import neps as jahs_neps
from jahs.adapters.importing import import_tool
from jahs.errors import InvalidArgument, InvalidConfig
from jahs.queries.views import View
from jahs.simulate import Proposal, Simulation
from tests.contracts.adapter import AdapterContract
from tests.contracts.optimizer import VIEWS, OptimizerContract
from tests.fake_bench import FakeBench

neps = import_tool("neps", needs="neural-pipeline-search")
torch = import_tool("torch", needs="torch")
validation = import_tool("neps.validation", needs="neural-pipeline-search")
BENCH = FakeBench()
ALGORITHMS = neps.algorithms


@cache
def classic_space(space):
    """The space as NePS hands it to its optimisers, and as it checks trials that are imported."""
    return ALGORITHMS.convert_neps_to_classic_search_space(jahs_neps.make_space(space))


class TestSpace(AdapterContract):
    adapter = jahs_neps

    def sample(self, space, n):
        asked = neps.AskAndTell(ALGORITHMS.random_search(jahs_neps.make_space(space)))
        with jahs_neps.Chance(0):
            return [trial.config for trial in asked.ask(n=n)]

    def check(self, params, space):
        for name, domain in classic_space(space).items():
            assert validation.validate_parameter_value(domain, params[name]), name


def ask_and_tell(make, space, evaluate, *, n: int, seed: int = 0) -> list[tuple[str, dict, dict]]:
    """Let an optimiser ask and hear `n` times; return each trial's id, config and what was told."""
    told = []
    with jahs_neps.Chance(seed):
        asked = neps.AskAndTell(make(space))
        for _ in range(n):
            trial = asked.ask()
            result = evaluate(**trial.config)
            asked.tell(trial, result)
            told.append((trial.id, dict(trial.config), result))
    return told


OPTIMISERS = {
    "random_search": lambda space: ALGORITHMS.random_search(space, ignore_fidelity="highest_fidelity"),
    "neps_random_search": lambda space: ALGORITHMS.neps_random_search(space, ignore_fidelity="highest_fidelity"),
    "hyperband": ALGORITHMS.hyperband,
    "neps_hyperband": ALGORITHMS.neps_hyperband,
    "asha": ALGORITHMS.asha,
}
WITH_PRIORS = {"priorband": ALGORITHMS.priorband, "neps_priorband": ALGORITHMS.neps_priorband}


@pytest.mark.parametrize("name", [*OPTIMISERS, *WITH_PRIORS])
def test_what_an_optimiser_asks_for_is_a_config_at_a_budget(name: str) -> None:
    prior = BENCH.space.default() if name in WITH_PRIORS else None
    space = jahs_neps.make_space(BENCH.space, fidelity_of=BENCH, prior=prior)
    evaluate = jahs_neps.make_objective(BENCH)
    told = ask_and_tell((OPTIMISERS | WITH_PRIORS)[name], space, evaluate, n=15)
    epochs = set()
    for _, params, result in told:
        config = jahs_neps.to_config(params, BENCH.space)
        epoch = jahs_neps.split_budget(params, BENCH.space)[1]
        asked = BENCH.query(config, at=epoch)
        assert result["objective_to_minimize"] == 100 - asked.valid_acc
        assert result["cost"] == asked.runtime
        epochs.add(epoch)
    assert epochs == {12} if "random" in name else {1, 4} <= epochs
    again = ask_and_tell((OPTIMISERS | WITH_PRIORS)[name], space, evaluate, n=15)
    assert again == told


def test_chance_goes_on_where_it_was_and_leaves_the_process_alone() -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))  # noqa: NPY002

    def states() -> tuple[object, list[int], list[int]]:
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002

    chance = jahs_neps.Chance(5)
    with chance:
        expected = [draw(), draw()]
    outside = states()
    chance = jahs_neps.Chance(5)
    found = []
    for _ in range(2):
        with chance:
            found.append(draw())
        assert states() == outside
    assert found == expected


def test_a_run_writes_configs_costs_and_metrics(tmp_path) -> None:
    space = jahs_neps.make_space(BENCH.space, fidelity_of=BENCH)
    with jahs_neps.Chance(1):
        neps.run(
            jahs_neps.make_objective(BENCH),
            space,
            root_directory=tmp_path / "run",
            total_evaluations_to_spend=13,
            optimizer="asha",
        )
    table = pd.read_csv(tmp_path / "run" / "summary" / "full.csv", index_col=0)
    spent: dict[str, float] = {}
    for name, row in sorted(table.iterrows()):
        params = {key.removeprefix("config."): value for key, value in row.items() if key.startswith("config.")}
        config = jahs_neps.to_config(params, BENCH.space)
        asked = BENCH.query(config, at=int(params["epoch"]))
        assert row["objective_to_minimize"] == pytest.approx(100 - asked.valid_acc)
        before = spent.get(name.split("_")[0], 0.0)
        assert row["cost"] == pytest.approx(asked.runtime - before)
        spent[name.split("_")[0]] = asked.runtime
    assert len(table) == 13
    assert {1, 4} <= set(table["config.epoch"])


@pytest.mark.parametrize(
    ("fidelities", "budgets"),
    [
        (("epoch", "N", "W", "Resolution"), (4, 12)),  # a larger network
        (("epoch", "N", "W", "Resolution"), (4, 8)),  # the same network
        (("Resolution",), (1, 12)),  # a larger one, all epochs
        (("Resolution",), (1, 2)),  # the same once more
    ],
)
def test_a_config_that_goes_on_costs_what_a_simulation_charges(tmp_path, fidelities, budgets) -> None:
    view = View(BENCH, fidelities=fidelities)
    config = view.sample(seed=3)
    evaluate, params = jahs_neps.make_objective(view), jahs_neps.from_config(config, view.space)
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    told = [
        evaluate(pipeline_directory=folders[0], budget=budgets[0], **params),
        evaluate(pipeline_directory=folders[1], previous_pipeline_directory=folders[0], budget=budgets[1], **params),
    ]
    steps = iter([Proposal(config=config, at=view.path(budget / 12)) for budget in budgets])
    trials = Simulation(view, workers=1, n_trials=2).run(lambda so_far: next(steps))
    assert [one["cost"] for one in told] == pytest.approx([trial.end - trial.start for trial in trials])


def test_a_prior_stands_at_the_values_that_are_given_and_nowhere_else() -> None:
    made = jahs_neps.make_space(jahs.space(), prior={"LearningRate": 0.2, "Op1": 3, "N": 5}, confidence="high")
    domains = made.get_attrs()
    assert domains["LearningRate"].prior == 0.2
    assert domains["Op1"].choices[domains["Op1"].prior] == 3
    assert domains["N"].choices[domains["N"].prior] == 5
    assert {domains[name].prior_confidence.value for name in ("LearningRate", "Op1", "N")} == {"high"}
    assert not domains["Op2"].has_prior


def test_a_prior_that_is_not_legal_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"(?s)LearningRate=2.0 is outside.*N=2 is not one of"):
        jahs_neps.make_space(jahs.space(), prior={"LearningRate": 2.0, "N": 2})


def test_several_metrics_are_a_list_of_what_is_minimised() -> None:
    evaluate = jahs_neps.make_objective(BENCH, ("valid_acc", "latency"))
    space = jahs_neps.make_space(BENCH.space, fidelity_of=BENCH)
    for _, params, result in ask_and_tell(ALGORITHMS.moasha, space, evaluate, n=6):
        config, epoch = jahs_neps.to_config(params, BENCH.space), params["epoch"]
        asked = BENCH.query(config, at=epoch)
        assert result["objective_to_minimize"] == [100 - asked.valid_acc, asked.latency]


def test_a_view_of_several_fidelities_has_one_budget_along_its_path() -> None:
    view = View(BENCH, fidelities=("epoch", "Resolution"), fixed={"N": 5, "W": 16})
    space = jahs_neps.make_space(view.space, fidelity_of=view)
    ((_, params, result),) = ask_and_tell(ALGORITHMS.hyperband, space, jahs_neps.make_objective(view), n=1)
    assert params["budget"] == 1
    asked = view.query(jahs_neps.to_config(params, view.space), at={"epoch": 1, "Resolution": 0.25})
    assert result["objective_to_minimize"] == 100 - asked.valid_acc


def test_a_config_that_breaks_a_constraint_is_worse_than_every_other() -> None:
    evaluate = jahs_neps.make_objective(BENCH, constraints={"n_params": 20_000})
    for config in BENCH.sample(20, seed=0):
        asked = BENCH.query(config)
        told = evaluate(**jahs_neps.from_config(config, BENCH.space))["objective_to_minimize"]
        expected = 100 - asked.valid_acc if asked.n_params <= 20_000 else 100 + asked.n_params / 20_000 - 1
        assert told == pytest.approx(expected)


@pytest.mark.parametrize("name", ["neps_random_search", "neps_hyperband", "neps_priorband", "neps_pibo"])
class TestNeps(OptimizerContract):
    n_trials = 16

    @pytest.fixture
    def optimizer(self, name):
        # Drawing alone: a model takes seconds for each trial, and has a test of its own.
        settings = {"initial_design_size": 100} if name == "neps_pibo" else {}
        return lambda view, **more: make(name, view, **settings, **more)


@pytest.mark.filterwarnings("ignore:Data .input features. is not contained")
def test_a_model_is_fitted_after_the_initial_design() -> None:
    view = VIEWS["nas"]
    trials = Simulation(view, 1, n_trials=5).run(make("neps_pibo", view, seed=0, initial_design_size=3))
    assert [trial.status for trial in trials] == ["finished"] * 5


def test_a_prior_that_contradicts_the_space_and_an_unknown_confidence_are_refused() -> None:
    space = BENCH.space.fix({"N": 5})
    with pytest.raises(InvalidArgument, match="prior: N=1, but the space fixes it at 5"):
        jahs_neps.make_space(space, prior={"N": 1})
    with pytest.raises(InvalidArgument, match="confidence='hgih' is not one of low, medium, high"):
        jahs_neps.make_space(space, prior={"N": 5}, confidence="hgih")
    for params in (None, {1: 2}):
        with pytest.raises(InvalidConfig):
            jahs_neps.to_config(params, space)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", ["neps_hyperband", "neps_priorband"])
def test_full_brackets_and_higher_rungs_are_left_out_and_change_no_proposal(name, workers, monkeypatch):
    def proposed():
        view = View(BENCH, fidelities=("epoch",))
        simulation = Simulation(view, workers=workers, n_trials=120)
        return [(trial.config, trial.fidelity) for trial in simulation.stream(make(name, view, seed=1))]

    quick = proposed()
    monkeypatch.setattr(neps_tool, "_OpenBrackets", lambda create: create)
    assert proposed() == quick
    assert len({fidelity["epoch"] for _, fidelity in quick}) > 2
