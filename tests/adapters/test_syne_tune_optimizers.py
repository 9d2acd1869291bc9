"""BOHB by Syne Tune holds the contract of any optimiser, and stops trials at its rungs."""

from __future__ import annotations

import pytest

from experiments.optimizers import make
from jahs.simulate import Simulation
from tests.contracts.optimizer import VIEWS, OptimizerContract


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
