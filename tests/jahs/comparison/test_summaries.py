"""Statistics over seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.comparison.summaries import digits_for, estimate_text, mean_interval, summarize, t_quantile


def test_statistics_of_four_numbers():
    found = summarize(np.array([[1.0], [2.0], [3.0], [6.0]]))
    assert found.mean == 3
    assert found.se == pytest.approx(np.sqrt(14 / 3) / 2)
    assert (found.q25, found.median, found.q75) == (1.75, 2.5, 3.75)


def test_there_is_no_mean_until_every_seed_has_a_value():
    found = summarize(np.array([[np.nan, 4.0], [2.0, 2.0]]))
    assert np.array_equal(found.mean, [np.nan, 3], equal_nan=True)
    assert np.array_equal(found.median, [np.nan, 3], equal_nan=True)


def test_one_seed_has_no_standard_error():
    found = summarize(np.array([[1.0, 2.0]]))
    assert np.isnan(found.se).all()
    assert found.mean.tolist() == [1, 2]


def test_an_interval_of_constants_is_a_point_and_few_seeds_have_none():
    found = mean_interval(np.full(9, 2.0))
    assert (found.value, found.low, found.high) == (2, 2, 2)
    few = mean_interval(np.arange(5.0))
    assert few.value == 2
    assert np.isnan([few.low, few.high]).all()


@pytest.mark.parametrize(("dof", "tabulated"), [(2, 4.3027), (5, 2.5706), (7, 2.3646), (19, 2.0930), (99, 1.9842)])
def test_the_quantile_is_that_of_the_tables(dof, tabulated):
    assert t_quantile(dof) == pytest.approx(tabulated, rel=8e-3 if dof == 2 else 2e-4)


@pytest.mark.parametrize("n_seeds", [6, 20])
def test_an_interval_has_the_coverage_it_claims(n_seeds):
    rng = np.random.default_rng(0)
    found = [mean_interval(rng.normal(0, 1, n_seeds)) for _ in range(4000)]
    share = np.mean([i.low <= 0 <= i.high for i in found])
    assert 0.94 < share < 0.96


@given(st.floats(1e-6, 1e6), st.floats(-1e6, 1e6))
def test_an_estimate_has_no_more_digits_than_its_error_and_no_fewer_than_it_needs(error, value):
    number, _, shown = estimate_text(value, error).partition(" ± ")
    digits = len(shown.partition(".")[2])
    assert digits == len(number.partition(".")[2]) == digits_for(error)
    unit = 10.0**-digits
    assert unit <= error * (1 / 0.95) or digits == 0
    assert digits == 0 or error / unit < 36


def test_an_unknown_error_shows_the_usual_digits():
    assert estimate_text(3.14159, float("nan")) == "3.14 ± –"
    assert estimate_text(3.14159, 0.0) == "3.14 ± 0.00"


def test_rounding_is_not_an_error():
    equal = np.full(30, 31.110658756217493)
    assert estimate_text(31.110658756217493, float(np.std([*equal, 31.110658756217497]))) == "31.11 ± 0.00"
