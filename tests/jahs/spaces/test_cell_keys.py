from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jahs
from jahs.spaces.cell import Cell, all_ops, canonical, canonical_keys, nb201_key, representatives
from jahs.spaces.cell.keys import TABLE

CELLS = [Cell(tuple(ops)) for ops in all_ops().tolist()]
cells = st.sampled_from(CELLS)


def test_there_are_6466_published_keys():
    assert len({nb201_key(cell) for cell in CELLS}) == 6466


@pytest.mark.parametrize(
    ("ops", "key"),
    [
        ((1, 1, 1, 1, 1, 1), "out=0"),
        ((0, 0, 0, 0, 0, 0), "out=4*x"),
        ((0, 1, 0, 1, 0, 1), "out=2*x"),
        ((1, 1, 1, 1, 3, 1), "out=constant"),
        ((1, 1, 1, 2, 3, 4), "out=constant"),
        ((1, 1, 0, 2, 3, 2), "out=border_map+x"),
        ((1, 0, 1, 3, 1, 2), "a=conv3x3(constant+x) out=a"),
        ((4, 1, 1, 4, 1, 4), "out=pool(pool(pool(x)))"),
        ((0, 2, 4, 1, 2, 0), "a=conv3x3(x) b=conv3x3(x) out=a+b+pool(x)"),
        ((2, 1, 1, 0, 0, 0), "a=conv3x3(x) out=2*a"),
        ((2, 0, 1, 4, 1, 3), "a=conv3x3(x) b=conv1x1(pool(a)+x) out=b"),
    ],
)
def test_a_canonical_key_reads_as_what_the_cell_computes(ops, key):
    assert canonical(Cell(ops)) == key


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ((0, 0, 1, 0, 1, 4), (4, 4, 1, 0, 1, 0), True),  # pool(x + x), pool(x) + pool(x)
        ((2, 1, 1, 0, 0, 0), (2, 2, 1, 1, 0, 0), False),  # a + a, a + b
        ((0, 1, 0, 1, 0, 1), (0, 1, 1, 1, 0, 1), False),  # x + x, x
        ((1, 1, 0, 1, 2, 1), (1, 1, 0, 1, 1, 1), False),  # constant + x, x
        ((1, 1, 0, 1, 2, 1), (1, 1, 0, 2, 3, 0), True),  # constant + x, two constants + x
        ((2, 1, 1, 1, 2, 1), (2, 1, 1, 2, 1, 0), True),  # the same chain over another node
        ((2, 1, 1, 1, 3, 1), (3, 1, 1, 1, 2, 1), False),  # a chain and its reverse
    ],
)
def test_cells_are_the_same_if_they_compute_the_same(one, other, is_same):
    assert (canonical(Cell(one)) == canonical(Cell(other))) is is_same


@given(cells)
def test_a_class_is_represented_by_its_smallest_cell(cell):
    chosen = Cell(tuple(representatives()[canonical_keys([cell.ops])[0]].tolist()))
    assert chosen <= cell
    assert canonical(chosen) == canonical(cell)


def test_classes_are_numbered_by_their_representatives():
    ops = representatives()
    assert np.array_equal(canonical_keys(ops), np.arange(len(ops)))
    assert sorted(map(tuple, ops.tolist())) == list(map(tuple, ops.tolist()))
    firsts = np.unique(canonical_keys(all_ops()), return_index=True)[1]
    assert np.array_equal(all_ops()[firsts], ops)


def test_no_caller_can_change_the_representatives():
    ops = representatives()
    ops[:] = 1
    assert representatives().max() > 1


def test_the_classes_found_anew_are_those_that_the_package_carries():
    numbers: dict[str, int] = {}
    keys = (canonical(Cell(tuple(ops))) for ops in all_ops().tolist())
    classes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.uint16)
    assert len(numbers) == 5189
    with np.load(Path(jahs.spaces.cell.__file__).with_name(TABLE)) as carried:
        np.testing.assert_array_equal(classes, carried["classes"], strict=True)
    np.testing.assert_array_equal(canonical_keys(all_ops()), classes)
