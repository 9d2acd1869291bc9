"""NePS's optimisers hold the contract of any optimiser."""

from __future__ import annotations

import pytest

from experiments.optimizers import make
from jahs.simulate import Simulation
from tests.contracts.optimizer import VIEWS, OptimizerContract


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
