"""Syne Tune: domains, the blackbox, and a tuning in its simulator."""

from __future__ import annotations

import numpy as np
import pytest
from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend.simulator_backend.simulator_callback import SimulatorCallback
from syne_tune.blackbox_repository import UserBlackboxBackend
from syne_tune.experiments import load_experiment
from syne_tune.optimizer.baselines import ASHA, BOHB, RandomSearch

import jahs
from experiments.optimizers import make
from jahs.adapters import syne_tune as jahs_syne_tune
from jahs.errors import InvalidArgument
from jahs.queries.views import View
from jahs.simulate import Proposal, Simulation
from tests.contracts.adapter import AdapterContract
from tests.contracts.optimizer import VIEWS, OptimizerContract
from tests.fake_bench import FakeBench

BENCH = FakeBench()


class TestSpace(AdapterContract):
    adapter = jahs_syne_tune

    def sample(self, space, n):
        chance = np.random.RandomState(0)
        made = jahs_syne_tune.make_space(space)
        return [{name: domain.sample(random_state=chance) for name, domain in made.items()} for _ in range(n)]

    def check(self, params, space):
        for name, domain in jahs_syne_tune.make_space(space).items():
            assert domain.is_valid(params[name])
            assert domain.cast(params[name]) == params[name]


@pytest.fixture(autouse=True)
def _results_stay_here(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path))


def tune(blackbox, scheduler, n_trials: int):
    tuner = Tuner(
        trial_backend=UserBlackboxBackend(blackbox, elapsed_time_attr=jahs_syne_tune.ELAPSED_TIME),
        scheduler=scheduler,
        stop_criterion=StoppingCriterion(max_num_trials_finished=n_trials),
        n_workers=4,
        sleep_time=0,
        callbacks=[SimulatorCallback()],
        tuner_name="test",
        save_tuner=False,
    )
    tuner.run()
    return load_experiment(tuner.name).results


def test_without_a_fidelity_the_blackbox_tells_every_epoch() -> None:
    blackbox = jahs_syne_tune.make_blackbox(BENCH, ("valid_acc", "latency"))
    config = BENCH.space.sample(seed=0)
    params = jahs_syne_tune.from_config(config, BENCH.space)
    curve = blackbox.objective_function(params)
    answers = BENCH.trajectory(config)
    assert blackbox.objectives_names == ["valid_error", "latency", "elapsed_time"]
    assert blackbox.fidelity_values.tolist() == answers["epoch"].tolist()
    assert curve[:, 0] == pytest.approx(100 - answers["valid_acc"])
    assert curve[:, 1] == pytest.approx(answers["latency"])
    assert curve[:, 2] == pytest.approx(answers["runtime"])
    for epoch in (1, 12):
        told = blackbox.objective_function(params, {"epoch": epoch})
        assert told == dict(zip(blackbox.objectives_names, curve[epoch - 1], strict=True))


def test_a_seed_of_the_backend_is_the_draw_of_the_noise() -> None:
    blackbox = jahs_syne_tune.make_blackbox(BENCH, seed=1)
    params = jahs_syne_tune.from_config(BENCH.space.default(), BENCH.space)
    told = {seed: blackbox.objective_function(params, {"epoch": 12}, seed=seed)["valid_error"] for seed in (None, 1, 2)}
    assert told[None] == told[1] != told[2]
    assert told[2] == 100 - BENCH.query(BENCH.space.default(), seed=2).valid_acc


@pytest.mark.parametrize("name", ["asha", "bohb", "random"])
def test_the_simulator_tunes_in_simulated_time(name: str) -> None:
    blackbox = jahs_syne_tune.make_blackbox(BENCH)
    space = blackbox.configuration_space
    scheduler = {
        "asha": lambda: ASHA(space, metric="valid_error", time_attr="epoch", max_t=12, random_seed=0),
        "bohb": lambda: BOHB(space, metric="valid_error", time_attr="epoch", max_t=12, random_seed=0),
        "random": lambda: RandomSearch(space, metrics=["valid_error"], random_seed=0),
    }[name]()
    results = tune(blackbox, scheduler, n_trials=15)
    last = results.groupby("trial_id").tail(1)
    assert len(last) >= 15
    for row in last.to_dict("records"):
        config = jahs_syne_tune.to_config(
            {key.removeprefix("config_"): row[key] for key in row if "config_" in key}, BENCH.space
        )
        asked = BENCH.query(config, at=int(row["epoch"]))
        assert row["valid_error"] == pytest.approx(100 - asked.valid_acc)
        # The simulator lets at least 0.01 seconds pass from one epoch to the next.
        assert row["elapsed_time"] == pytest.approx(max(asked.runtime, 0.01 * row["epoch"]))
    assert (name == "random") == (set(last["epoch"]) == {12})


def test_a_view_of_several_fidelities_has_one_budget_along_its_path() -> None:
    view = View(BENCH, fidelities=("epoch", "Resolution"), fixed={"N": 5, "W": 16})
    blackbox = jahs_syne_tune.make_blackbox(view)
    assert list(blackbox.fidelity_space) == ["budget"]
    config = view.sample(seed=0)
    told = blackbox.objective_function(jahs_syne_tune.from_config(config, view.space), {"budget": 1})
    asked = view.query(config, at={"epoch": 1, "Resolution": 0.25})
    assert told == {"valid_error": 100 - asked.valid_acc, "elapsed_time": asked.runtime}


def test_time_passes_along_a_path_as_in_a_simulation() -> None:
    view = View(BENCH, fidelities=("epoch", "N", "W", "Resolution"))
    blackbox = jahs_syne_tune.make_blackbox(view)
    config = view.sample(seed=0)
    params = jahs_syne_tune.from_config(config, view.space)
    steps = iter([Proposal(config=config, at=view.path(budget / 12)) for budget in range(1, 13)])
    trials = Simulation(view, workers=1, n_trials=12).run(lambda so_far: next(steps))
    times = blackbox.objective_function(params)[:, 1]
    assert times == pytest.approx([trial.end for trial in trials])
    assert blackbox.objective_function(params, {"budget": 9})["elapsed_time"] == times[8]


def test_a_config_that_breaks_a_constraint_is_worse_than_every_other() -> None:
    blackbox = jahs_syne_tune.make_blackbox(BENCH, constraints={"n_params": 20_000})
    for config in BENCH.sample(20, seed=0):
        asked = BENCH.query(config)
        told = blackbox.objective_function(jahs_syne_tune.from_config(config, BENCH.space), {"epoch": 12})[
            "valid_error"
        ]
        expected = 100 - asked.valid_acc if asked.n_params <= 20_000 else 100 + asked.n_params / 20_000 - 1
        assert told == pytest.approx(expected)


def test_a_benchmark_without_runtime_cannot_be_simulated() -> None:
    with pytest.raises(InvalidArgument, match="the simulator needs runtime"):
        jahs_syne_tune.make_blackbox(FakeBench(names=("valid_acc", "n_params")))


def test_text_from_a_table_of_results_is_read_as_what_it_spells() -> None:
    params = {
        key: str(value) for key, value in jahs_syne_tune.from_config(jahs.space().default(), jahs.space()).items()
    }
    assert params["TrivialAugment"] == "False"
    assert jahs_syne_tune.to_config(params, jahs.space()) == jahs.space().default()


class TestBohb(OptimizerContract):
    @pytest.fixture
    def optimizer(self):
        return lambda view, **settings: make("syne_tune_bohb", view, **settings)

    # The contract's own two know no trials that the optimiser stops.
    def test_goes_on_when_failures_are_frequent(self, optimizer) -> None:
        trials = self.run(optimizer(VIEWS["nas"], seed=0), failure_rate=0.4)
        assert len(trials) == self.n_trials
        assert {t.status for t in trials} == {"finished", "failed", "stopped"}

    def test_survives_when_every_trial_fails(self, optimizer) -> None:
        trials = self.run(optimizer(VIEWS["nas"], seed=0), failure_rate=1 - 1e-12, n_trials=25)
        assert {t.status for t in trials} <= {"failed", "stopped"}


def test_trials_are_stopped_at_rungs_of_epochs() -> None:
    view = VIEWS["nas"]
    trials = Simulation(view, 3, n_trials=40).run(make("syne_tune_bohb", view, seed=0))
    stopped = [trial for trial in trials if trial.status == "stopped"]
    assert len(stopped) > 10
    assert {trial.fidelity["epoch"] for trial in stopped} <= {1, 3}
    assert {trial.fidelity["epoch"] for trial in trials if trial.status == "finished"} == {9}
