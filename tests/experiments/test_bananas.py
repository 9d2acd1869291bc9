"""BANANAS holds the contract of any optimiser, reads paths, and predicts what it was told."""

import numpy as np
import pytest

from experiments.optimizers import make
from experiments.optimizers.tools.bananas import encoded
from jahs.adapters.values import shown_parameters
from jahs.simulate import Simulation
from tests.contracts.optimizer import VIEWS, OptimizerContract

QUICK = {"n_epochs": 5, "n_layers": 2, "n_candidates": 20}


class TestBananas(OptimizerContract):
    @pytest.fixture
    def optimizer(self):
        return lambda view, **settings: make("bananas", view, **{**QUICK, **settings})


def test_a_cell_is_encoded_by_its_paths():
    view = VIEWS["nas"]
    config = dict(view.sample(1, seed=0)[0])
    # 3x3 convolutions on 1-2, 2-3 and 3-4; an identity on 1-4; zeros elsewhere.
    config.update(Op1=2, Op2=1, Op3=0, Op4=2, Op5=1, Op6=2)
    (row,) = encoded(view.space, [config], list(shown_parameters(view.space)))
    paths = row[: 4 + 4**2 + 4**3]
    assert paths.sum() == 2
    assert paths[0] == 1  # identity is the first of the operations that pass anything on
    assert paths[4 + 16 :].sum() == 1
    no_path = {**config, "Op1": 1, "Op3": 1}
    assert not encoded(view.space, [no_path], list(shown_parameters(view.space)))[0][:84].any()


def test_the_other_keys_are_encoded_too():
    view = VIEWS["full"]
    keys = list(shown_parameters(view.space))
    a, b = view.sample(2, seed=1)
    for key in keys:
        is_op = key.startswith("Op")
        changed = {**a, key: b[key]}
        differs = not np.array_equal(*encoded(view.space, [a, changed], keys))
        assert is_op or differs == (a[key] != b[key])
    rows = encoded(view.space, view.sample(50, seed=2), keys)
    assert ((rows >= 0) & (rows <= 1)).all()


def test_the_ensemble_predicts_losses_that_depend_on_paths_and_rates():
    view = VIEWS["full"]
    optimizer = make("bananas", view, seed=0)
    known, asked = view.sample(60, seed=3), view.sample(40, seed=4)
    x, z = (encoded(view.space, configs, list(shown_parameters(view.space))) for configs in (known, asked))
    slopes = np.random.default_rng(0).normal(size=x.shape[1])
    predicted = optimizer._predicted(x, 50 + 3 * (x @ slopes), z).mean(axis=0)
    assert np.corrcoef(predicted, z @ slopes)[0, 1] > 0.5


def test_nothing_is_proposed_twice_while_there_is_something_new():
    view = VIEWS["full"]
    trials = Simulation(view, 1, n_trials=60).run(make("bananas", view, seed=0, **QUICK))
    assert len({tuple(trial.config.values()) for trial in trials}) == 60
