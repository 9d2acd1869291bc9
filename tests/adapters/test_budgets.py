"""Budgets: one number for whatever a view makes a fidelity, rounded by the benchmark alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.adapters.evaluating import Budgets, as_view
from jahs.errors import InvalidFidelity
from jahs.queries.views import FIDELITIES, View
from tests.fake_bench import FakeBench

BENCH = FakeBench()
BUDGETS = st.floats(1, 12)
SUBSETS = st.lists(st.sampled_from(FIDELITIES), min_size=1, unique=True)


def test_a_budget_is_an_epoch_where_the_epoch_alone_is_a_fidelity() -> None:
    budgets = Budgets(as_view(BENCH))
    assert (budgets.name, budgets.most) == ("epoch", 12)
    assert [budgets.fidelity(at)["epoch"] for at in (1, 4 / 3, 2.469, 2.5, 3.5, 12, 12.000000001)] == [
        1, 1, 2, 2, 4, 12, 12,
    ]  # fmt: skip


@given(BUDGETS, BUDGETS, SUBSETS)
def test_a_larger_budget_buys_no_less_of_anything(one: float, other: float, names: list[str]) -> None:
    budgets = Budgets(View(BENCH, fidelities=names))
    less, more = (budgets.fidelity(at) for at in sorted((one, other)))
    assert set(less) == set(names)
    assert all(less[name] <= more[name] for name in names)
    assert all(value in budgets.view.fidelities[name] for name, value in more.items())


@given(SUBSETS)
def test_the_least_budget_is_the_lowest_fidelity_and_the_most_the_full_one(names: list[str]) -> None:
    budgets = Budgets(View(BENCH, fidelities=names))
    assert budgets.name == ("epoch" if names == ["epoch"] else "budget")
    assert budgets.fidelity(1) == {name: values[0] for name, values in budgets.view.fidelities.items()}
    assert budgets.fidelity(budgets.most) == budgets.view.full


@pytest.mark.parametrize("names", [["epoch"], ["epoch", "N"]], ids=["epoch", "path"])
@pytest.mark.parametrize(
    "budget",
    [0, -1, 12.6, math.nan, math.inf, "full", True, 10**400],
    ids=["zero", "negative", "beyond", "nan", "infinite", "text", "bool", "huge"],
)
def test_what_is_no_budget_is_refused(names: list[str], budget: object) -> None:
    with pytest.raises(InvalidFidelity):
        Budgets(View(BENCH, fidelities=names)).fidelity(budget)


def test_a_view_stays_the_view_that_it_is() -> None:
    view = View(BENCH, search="nas")
    assert as_view(view) is view
    assert as_view(BENCH).space == BENCH.space
