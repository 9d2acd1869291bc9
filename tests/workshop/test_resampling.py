"""Bootstrap intervals: the same draws everywhere, NaN left out."""

from __future__ import annotations

import math

import numpy as np

from workshop.resampling import bootstrap_estimates

VALUES = np.random.default_rng(3).normal(size=101)


def test_the_interval_is_that_of_the_resampled_means() -> None:
    drawn = np.random.default_rng(7).integers(101, size=(500, 101))
    low, high = np.quantile(VALUES[drawn].mean(axis=1), [0.05, 0.95])
    (found,) = bootstrap_estimates(lambda at: VALUES[at].mean(), 101, level=0.9, n_resamples=500, seed=7)
    assert (found.low, found.high) == (low, high)
    assert found.value == VALUES.mean()


def test_undefined_scores_are_left_out_and_several_scores_have_an_interval_each() -> None:
    def score(at: np.ndarray) -> list[float]:
        return [math.nan if 0 in at else float(VALUES[at].mean()), float(VALUES[at].mean()), math.nan]

    found = bootstrap_estimates(score, 101, level=0.9, n_resamples=100)
    intervals = np.array([(each.low, each.high) for each in found])
    assert intervals.shape == (3, 2)
    assert np.isfinite(intervals[:2]).all()
    assert np.isnan(intervals[2]).all()
