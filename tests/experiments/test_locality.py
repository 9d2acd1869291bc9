"""Walks, their autocorrelation, and changes of a config."""

from itertools import pairwise

import numpy as np
import pytest

import jahs
from experiments.analysis.landscape_measures import autocorrelation, contexts, mutants, random_walk
from jahs.errors import InvalidArgument
from jahs.spaces.space import GROUPS

SPACE = jahs.space({"N": 5, "W": 16, "Resolution": 1.0})


def test_every_step_of_a_walk_is_a_move_of_its_space():
    walk = random_walk(SPACE, 30, seed=3)
    assert len(walk) == 31
    assert all(after in SPACE.neighbors(before) for before, after in pairwise(walk))
    assert walk == random_walk(SPACE, 30, seed=3)
    assert walk[:11] == random_walk(SPACE, 10, seed=3)
    assert walk != random_walk(SPACE, 30, seed=4)


def test_contexts_hold_the_rest_at_random_values():
    spaces = contexts(SPACE, GROUPS["architecture"], 5, seed=1)
    assert {space.searched for space in spaces} == {GROUPS["architecture"]}
    assert len({space.fixed["LearningRate"] for space in spaces}) == 5
    assert {space.fixed["N"] for space in spaces} == {5}


def test_the_autocorrelation_of_a_process_whose_is_known():
    # Each value keeps 0.7 of the last one; contexts differ by far more than that, which must not count.
    rng = np.random.default_rng(0)
    values = np.empty((30, 20, 60))
    values[..., 0] = rng.normal(size=(30, 20))
    for i in range(1, 60):
        values[..., i] = 0.7 * values[..., i - 1] + np.sqrt(1 - 0.49) * rng.normal(size=(30, 20))
    means = 100 * rng.normal(size=30)
    correlations = autocorrelation(values + means[:, None, None], means, n_lags=5)
    assert [lag.value for lag in correlations] == pytest.approx([0.7**i for i in range(1, 6)], abs=0.03)
    assert all(lag.low < 0.7**i < lag.high for i, lag in enumerate(correlations, start=1))


def test_what_cannot_correlate_is_refused():
    flat = np.zeros((2, 3, 4))
    with pytest.raises(InvalidArgument, match="all equal"):
        autocorrelation(flat, np.zeros(2), n_lags=1)


@pytest.mark.parametrize("n_keys", [0, 1, 3, 10])
def test_mutants_differ_in_as_many_keys_as_were_asked(n_keys):
    config = SPACE.sample(seed=5)
    keys = [*GROUPS["architecture"], *GROUPS["hyperparameters"]]
    changed = mutants(SPACE, config, n=20, n_keys=n_keys, decades=0.5, keys=keys, seed=0)
    assert len(changed) == 20
    assert {sum(one[key] != config[key] for key in config) for one in changed} == {n_keys}
    assert all(SPACE.validate(one) == one for one in changed)


def test_only_keys_that_can_change_are_changed():
    keys, config = GROUPS["hyperparameters"], SPACE.default()  # one of the keys has a single choice
    (found,) = mutants(SPACE, config, n=1, n_keys=4, decades=0.5, keys=keys, seed=0)
    changed = {key for key in config if found[key] != config[key]}
    assert len(changed) == 4
    assert changed <= set(keys)
