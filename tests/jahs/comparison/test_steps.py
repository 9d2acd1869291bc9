"""Incumbents and step functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.comparison.steps import Steps, incumbents, on_grid, regret_area
from tests.jahs.comparison.handmade import log, trial


def test_an_improvement_is_known_from_the_end_of_its_trial_and_not_before():
    found = incumbents(log(trial(0, 0, 3, 70.0), trial(1, 3, 8, 80.0)))
    assert found.steps.times.tolist() == [3, 8]
    assert found.steps.values.tolist() == [30, 20]
    at = found.steps.at(np.array([0, 2.9, 3, 7.9, 8, 100]))
    assert np.array_equal(at, [np.nan, np.nan, 30, 30, 20, 20], equal_nan=True)


def test_a_better_result_at_a_lower_fidelity_is_no_incumbent():
    found = incumbents(log(trial(0, 0, 1, 99.0, epoch=3), trial(1, 1, 2, 60.0), trial(2, 2, 3, 98.0, epoch=9)))
    assert found.steps.values.tolist() == [40]
    assert found.rows.tolist() == [1]


def test_a_worse_or_an_equal_result_changes_nothing():
    found = incumbents(log(trial(0, 0, 1, 60.0), trial(1, 1, 2, 50.0), trial(2, 2, 3, 60.0), trial(3, 3, 4, 61.0)))
    assert found.rows.tolist() == [0, 3]


def test_of_results_known_at_one_time_the_best_is_the_step():
    found = incumbents(log(trial(0, 0, 5, 60.0), trial(1, 0, 5, 80.0, worker=1), trial(2, 0, 5, 70.0, worker=2)))
    assert found.steps.times.tolist() == [5]
    assert found.steps.values.tolist() == [20]
    assert found.rows.tolist() == [1]


def test_without_a_full_trial_there_is_no_incumbent():
    found = incumbents(log(trial(0, 0, 1, 99.0, epoch=3)))
    assert len(found.rows) == 0
    assert np.isnan(found.steps.at(np.array([0.0, 10.0]))).all()


def test_a_trial_that_diverged_is_no_incumbent():
    found = incumbents(log(trial(0, 0, 1, None), trial(1, 1, 2, 60.0)))
    assert found.rows.tolist() == [1]


def test_grids():
    one = Steps(times=np.array([1.0, 4.0]), values=np.array([5.0, 3.0]))
    two = Steps(times=np.array([2.0]), values=np.array([4.0]))
    grid = np.array([1.0, 2.0, 3.0])
    assert np.array_equal(on_grid([one, two], grid), [[5, 5, 5], [np.nan, 4, 4]], equal_nan=True)
    assert one.scaled(2.0).times.tolist() == [0.5, 2.0]


trials = st.lists(st.tuples(st.integers(0, 20), st.floats(0, 100), st.sampled_from([5, 10])), min_size=0, max_size=12)


@given(trials)
def test_an_incumbent_is_the_best_of_all_that_was_known(rows):
    found = incumbents(log(*(trial(i, 0, end, acc, epoch=epoch) for i, (end, acc, epoch) in enumerate(rows))))
    for time in range(21):
        known = [100.0 - acc for end, acc, epoch in rows if end <= time and epoch == 10]
        value = found.steps.at(np.array([float(time)]))[0]
        assert value == min(known) if known else np.isnan(value)
    assert (np.diff(found.steps.times) > 0).all()
    assert (np.diff(found.steps.values) < 0).all()


def test_the_area_under_the_regret_curve_on_paper():
    # A guess (90) for a quarter of the budget, regret 20 of 80 for a quarter, and none for the rest.
    steps = Steps(times=np.array([25.0, 50.0, 200.0]), values=np.array([30.0, 10.0, 5.0]))
    assert regret_area(steps, best=10.0, guess=90.0, budget=100.0) == pytest.approx(0.25 + 0.25 * 20 / 80)
    nothing = Steps(times=np.empty(0), values=np.empty(0))
    assert regret_area(nothing, best=10.0, guess=90.0, budget=100.0) == 1.0
    at_once = Steps(times=np.zeros(1), values=np.array([10.0]))
    assert regret_area(at_once, best=10.0, guess=90.0, budget=100.0) == 0.0


def test_whoever_is_never_worse_has_no_larger_area_in_any_unit_of_time():
    rng = np.random.default_rng(0)
    for _ in range(50):
        times, values = np.sort(rng.uniform(0, 9, 5)), np.sort(rng.uniform(0, 90, 5))[::-1]
        one, other = Steps(times=times, values=values), Steps(times=times / 2, values=values * 0.9)
        areas = [regret_area(each, best=0.0, guess=90.0, budget=10.0) for each in (one, other)]
        assert 0 <= areas[1] <= areas[0] <= 1
        assert regret_area(one.scaled(7.0), best=0.0, guess=90.0, budget=10 / 7) == pytest.approx(areas[0])
