"""Ranks, and tests of pairs."""

import numpy as np
import pytest

from jahs.comparison.ranks import holm, mean_ranks, pairs_of_groups, ranks, wilcoxon_p
from jahs.errors import InvalidArgument


def test_ties_share_ranks_and_no_result_ranks_last():
    assert ranks(np.array([[3.0, np.nan], [1.0, 2.0], [3.0, np.nan]])).tolist() == [[2.5, 2.5], [1, 1], [2.5, 2.5]]


def test_ranks_over_time():
    values = np.array([[[5.0, 1.0], [5.0, 1.0]], [[4.0, 2.0], [6.0, 2.0]]])  # (arms, seeds, times)
    assert mean_ranks(values).tolist() == [[1.5, 1.0], [1.5, 2.0]]


def test_holm_on_paper():
    # 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.20 * 1, and never below the one before.
    assert holm(np.array([0.03, 0.01, 0.20, 0.02])).tolist() == pytest.approx([0.06, 0.04, 0.20, 0.06])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


def test_wilcoxon_on_paper():
    # Six pairs, one better in each: two of 2**6 outcomes are as extreme.
    one = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert wilcoxon_p(one, one + np.array([1, 2, 3, 4, 5, 6.5])) == pytest.approx(2 / 64)
    assert wilcoxon_p(one, one) == 1.0


def test_differences_that_are_equal_but_for_rounding_tie():
    one, other = np.array([30.1, 28.4, 27.3, 29.9, 31.2, 30.0]), np.array([30.0, 28.3, 27.2, 30.0, 31.1, 29.9])
    assert len(set(np.abs(one - other))) > 1
    # Five of six signs are positive and all ranks are equal: 2 * (6 + 1) of 2**6 outcomes are as extreme.
    assert wilcoxon_p(one, other) == wilcoxon_p(other, one) == pytest.approx(14 / 64)
    assert wilcoxon_p(one, one + 1e-12 * other) == 1.0


@pytest.mark.parametrize("n", [5, 10, 30, 50])
def test_p_values_equal_scipys(n):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(n)
    for shift in (0.0, 0.3, 1.0):
        one, other = rng.normal(size=n), rng.normal(shift, 1, n)
        assert wilcoxon_p(one, other) == pytest.approx(stats.wilcoxon(one, other).pvalue, rel=1e-9)
        if n <= 10:  # with ties, scipy is exact for few pairs
            one, other = one.round(), other.round()
            expected = stats.wilcoxon(one, other, zero_method="zsplit").pvalue
            assert wilcoxon_p(one, other) == pytest.approx(expected, rel=1e-9)


def test_many_pairs_with_ties_are_near_the_normal_approximation():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=200).round(1), rng.normal(0.25, 1, 200).round(1)
    assert wilcoxon_p(one, other) == pytest.approx(stats.wilcoxon(one, other, zero_method="zsplit").pvalue, rel=0.02)


def test_a_missing_result_is_worse_than_every_result_and_two_missing_ones_tie():
    missing = np.nan
    values = np.array([[missing, missing, missing, missing], [9.0, 5.0, 1.0, missing]])
    ((pair,),) = pairs_of_groups([values])
    assert pair.superiority == 0.125  # not better in any block, and a tie in one of four
    assert np.isnan(pair.difference)
    ((last,),) = pairs_of_groups([np.array([[1.0, 2.0, 3.0, missing], [2.0, 3.0, 5.0, 100.0]])])
    assert (last.superiority, last.rank_sum) == (0.75, 4 - 1.5 - 1.5 - 3)
    assert last.difference == -1.0  # the median of -2, -1, -1 and a missing one


def test_one_arm_or_one_block_is_refused():
    with pytest.raises(InvalidArgument, match="1 arms and 5 blocks"):
        pairs_of_groups([np.ones((1, 5))])
    with pytest.raises(InvalidArgument, match="2 arms and 1 blocks"):
        pairs_of_groups([np.ones((2, 1))])


def test_a_pair_says_how_large_its_difference_is():
    one = np.array([1.0, 2.0, 3.0, 4.0])
    ((pair,),) = pairs_of_groups([np.stack([one, one + np.array([0.5, -0.5, 2.0, 0.0])])])
    assert pair.difference == -0.25
    assert pair.superiority == (1 + 0 + 1 + 0.5) / 4
