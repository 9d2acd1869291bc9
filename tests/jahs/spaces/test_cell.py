import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.spaces.cell import EDGES, N_CELLS, Cell, all_ops, nb201_indices, ops_at

PUBLISHED = {
    0: "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
    9: "|avg_pool_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|nor_conv_3x3~2|",
    123: "|avg_pool_3x3~0|+|avg_pool_3x3~0|nor_conv_1x1~1|+|none~0|avg_pool_3x3~1|nor_conv_3x3~2|",
}
GOOD = PUBLISHED[0]
README_CELL = Cell((4, 1, 2, 0, 2, 1))


@pytest.mark.parametrize(("index", "text"), PUBLISHED.items())
def test_the_published_list_has_its_published_cells(index, text):
    assert Cell.from_nb201_index(index).nb201_string == text
    assert Cell.from_nb201_string(text).nb201_index == index


def test_the_string_permutes_the_edges():
    assert Cell((0, 1, 2, 3, 4, 0)).nb201_string == (
        "|skip_connect~0|+|none~0|nor_conv_1x1~1|+|nor_conv_3x3~0|avg_pool_3x3~1|skip_connect~2|"
    )


def test_every_cell_comes_back_from_its_string_and_its_config():
    for ops in product(range(5), repeat=6):
        cell = Cell(ops)
        assert Cell.from_nb201_string(cell.nb201_string) == cell
        assert Cell.from_config(cell.to_config()) == cell


def test_every_cell_comes_back_from_its_index():
    indices = nb201_indices(all_ops())
    assert sorted(indices.tolist()) == list(range(N_CELLS))
    assert np.array_equal(ops_at(indices), all_ops())


@given(st.lists(st.integers(0, 4), min_size=6, max_size=6))
def test_one_cell_has_the_index_it_has_among_many(ops):
    assert Cell(tuple(ops)).nb201_index == nb201_indices([[0] * 6, ops])[1]


def test_all_cells_are_in_the_order_of_their_tuples():
    assert [tuple(ops) for ops in all_ops().tolist()] == list(product(range(5), repeat=6))


def test_a_cell_is_a_value_of_built_in_integers():
    cell = Cell(np.array(README_CELL.ops, dtype=np.int8))
    assert cell == README_CELL
    assert hash(cell) == hash(README_CELL)
    assert {type(code) for code in cell.ops} == {int}
    assert pickle.loads(pickle.dumps(cell)) == cell
    with pytest.raises(AttributeError):
        cell.ops = (0,) * 6


def test_a_cell_names_its_operations_by_edge():
    assert README_CELL.operations == dict(
        zip(EDGES, ["avg_pool_3x3", "none", "nor_conv_3x3", "skip_connect", "nor_conv_3x3", "none"], strict=True)
    )


def test_a_config_may_hold_other_keys():
    assert Cell.from_config({"N": 5, **README_CELL.to_config()}) == README_CELL


@pytest.mark.parametrize("wrong", [True, np.True_, 1.0, np.float32(1), "1", None, -1, 5, 10**30, float("nan"), [0]])
def test_every_wrong_operation_is_named_at_once(wrong):
    with pytest.raises(InvalidArgument) as caught:
        Cell((wrong, 0, 0, 0, 0, wrong))
    assert [line.split("=")[0] for line in str(caught.value).splitlines()] == ["Op1", "Op6"]
    with pytest.raises(InvalidConfig) as refused:
        Cell.from_config({"Op1": wrong, "Op2": 0, "Op3": 0, "Op4": 0, "Op6": 0})
    assert [fault[:3] for fault in refused.value.faults] == ["Op1", "Op5"]


@pytest.mark.parametrize("ops", [(0,) * 5, (0,) * 7, (), 3, "012340", None, np.zeros((2, 6), dtype=int), {0, 1}])
def test_what_is_not_six_integers_is_no_cell(ops):
    with pytest.raises(InvalidArgument, match=r"six|6|Op1"):
        Cell(ops)


@pytest.mark.parametrize("number", [10**5000, -(10**5000)], ids=["large", "small"])
def test_a_number_of_too_many_digits_is_refused_as_any_other(number):
    with pytest.raises(InvalidArgument, match="Op6=<a number of too many digits> is not an operation"):
        Cell((0, 0, 0, 0, 0, number))
    with pytest.raises(InvalidArgument, match=r"index <a number of too many digits> is out of range; .* 0 to 15624"):
        Cell.from_nb201_index(number)


@pytest.mark.parametrize("index", [-1, N_CELLS, 1.0, True, np.True_, "3", None, 10**30])
def test_an_index_outside_the_list_is_refused(index):
    with pytest.raises(InvalidArgument, match="0 to 15624"):
        Cell.from_nb201_index(index)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1 groups"),
        (None, "NoneType"),
        (GOOD + "+", "4 groups"),
        (GOOD[1:], "must hold 1 edges"),
        (GOOD[:-1], "must hold 3 edges"),
        (GOOD.replace("|+|", "+"), "must hold 1 edges"),
        (GOOD + " ", "must hold 3 edges"),
        (GOOD.replace("avg_pool_3x3~0", "avg_pool_3x3"), "'~' and its source"),
        (GOOD.replace("avg_pool_3x3", "avg_pool_5x5"), "unknown operation 'avg_pool_5x5'; allowed are skip_connect"),
        (GOOD.replace("avg_pool_3x3~0", "avg_pool_3x3~1"), "its source must be 0, not '1'"),
        (GOOD.replace("avg_pool_3x3~0", "avg_pool_3x3~00"), "its source must be 0, not '00'"),
        (GOOD.replace("avg_pool_3x3~0", "avg_pool_3x3~٠"), "its source must be 0"),
    ],
)
def test_a_malformed_string_is_refused(text, message):
    with pytest.raises(InvalidArgument, match=message):
        Cell.from_nb201_string(text)


def test_every_fault_of_a_string_is_named_at_once():
    text = "|conv~1|+|none~0|none~1|+|none~0|nil~1|none|"
    with pytest.raises(InvalidArgument) as caught:
        Cell.from_nb201_string(text)
    lines = str(caught.value).splitlines()[1:]
    assert ["source must be 0" in lines[0], "'conv'" in lines[1], "'nil'" in lines[2], "'none'" in lines[3]] == [
        True
    ] * 4
    assert len(lines) == 4


def test_arrays_of_no_cells_are_fine():
    empty = np.empty((0, 6), dtype=np.int8)
    assert nb201_indices(empty).shape == (0,)
    assert ops_at(np.empty(0, dtype=int)).shape == (0, 6)
