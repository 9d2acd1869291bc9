"""Folds and nested subsets: what each promises beyond the contract."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jahs.errors import InvalidArgument
from splits.folds import k_folds, learning_curve_subsets
from splits.kinship import fidelity_groups
from tests.building import make_configs

TABLE = make_configs(400)
GROUP = fidelity_groups(TABLE)[0]


def group_sizes(rows):
    return np.bincount(GROUP[rows], minlength=27)


@given(n_folds=st.integers(2, 14), seed=st.integers(0, 2**64 - 1))
@settings(max_examples=10)
def test_folds_are_balanced_in_every_group_and_overall(n_folds, seed):
    held = [out for _, out in k_folds(TABLE, n_folds, seed=seed)]
    assert np.ptp([len(out) for out in held]) <= 1
    assert np.ptp([group_sizes(out) for out in held], axis=0).max() <= 1


def test_folds_follow_the_seed():
    first, again, other = ([out.tolist() for _, out in k_folds(TABLE, 5, seed=seed)] for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("n_folds", [1, 0, -1, 401])
def test_impossible_numbers_of_folds_are_refused(n_folds):
    with pytest.raises(InvalidArgument, match="n_folds="):
        k_folds(TABLE, n_folds, seed=0)


@given(sizes=st.lists(st.integers(1, 400), min_size=2, max_size=6), seed=st.integers(0, 2**64 - 1))
@settings(max_examples=15)
def test_subsets_are_nested_and_balanced_over_groups(sizes, seed):
    subsets = [set(rows.tolist()) for rows in learning_curve_subsets(TABLE, sizes, seed=seed)]
    assert [len(rows) for rows in subsets] == sizes
    by_size = sorted(subsets, key=len)
    assert all(small <= large for small, large in pairwise(by_size))
    for rows in subsets:
        if len(rows) <= 27 * 14:  # no group has fewer
            assert np.ptp(group_sizes(sorted(rows))) <= 1


def test_no_group_is_favoured_over_seeds():
    firsts = {int(GROUP[next(learning_curve_subsets(TABLE, [1], seed=seed))[0]]) for seed in range(60)}
    assert len(firsts) > 12


def test_a_subset_has_all_rows_of_its_configs():
    many = {name: np.repeat(values, 3) for name, values in TABLE.items()}
    (rows,) = learning_curve_subsets(many, [50], seed=1)
    ids, counts = np.unique(many["config_id"][rows], return_counts=True)
    (once,) = learning_curve_subsets(TABLE, [50], seed=1)
    assert ids.tolist() == sorted(TABLE["config_id"][once].tolist())
    assert set(counts.tolist()) == {3}
