"""Speed-ups on paper."""

from types import SimpleNamespace

import numpy as np
import pytest

from experiments.analysis.critical_differences import compare_groups
from experiments.report.joint import _answer, _side, _verdict
from experiments.report.long import _gain_text
from experiments.report.speedups import (
    geometric_mean,
    range_text,
    speedup,
    speedup_text,
    speedups_on_refits,
)
from jahs.comparison.steps import Steps


def steps(*pairs):
    return Steps(
        times=np.array([t for t, _ in pairs], dtype=float), values=np.array([v for _, v in pairs], dtype=float)
    )


def compare(fast, slow):
    return speedup(fast, slow, budget=100.0, guess=90.0)


def test_a_speedup_on_paper():
    # The slow arm's median is 10 from time 80 on; two of three fast seeds are at 10 or below from time 4 on.
    slow = [steps((10, 20), (80, 10)), steps((20, 30), (60, 12)), steps((5, 8))]
    fast = [steps((2, 14), (4, 8)), steps((1, 10)), steps((50, 11))]
    result = compare(fast, slow)
    assert result.target == 10
    assert (result.slow_time, result.fast_time) == (80, 4)
    assert result.interval.value == 20
    assert not result.is_bound
    assert np.isnan([result.interval.low, result.interval.high]).all()  # an interval requires six seeds
    assert speedup_text([result]) == speedup_text([result, result]) == "20.0×"
    assert (_side([result]), _gain_text(result)) == ("unknown", "20.0×")
    assert not result.is_low_bound
    twice = compare(fast * 2, slow * 2)
    assert twice.interval.low <= twice.interval.value == 20 <= twice.interval.high


def test_one_seed_with_a_bad_incumbent_does_not_decide_when_the_target_is_reached():
    # One seed of the slow arm is lucky early and has a bad incumbent at the end, so the mean of all its seeds is below
    # its final value, 15.3, already at time 1.
    slow = [*[steps((1, 15), (40, 10))] * 14, steps((1, 10), (90, 90))]
    fast = [steps((1, 15), (4, 10))] * 15
    result = compare(fast, slow)
    assert (result.target, result.slow_time, result.fast_time) == (10, 40, 4)
    assert (result.interval.low, result.interval.value, result.interval.high) == (10, 10, 10)


def test_a_target_that_is_not_reached_is_no_difference_of_final_errors():
    noise = np.random.default_rng(0).normal(size=(3, 20))
    (found,) = compare_groups([(np.array([[0.0], [0.0], [9.0]]) + noise, None)])
    assert [_verdict(found, 0, 2), _verdict(found, 2, 0), _verdict(found, 1, 0)] == [
        *("better", "worse", "not shown to differ")
    ]
    assert _verdict(None, 0, 1) == "–"


def test_a_target_that_is_not_reached_gives_a_bound():
    result = compare([steps((1, 50))], [steps((25, 10))])
    assert result.is_bound
    assert result.interval.value == 0.25


def test_a_lower_end_that_the_budget_sets_is_a_bound():
    # The fast arm reaches 10 with some draws of its seeds and not with others.
    fast = [steps((4, 2)), steps((4, 14)), steps((4, 14)), steps((4, 8))] * 2
    result = compare(fast, [steps((80, 10))] * 8)
    assert (result.is_bound, result.is_low_bound) == (False, True)
    sure = compare([steps((4, 2))] * 8, [steps((80, 10))] * 8)
    assert not sure.is_low_bound
    assert speedup_text([result]).startswith("20.0× (≤ 0.8 to ")
    assert speedup_text([sure]) == "20.0× (20.0 to 20.0)"
    assert speedup_text([sure, result]).startswith("20.0× (≤ ")


def test_what_comes_after_the_budget_does_not_count():
    result = compare([steps((10, 20))], [steps((40, 20), (200, 1))])
    assert result.target == 20
    assert result.interval.value == 4


def test_before_its_first_result_a_seed_knows_no_more_than_a_guess():
    # A median over those that have a result would reach 20 at time 1.
    fast = [steps((1, 20)), steps((30, 20)), steps((40, 20))]
    result = compare(fast, [steps((60, 20))] * 3)
    assert result.fast_time == 30


def test_geometric_mean_over_tasks():
    one = compare([steps((1, 5))] * 6, [steps((4, 5))] * 6)
    two = compare([steps((1, 5))] * 6, [steps((9, 5))] * 6)
    mean = geometric_mean([one, two])
    assert mean.value == pytest.approx(6)
    assert (mean.low, mean.high) == pytest.approx((6, 6))


def test_resamples_are_paired_so_what_seeds_share_is_no_error():
    # Each seed is hard for both arms or easy for both: without pairs, the interval would contain that.
    slow = [steps((20 + 10 * i, 10)) for i in range(6)]
    fast = [steps(((20 + 10 * i) / 4, 10)) for i in range(6)]
    result = compare(fast, slow).interval
    assert (result.low, result.value, result.high) == (4, 4, 4)


def test_an_arm_that_ends_early_has_no_bound_but_may_not_reach_the_target():
    slow = [steps((20, 12), (80, 10))] * 6
    never = compare([steps((1, 11))] * 6, slow)
    assert never.is_bound
    assert _gain_text(never) == "not reached"
    some = compare([steps((2, 8)), steps((2, 12))] * 3, slow)
    assert _gain_text(some) == "40.0× (– to 40.0)"
    assert _gain_text(compare(slow, slow)) == "1.0× (1.0 to 1.0)"


def test_the_answer_names_the_competitors_whose_interval_excludes_one():
    at_2, at_4 = [steps((2, 5))] * 6, [steps((4, 5))] * 6
    speedups = {"slow": compare(at_2, at_4), "fast": compare(at_4, at_2), "equal": compare(at_2, at_2)}
    sides = {title: _side([each]) for title, each in speedups.items()}
    assert sides == {"slow": "sooner than", "fast": "later than", "equal": "unknown"}
    said = {"slow": "2.0×", "fast": "0.50×", "equal": "1.0×"}
    text = _answer(sides, said, ", geometric mean over tasks")
    assert "sooner than slow: 2.0×, but later than fast: 0.50× (speed-up, geometric mean over tasks)" in text
    assert text.endswith(" For 1 more, the interval includes 1 on at least one task.")
    alone = {"equal": sides["equal"]}
    assert _answer(alone, said, "") == "Speed-up of joint search, not shown to differ from 1: equal: 1.0×."


def test_what_holds_on_one_task_alone_is_not_claimed_for_all():
    at_1, at_2, at_4, at_9 = ([steps((time, 5))] * 6 for time in (1, 2, 4, 9))
    sooner, later = compare(at_1, at_9), compare(at_4, at_2)
    assert geometric_mean([sooner, later]).low > 1
    assert _side([sooner, later]) == "sooner on one task and later on another than"
    equal = compare(at_2, at_2)
    assert _side([sooner, equal]) == "unknown"


def test_speedups_on_refits_are_over_the_seeds_that_both_arms_have_there():
    def results_of(*by_refit):
        return tuple(
            SimpleNamespace(repetition=SimpleNamespace(refit=refit, seed=seed), incumbents=own)
            for refit, by_seed in enumerate(by_refit)
            for seed, own in by_seed.items()
        )

    late, soon, never = steps((80, 10)), steps((8, 10)), steps((4, 50))
    on_refits = {
        ("digits", "slow"): results_of({0: late, 1: late}, {0: late, 1: late}, {0: late}),
        ("digits", "fast"): results_of({0: soon, 1: soon, 2: never}, {0: never, 1: never}, {0: soon, 1: soon}),
    }
    fast, slow = (SimpleNamespace(name=name) for name in ("fast", "slow"))
    results = SimpleNamespace(on_refits=on_refits, study=SimpleNamespace(n_evaluations=100))
    found = speedups_on_refits(results, "digits", fast, slow)
    assert [(each.interval.value, each.is_bound) for each in found] == [(10, False), (0.8, True)]
    assert range_text(found) == "≤ 0.80× (≤ 0.80 to 10.0)"
    assert range_text([]) == "–"
