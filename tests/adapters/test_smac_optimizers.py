"""SMAC's facades hold the contract of any optimiser."""

from __future__ import annotations

import pytest

from experiments.optimizers import make
from jahs.simulate import Simulation
from tests.contracts.optimizer import VIEWS, OptimizerContract


@pytest.mark.parametrize("name", ["smac_black_box", "smac_multi_fidelity"])
class TestSmac(OptimizerContract):
    n_trials = 16  # within the initial design, but for one test below
    has_many_objectives = True

    @pytest.fixture
    def optimizer(self, name):
        return lambda view, **settings: make(name, view, **settings)


def test_a_model_is_fitted_after_the_initial_design() -> None:
    view = VIEWS["nas"]
    trials = Simulation(view, 2, n_trials=8).run(make("smac_black_box", view, seed=0, n_trials=8))
    assert len({str(trial.config) for trial in trials}) == 8
