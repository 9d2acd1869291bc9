"""Intervals of rank correlations: those of resamples that are sorted one by one, in less time."""

import math

import numpy as np
import pytest

from experiments.analysis.resampled_ranks import (
    N_RESAMPLES,
    _score_among_best,
    correlation_text,
    rho_among_best,
    tau_with_interval,
)
from jahs.comparison.summaries import Interval
from workshop.ranks import kendall_tau, spearman
from workshop.resampling import bootstrap_agreement


def pairs(n, *, seed=0, digits=1):
    """Correlated values; with few digits, there are many ties."""
    rng = np.random.default_rng(seed)
    high = rng.normal(size=n)
    return np.round(high + rng.normal(size=n), digits), np.round(high, digits)


@pytest.mark.parametrize("digits", [0, 9])
def test_tau_and_its_interval_are_those_of_resampled_pairs(digits):
    low, high = pairs(60, digits=digits)
    expected = bootstrap_agreement(kendall_tau, low, high, n_resamples=N_RESAMPLES)
    found = tau_with_interval(low, high)
    assert [found.low, found.value, found.high] == pytest.approx([expected.low, expected.value, expected.high])


@pytest.mark.parametrize("digits", [0, 9])
def test_rho_of_a_resample_is_that_of_its_best_draws_sorted(digits):
    low, high = pairs(200, digits=digits)
    order = np.argsort(-high, kind="stable")
    drawn = np.random.default_rng(1).integers(200, size=200)
    best = order[np.sort(drawn)]
    sizes = (200, 100, 20)
    expected = [spearman(low[best[:size]], high[best[:size]]) for size in sizes]
    assert _score_among_best(low, high, sizes)(drawn) == pytest.approx(expected)


def test_an_interval_holds_the_correlation_and_is_wider_among_fewer_configs():
    low, high = pairs(2000, digits=9)
    whole, tenth, none = rho_among_best(low, high, (2000, 200, 0))
    assert whole.value == pytest.approx(spearman(low, high))
    assert whole.low < whole.value < whole.high
    assert tenth.low < tenth.value < tenth.high
    assert tenth.high - tenth.low > 2 * (whole.high - whole.low)
    assert all(map(math.isnan, (none.value, none.low, none.high)))
    (again, *_) = rho_among_best(low, high, (2000,))
    assert again == whole


def test_intervals_cover_the_correlation_of_all_configs_about_as_often_as_they_say():
    low, high = pairs(8000, digits=9)
    parts = np.split(np.arange(8000), 40)
    by_measure = {
        kendall_tau: [tau_with_interval(low[part], high[part]) for part in parts],
        spearman: [rho_among_best(low[part], high[part], (200,))[0] for part in parts],
    }
    for measure, found in by_measure.items():
        assert sum(each.low < measure(low, high) < each.high for each in found) >= 34


def test_values_that_are_all_equal_have_no_correlation():
    low = np.zeros(20)
    assert math.isnan(tau_with_interval(low, np.arange(20.0)).value)
    assert math.isnan(rho_among_best(low, np.arange(20.0), (20,))[0].value)


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.527, 0.5544, 0.580), "0.554 (0.527 to 0.580)"),
        ((-0.093, 0.1131, 0.301), "0.11 (-0.09 to 0.30)"),
        ((-0.4, 0.2, 1.2), "0.2 (-0.4 to 1.2)"),
        ((0.9863, 0.9870, 0.9877), "0.987 (0.986 to 0.988)"),
        ((1.0, 1.0, 1.0), "1.00"),
        ((math.nan, math.nan, math.nan), "–"),
    ],
)
def test_a_correlation_has_the_decimals_that_its_interval_allows(ends, text):
    low, value, high = ends
    assert correlation_text(Interval(value=value, low=low, high=high)) == text
