"""Orders: tau is that of all pairs, Spearman's that of mean places, and overlap that of every order of ties."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument
from workshop.overlap import webber_overlap
from workshop.ranks import kendall_tau, kendall_tau_within, spearman

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
    with pytest.raises(InvalidArgument, match="a has 2 values, b has 3"):
        kendall_tau([1, 2], [1, 2, 3])


@pytest.mark.parametrize("wrong", [["x", "y"], "xy", [[1], [1, 2]], [1j, 2], [10**400, 1], ["1", "2"]], ids=range(6))
@pytest.mark.parametrize("measure", [kendall_tau, spearman, partial(webber_overlap, p=0.5)], ids=["tau", "rho", "rbo"])
def test_what_are_no_numbers_is_refused(measure: Callable[[object, object], float], wrong: object) -> None:
    with pytest.raises(InvalidArgument, match=r"a=.* are not numbers"):
        measure(wrong, [1, 2])
    with pytest.raises(InvalidArgument, match=r"b=.* are not numbers"):
        measure([1, 2], wrong)


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
    with pytest.raises(InvalidArgument, match="groups has 2 values, a and b have 3"):
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


@pytest.mark.parametrize(
    "ask",
    [
        lambda three: kendall_tau(three, [1, 2, 3]),
        lambda three: kendall_tau([1, 2, 3], three),
        lambda three: kendall_tau_within([1, 2, 3], [1, 2, 3], np.asanyarray(three) // 9),
        lambda three: spearman(three, [1, 2, 3]),
        lambda three: webber_overlap(three, [1, 2, 3], p=0.5),
    ],
)
def test_masked_values_are_refused_and_a_mask_that_hides_nothing_is_none(ask: Callable[[object], float]) -> None:
    with pytest.raises(InvalidArgument, match="masked in 1 of 3 values"):
        ask(np.ma.array([1, 2, 3], mask=[0, 1, 0]))
    assert ask(np.ma.array([1, 2, 3], mask=[0, 0, 0])) == ask([1, 2, 3])
