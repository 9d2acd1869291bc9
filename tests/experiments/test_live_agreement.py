"""Agreement of trained trajectories with those on a surrogate, and what chance allows."""

import numpy as np
import pytest

from experiments.live.results import attainable, curve_distance, reversed_pairs

MEANS = np.array([1.0, 2.0, 3.0, 4.0])


def runs(noise, *, seed=0, n_seeds=3, n_runs=20):
    return MEANS[:, None, None] + noise * np.random.default_rng(seed).standard_normal((4, n_seeds, n_runs))


def test_clear_differences_are_always_found_and_noise_lowers_what_can_be():
    clear, noisy = attainable(runs(0.01)), attainable(runs(3.0))
    assert clear.value == clear.low == clear.high == 1
    assert noisy.low < 0.5
    assert noisy.low < noisy.value < noisy.high <= 1


def test_noise_that_all_arms_share_hides_no_order():
    shared = np.random.default_rng(1).standard_normal((1, 3, 20))
    assert attainable(MEANS[:, None, None] + 5 * shared).low == 1


def test_reversed_pairs_are_those_in_opposite_orders():
    assert reversed_pairs(MEANS, MEANS[[1, 0, 2, 3]]) == [(0, 1)]
    assert reversed_pairs(MEANS, np.zeros(4)) == []


def test_curves_are_apart_where_both_are_known():
    trained = np.array([[np.nan, 3.0, 2.0], [4.0, 3.0, 2.0]])
    surrogate = np.stack([np.array([[5.0, 2.0, 2.0]] * 2)] * 2)
    assert curve_distance(trained, surrogate) == pytest.approx(0.5)
    assert np.isnan(curve_distance(trained[:, :1], surrogate[..., :1]))
