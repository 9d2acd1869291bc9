"""The table of classes that the package carries is what the canonical keys say."""

from __future__ import annotations

import numpy as np

from jahs.spaces.cell import Cell, canonical, canonical_keys
from jahs.spaces.cell.keys import TABLE
from jahs.spaces.cell.operations import all_ops


def test_the_classes_found_anew_are_those_that_the_package_carries():
    numbers: dict[str, int] = {}
    keys = (canonical(Cell(tuple(ops))) for ops in all_ops().tolist())
    found = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.uint16)
    with np.load(TABLE) as carried:
        np.testing.assert_array_equal(found, carried["classes"], strict=True)
    np.testing.assert_array_equal(canonical_keys(all_ops()), found)
