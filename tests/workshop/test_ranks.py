"""Orders: tau is that of all pairs, Spearman's that of mean places, and overlap that of every order of ties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from workshop.ranks import _FEW, kendall_tau, kendall_tau_within, spearman

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


@pytest.mark.parametrize("n", [2, 9, _FEW, _FEW + 1])
@pytest.mark.parametrize("n_values", [2, 7, 1000])
def test_tau_is_bit_for_bit_that_of_scipy(n: int, n_values: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        a, b = rng.integers(0, n_values, (2, n)).astype(float)
        a[0] = -math.inf
        assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, rel=0, abs=0, nan_ok=True)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1], [1]), ([1, 1], [1, 2]), ([1, math.nan], [1, 2])], ids=str)
@pytest.mark.parametrize("measure", [kendall_tau, spearman])
def test_the_agreement_of_nothing_to_order_is_not_a_number(measure: Any, a: list[float], b: list[float]) -> None:
    assert math.isnan(measure(a, b))


def test_tau_within_groups_weighs_pairs_and_skips_groups_that_say_nothing() -> None:
    a = [1, 2, 3, 4, 1, 2, 7, 7, 7, 5]
    b = [1, 2, 3, 4, 2, 1, 1, 2, 3, 5]
    groups = ["x"] * 4 + ["y"] * 2 + ["z"] * 3 + ["alone"]
    assert kendall_tau_within(a, b, groups) == pytest.approx((6 - 1) / 7)
    assert kendall_tau_within(a, b, groups, fewest=3) == 1
    assert math.isnan(kendall_tau_within(a, b, range(10)))
    assert math.isnan(kendall_tau_within([], [], []))


def test_tau_within_one_group_is_tau() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 50))
    assert kendall_tau_within(a, b, np.zeros(50)) == kendall_tau(a, b)
    assert kendall_tau_within(a, b + 100 * (a > 0), a > 0) != pytest.approx(kendall_tau(a, b + 100 * (a > 0)))


@given(pairs=st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=40))
def test_spearman_is_the_correlation_of_mean_places(pairs: list[tuple[float, float]]) -> None:
    a, b = (list(values) for values in zip(*pairs, strict=True))
    places = [[sum(v > u for v in values) + (values.count(u) - 1) / 2 for u in values] for values in (a, b)]
    rho = spearman(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert math.isnan(rho)
    else:
        assert rho == pytest.approx(np.corrcoef(places)[0, 1], abs=1e-9)
