"""Statistics over seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.comparison.summaries import bootstrap_mean, digits_for, estimate_text, summarize


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


def test_an_interval_of_constants_is_a_point_and_repeats_itself():
    found = bootstrap_mean(np.full(9, 2.0))
    assert (found.value, found.low, found.high) == (2, 2, 2)
    values = np.arange(20.0)
    mean = bootstrap_mean(values)
    assert mean == bootstrap_mean(values)
    assert mean.low < 9.5 == mean.value < mean.high


def test_an_interval_has_the_coverage_it_claims():
    rng = np.random.default_rng(0)
    found = [bootstrap_mean(rng.normal(0, 1, 40)) for _ in range(300)]
    share = np.mean([i.low <= 0 <= i.high for i in found])
    assert 0.90 < share < 0.98


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
