"""Optuna's samplers hold the contract of any optimiser."""

from __future__ import annotations

import pytest

from experiments.optimizers import make
from tests.contracts.optimizer import OptimizerContract


@pytest.mark.parametrize("name", ["optuna_tpe", "optuna_nsga2"])
class TestOptuna(OptimizerContract):
    has_many_objectives = True

    @pytest.fixture
    def optimizer(self, name):
        return lambda view, **settings: make(name, view, **settings)
