"""The quotas: what is promised holds for any sizes, and the exact count is kept."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from splits.partition import quota_margins
from splits.quotas import SHARES, deviations, fill_quotas

GROUPS = np.array(list(product((1, 3, 5), (4, 8, 16), (0.25, 0.5, 1.0))))
MARGINS = quota_margins(GROUPS, np.arange(len(GROUPS)))
SIZES = st.lists(st.integers(7, 60), min_size=27, max_size=27)
REPEATED = st.lists(st.floats(0, 1), min_size=27, max_size=27) | st.sampled_from([0.0, 0.1, 0.5, 1.0]).map(
    lambda share: [share] * 27
)


def strata(sizes, shares):
    n = np.array(sizes)
    repeated = np.round(n * np.array(shares)).astype(int)
    return np.column_stack([n - repeated, repeated]).reshape(-1)


def off(margins, counts):
    """The largest deviation, in configs."""
    return np.abs(deviations(margins.astype(int) @ counts)).max() / 20


def kept_none():
    return np.zeros((2 * len(GROUPS), 3), dtype=np.int64)


@given(sizes=SIZES, shares=REPEATED, order=st.permutations(range(54)))
@settings(max_examples=25)
def test_groups_and_thirds_are_within_one_config(sizes, shares, order):
    n_free = strata(sizes, shares)
    counts = fill_quotas(kept_none(), n_free, margins=MARGINS, order=order)
    assert counts.sum(axis=1).tolist() == n_free.tolist()
    assert counts.min() >= 0
    assert off(MARGINS.groups, counts) <= 1
    assert off(MARGINS.thirds, counts) <= 1
    assert off(MARGINS.totals, counts) <= 2
    assert (MARGINS.groups.astype(int) @ counts).min() >= 1


@given(sizes=SIZES, grown=SIZES, order=st.permutations(range(54)))
@settings(max_examples=15)
def test_what_is_kept_stays_and_new_configs_restore_the_balance(sizes, grown, order):
    kept = fill_quotas(kept_none(), strata(sizes, [0.1] * 27), margins=MARGINS, order=order)
    counts = fill_quotas(kept, strata(grown, [0.1] * 27), margins=MARGINS, order=order[::-1])
    assert (counts >= kept).all()
    assert off(MARGINS.groups, counts) <= 1
    assert off(MARGINS.thirds, counts) <= 1


def test_a_kept_imbalance_is_made_up_for_as_far_as_new_configs_allow():
    kept = kept_none()
    kept[0] = [0, 10, 0]
    few, many = kept_none()[:, 0].copy(), kept_none()[:, 0].copy()
    few[0], many[0] = 10, 90
    order = range(54)
    assert fill_quotas(kept, few, margins=MARGINS, order=order)[0].tolist() == [10, 10, 0]
    assert fill_quotas(kept, many, margins=MARGINS, order=order)[0].tolist() == [70, 15, 15]


def test_shares_are_the_ones_of_the_paper():
    assert np.divide(SHARES, sum(SHARES)).tolist() == [0.7, 0.15, 0.15]
