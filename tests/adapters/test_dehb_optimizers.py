"""DEHB holds the contract of any optimiser."""

from __future__ import annotations

import pytest

from experiments.optimizers import make
from tests.contracts.optimizer import OptimizerContract

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")


class TestDehb(OptimizerContract):
    @pytest.fixture
    def optimizer(self):
        return lambda view, **settings: make("dehb", view, **settings)
