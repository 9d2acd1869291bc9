"""Orders: tau is that of all pairs, Spearman's that of mean places, and overlap that of every order of ties."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workshop.ranks import kendall_tau, kendall_tau_within, persistence, rank_biased_overlap, spearman

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


@pytest.mark.parametrize(("a", "b"), [([], []), ([1], [1]), ([1, 1], [1, 2]), ([1, math.nan], [1, 2])], ids=str)
def test_tau_of_nothing_to_order_is_not_a_number(a: list[float], b: list[float]) -> None:
    assert math.isnan(kendall_tau(a, b))


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="a has 2 values, b has 3"):
        kendall_tau([1, 2], [1, 2, 3])


def test_tau_within_groups_weighs_pairs_and_skips_groups_that_say_nothing() -> None:
    a = [1, 2, 3, 4, 1, 2, 7, 7, 7, 5]
    b = [1, 2, 3, 4, 2, 1, 1, 2, 3, 5]
    groups = ["x"] * 4 + ["y"] * 2 + ["z"] * 3 + ["alone"]
    assert kendall_tau_within(a, b, groups) == pytest.approx((6 - 1) / 7)
    assert kendall_tau_within(a, b, groups, fewest=3) == 1
    assert math.isnan(kendall_tau_within(a, b, range(10)))
    assert math.isnan(kendall_tau_within([], [], []))


def test_tau_within_one_group_is_tau() -> None:
    chance = np.random.default_rng(1)
    a, b = chance.normal(size=(2, 50))
    assert kendall_tau_within(a, b, np.zeros(50)) == kendall_tau(a, b)
    assert kendall_tau_within(a, b + 100 * (a > 0), a > 0) != pytest.approx(kendall_tau(a, b + 100 * (a > 0)))


def test_groups_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="groups has 2 values, a and b have 3"):
        kendall_tau_within([1, 2, 3], [1, 2, 3], [0, 0])


@given(pairs=st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=40))
def test_spearman_is_the_correlation_of_mean_places(pairs: list[tuple[float, float]]) -> None:
    a, b = (list(values) for values in zip(*pairs, strict=True))
    places = [[sum(v > u for v in values) + (values.count(u) - 1) / 2 for u in values] for values in (a, b)]
    found = spearman(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(np.corrcoef(places)[0, 1], abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1], [1]), ([1, 1], [1, 2]), ([1, math.nan], [1, 2])], ids=str)
def test_spearman_of_nothing_to_order_is_not_a_number(a: list[float], b: list[float]) -> None:
    assert math.isnan(spearman(a, b))


def overlap_of_orders(first: tuple[int, ...], second: tuple[int, ...], p: float) -> float:
    shares = [len({*first[:d]} & {*second[:d]}) / d for d in range(1, len(first) + 1)]
    weights = [p ** (d - 1) for d in range(1, len(first) + 1)]
    return sum(w * s for w, s in zip(weights, shares, strict=True)) / sum(weights)


def orders_of(values: list[int]) -> list[tuple[int, ...]]:
    """Every order with the largest first."""
    falling = sorted(values, reverse=True)
    return [order for order in permutations(range(len(values))) if [values[i] for i in order] == falling]


@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5), p=st.floats(0.05, 0.99))
def test_overlap_is_the_mean_over_every_order_of_ties(pairs: list[tuple[int, int]], p: float) -> None:
    a, b = (list(values) for values in zip(*pairs, strict=True))
    expected = np.mean([overlap_of_orders(x, y, p) for x, y in product(orders_of(a), orders_of(b))])
    assert rank_biased_overlap(a, b, p=p) == pytest.approx(expected, abs=1e-12)
    assert rank_biased_overlap(b, a, p=p) == pytest.approx(expected, abs=1e-12)


def test_overlap_looks_at_the_top() -> None:
    order = np.arange(2000.0)  # more than are compared in one piece
    top, bottom = order.copy(), order.copy()
    top[-10:], bottom[:10] = top[-10:][::-1], bottom[:10][::-1]
    p = persistence(20)
    assert rank_biased_overlap(order, order, p=p) == pytest.approx(1)
    assert rank_biased_overlap(order, top, p=p) < 0.75 < 0.999 < rank_biased_overlap(order, bottom, p=p)
    assert rank_biased_overlap(order, -order, p=p) < 1e-9


@given(depth=st.integers(1, 3000), weight=st.floats(0.01, 0.99))
def test_the_first_places_have_the_weight_that_was_asked_for(depth: int, weight: float) -> None:
    """A place's weight is what every depth from it on gives it: p^(d - 1) (1 - p) / d."""
    p = persistence(depth, weight=weight)
    assert 0 < p < 1
    depths = np.arange(1, 400_001)
    with np.errstate(under="ignore"):
        by_depth = (1 - p) * p ** (depths - 1.0) / depths
    weights = np.cumsum(by_depth[::-1])[::-1][:depth]
    if p < 0.9999:  # what is cut off matters less than the tolerance
        assert weights.sum() == pytest.approx(weight, abs=1e-6)


def test_what_has_no_overlap_or_persistence_says_so() -> None:
    assert math.isnan(rank_biased_overlap([], [], p=0.5))
    assert math.isnan(rank_biased_overlap([1, math.nan], [1, 2], p=0.5))
    with pytest.raises(ValueError, match="a has 1 values, b has 2"):
        rank_biased_overlap([1], [1, 2], p=0.5)
