"""What lies under a mask of a user's array is never read, whoever is asked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, InvalidConfig, InvalidFidelity
from jahs.queries.views import View
from jahs.spaces.fidelities import read_budget, read_epoch, read_epochs
from jahs.spaces.parameters import masked_fault, refuse_masked
from jahs.spaces.seeds import read_seed, read_seeds
from jahs.tasks.definitions import TASKS
from jahs.tasks.objectives import read_objectives
from jahs.tasks.pareto import hypervolume, is_non_dominated, pareto_front
from tests.fake_bench import FakeBench

CONFIGS = jahs.space().sample(3, seed=0)
OBJECTIVE = read_objectives(["valid_acc"])[0]


def masked(values: object, *, at: object = 1) -> np.ndarray:
    array = np.ma.array(values)
    array[at] = np.ma.masked
    return array


THREE = masked([1, 2, 3])
POINTS = masked([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]], at=(1, 0))
X = masked(jahs.encode(CONFIGS, 1), at=(2, 3))
ASKS: dict[str, Callable[[], object]] = {
    "front": lambda: pareto_front(POINTS),
    "dominated": lambda: is_non_dominated(POINTS),
    "volume": lambda: hypervolume(POINTS, [4, 4]),
    "corner": lambda: hypervolume([[1, 2]], masked([4.0, 4.0])),
    "seeds": lambda: read_seeds(THREE, 3),
    "objective": lambda: OBJECTIVE.minimised(THREE),
    "decode": lambda: jahs.decode(X),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
def test_an_array_of_which_a_value_is_masked_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument, match=r"masked in \d+ of \d+ values, the first is in row \d; leave those out"):
        ask()


@pytest.mark.parametrize("one", [np.ma.masked, np.ma.array(3, mask=True)], ids=["masked", "of no dimensions"])
def test_a_masked_value_is_none(one: object) -> None:
    for ask in (lambda: read_epoch(one, 12), lambda: read_budget(one, 12), lambda: jahs.encode(CONFIGS, one)):
        with pytest.raises(InvalidFidelity, match="=masked is not an integer"):
            ask()
    for ask in (lambda: read_seed(one), lambda: read_seeds(one, 3)):
        with pytest.raises(InvalidArgument, match="seed=masked is not an integer"):
            ask()
    with pytest.raises(InvalidConfig, match="N=masked is a"):
        jahs.validate({**CONFIGS[0], "N": one})
    with pytest.raises(InvalidConfig, match="N=masked"):
        jahs.cost({**CONFIGS[0], "N": one}, TASKS["digits"])  # type: ignore[dict-item]
    with pytest.raises(InvalidConfig, match="Op1=masked"):
        jahs.Cell.from_config({**CONFIGS[0], "Op1": one})
    with pytest.raises(InvalidArgument, match="masked"):
        jahs.Cell.from_nb201_index(one)  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig, match=r"N=masked is a.*\(row 1\)"):
        jahs.config_ids({**jahs.space().sample_columns(2, seed=0), "N": [5, one]})


def test_masked_epochs_are_no_fidelity() -> None:
    for ask in (
        lambda: read_epochs(THREE, 12),
        lambda: jahs.encode(CONFIGS, THREE),
        lambda: View(FakeBench()).query_many(CONFIGS, each_at=THREE),
    ):
        with pytest.raises(InvalidFidelity, match="masked"):
            ask()


def test_a_mask_that_hides_nothing_changes_nothing() -> None:
    for free in (np.ma.array([1, 2, 3]), np.ma.array([1, 2, 3], mask=[0, 0, 0])):
        assert masked_fault("a", free) is None
        assert read_seeds(free, 3).tolist() == read_epochs(free, 12).tolist() == [1, 2, 3]
        assert OBJECTIVE.minimised(free).tolist() == [99, 98, 97]
    assert read_epoch(np.ma.array(3), 12) == read_seed(np.ma.array(3)) == 3


def test_it_is_said_how_many_are_masked_and_where() -> None:
    assert masked_fault("a", masked([1, 2, 3])).startswith("a is masked in 1 of 3 values, the first is in row 1;")
    assert masked_fault("a", masked([[1, 2], [3, 4]])).startswith(
        "a is masked in 2 of 4 values, the first is in row 1;"
    )
    assert masked_fault("a", np.ma.masked).startswith("a is masked in 1 of 1 values;")
    for fine in ([1, 2], "text", None, np.array([1])):
        refuse_masked("a", fine)
