"""Kendall's tau is the number of pairs in order less those out of order, ties counted as tau-b does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument
from jahs.ranks import kendall_tau

VALUES = st.integers(0, 6) | st.floats(-1e300, 1e300)


def by_pairs(a: list[float], b: list[float]) -> float:
    x, y = (np.sign(np.subtract.outer(np.asarray(v), np.asarray(v)))[np.triu_indices(len(v), 1)] for v in (a, b))
    return float((x * y).sum() / (math.sqrt((x**2).sum()) * math.sqrt((y**2).sum())))


@given(pairs=st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=40))
def test_tau_is_that_of_all_pairs(pairs: list[tuple[float, float]]) -> None:
    a, b = (list(values) for values in zip(*pairs, strict=True))
    tau = kendall_tau(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert math.isnan(tau)
    else:
        assert tau == pytest.approx(by_pairs(a, b), abs=1e-12)
        assert kendall_tau(b, a) == pytest.approx(tau, abs=1e-12)


def test_tau_is_that_of_scipy_for_many_values() -> None:
    stats = pytest.importorskip("scipy.stats")
    chance = np.random.default_rng(0)
    a = np.round(chance.normal(size=20_000), 2)
    b = np.round(a + chance.normal(size=20_000), 1)
    assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1], [1]), ([1, 1], [1, 2]), ([1, math.nan], [1, 2])], ids=str)
def test_tau_of_nothing_to_order_is_not_a_number(a: list[float], b: list[float]) -> None:
    assert math.isnan(kendall_tau(a, b))


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="a has 2 values, b has 3"):
        kendall_tau([1, 2], [1, 2, 3])
