"""One setting for all: what additive and interacting accuracies say."""

import numpy as np
import pytest

from experiments.science.hyperparameters import _beside, measure_shared, shared_setting
from experiments.science.subjects import open_subject
from jahs.spaces.parameters import LARGEST
from tests.experiments.conftest import TASK

RNG = np.random.default_rng(0)
CELLS, SETTINGS = RNG.normal(70, 5, (40, 1)), RNG.normal(0, 3, (1, 12))


def test_without_interaction_one_setting_is_the_best_of_all():
    comparison = shared_setting(CELLS + SETTINGS, n_tuned=10)
    assert comparison.setting == SETTINGS.argmax()
    assert comparison.measures["rho"].value == pytest.approx(1)
    assert comparison.measures["loss"].value == comparison.measures["loss of the winner"].value == 0
    assert len(comparison.best) == 30


def test_interaction_costs_ranks_and_accuracy():
    comparison = shared_setting(CELLS + SETTINGS + RNG.normal(0, 8, (40, 12)), n_tuned=10)
    rho, loss = (comparison.measures[name] for name in ("rho", "loss"))
    assert rho.value < 0.9
    assert rho.low <= rho.value <= rho.high
    assert loss.low > 0
    assert (comparison.best >= comparison.shared).all()


def test_cells_that_always_fail_raise_rho_and_the_page_says_so():
    failing = np.where(np.arange(40)[:, None] % 2 == 1, 10.0 + 1e-3 * CELLS, 0.0)
    mixed = CELLS + SETTINGS + RNG.normal(0, 8, (40, 12))
    without, beside = (shared_setting(values, n_tuned=10) for values in (mixed, np.where(failing > 0, failing, mixed)))
    assert beside.measures["rho"].value > without.measures["rho"].value
    flat = shared_setting(CELLS + SETTINGS, n_tuned=10)
    assert _beside("a task", flat)[-1].endswith("the cause was not tested")  # no cell of these fails


def test_refits_widen_the_intervals(release_with_refits):
    subject = open_subject(TASK, release_with_refits)
    found, setting = measure_shared(subject, LARGEST, n_cells=12, n_floats=2)
    assert len(subject.refits) == 2
    assert {"LearningRate", "WeightDecay", "Activation", "TrivialAugment"} <= setting.keys()
    assert found.measures["rho"].low <= found.measures["rho"].value <= found.measures["rho"].high
