"""Overlap of two orders: both forms against their definitions, over every order of ties, and their weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workshop.ranks import (
    benchmark_overlap,
    benchmark_weight,
    choose_p,
    webber_overlap,
    webber_weight,
)

Order = tuple[int, ...]


def counts(first: Order, second: Order) -> list[int]:
    """O_d of every depth."""
    return [len({*first[:d]} & {*second[:d]}) for d in range(1, len(first) + 1)]


def webber(first: Order, second: Order, p: float) -> float:
    """Weights of the mean overlap, truncated and divided by their sum."""
    terms = [(p ** (d - 1), shared / d) for d, shared in enumerate(counts(first, second), start=1)]
    return sum(w * s for w, s in terms) / sum(w for w, _ in terms)


def benchmark(first: Order, second: Order, p: float) -> float:
    """The zero-cost benchmark's equation 5."""
    shared = counts(first, second)
    upper = sum(p ** (d - 1) * x for d, x in enumerate(shared, start=1))
    return upper / sum(p ** (d - 1) * d for d in range(1, len(shared) + 1))


FORMS: list[tuple[Callable[..., float], Callable[[Order, Order, float], float]]] = [
    (webber_overlap, webber),
    (benchmark_overlap, benchmark),
]


def orders_of(values: list[int]) -> list[Order]:
    """Every order with the largest first."""
    falling = sorted(values, reverse=True)
    return [order for order in permutations(range(len(values))) if [values[i] for i in order] == falling]


@pytest.mark.parametrize(("form", "defined"), FORMS)
@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5), p=st.floats(0.05, 0.99))
def test_overlap_is_its_definition_averaged_over_every_order_of_ties(form, defined, pairs, p) -> None:
    a, b = (list(values) for values in zip(*pairs, strict=True))
    expected = np.mean([defined(x, y, p) for x, y in product(orders_of(a), orders_of(b))])
    assert form(a, b, p=p) == pytest.approx(expected, abs=1e-12)
    assert form(b, a, p=p) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("form", [form for form, _ in FORMS])
def test_overlap_is_one_for_equal_orders_and_not_a_number_without_order(form) -> None:
    order = np.arange(2000.0)  # more than are compared in one piece
    assert form(order, order, p=0.99) == pytest.approx(1)
    assert math.isnan(form([], [], p=0.5))
    assert math.isnan(form([1, math.nan], [1, 2], p=0.5))


def test_webbers_form_looks_at_the_top_and_the_benchmarks_form_further_down() -> None:
    order = np.arange(2000.0)
    top, bottom = order.copy(), order.copy()
    top[-10:], bottom[:10] = top[-10:][::-1], bottom[:10][::-1]
    p = choose_p(2000, top_share=0.01)
    assert webber_overlap(order, top, p=p) < 0.75 < 0.999 < webber_overlap(order, bottom, p=p)
    assert webber_overlap(order, top, p=p) < benchmark_overlap(order, top, p=p)
    assert webber_overlap(order, -order, p=p) < 1e-9


def test_two_random_orders_share_little_in_either_form() -> None:
    rng = np.random.default_rng(0)
    p = choose_p(500, top_share=0.1)
    overlaps = np.array([[form(rng.random(500), rng.random(500), p=p) for form, _ in FORMS] for _ in range(40)])
    tied = [form(np.zeros(500), np.zeros(500), p=p) for form, _ in FORMS]  # ties are broken at random
    assert overlaps.mean(axis=0) == pytest.approx(tied, abs=0.02)


@given(depth=st.integers(1, 3000), weight=st.floats(0.01, 0.99))
def test_the_top_share_has_the_weight_that_was_asked_for(depth: int, weight: float) -> None:
    """A place's weight is what every depth from it on gives it: p^(d - 1) (1 - p) / d."""
    p = choose_p(10 * depth, top_share=0.1, weight=weight)
    assert 0 < p < 1
    assert webber_weight(depth, p) == pytest.approx(weight, abs=1e-9)
    depths = np.arange(1, 400_001)
    with np.errstate(under="ignore"):
        by_depth = (1 - p) * p ** (depths - 1.0) / depths
    weights = np.cumsum(by_depth[::-1])[::-1][:depth]
    if p < 0.9999:  # what is cut off matters less than the tolerance
        assert weights.sum() == pytest.approx(weight, abs=1e-6)


@given(depth=st.integers(2, 3000), p=st.floats(0.01, 0.999))
def test_the_benchmarks_weight_is_its_equation_4(depth: int, p: float) -> None:
    places = np.arange(1, depth + 1)
    with np.errstate(under="ignore"):
        rest = math.log(1 / (1 - p)) - float(np.sum(p ** places.astype(float) / places))
        expected = 1 - p ** (depth - 1) + (1 - p) / p * depth * rest
    assert benchmark_weight(depth, p) == pytest.approx(expected, abs=1e-9)
    assert benchmark_weight(depth, p) <= webber_weight(depth, p)


def test_the_benchmarks_weight_asks_for_more_at_the_top() -> None:
    """The best 1 % of 844 cells are 8: the benchmark's weight gives them the share of Webber's with a smaller p."""
    assert choose_p(844, top_share=0.01) == pytest.approx(0.847, abs=5e-4)
    assert benchmark_weight(8, 0.803) == pytest.approx(0.9, abs=1e-3)
