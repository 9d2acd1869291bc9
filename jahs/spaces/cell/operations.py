"""The six edges of a cell, the five operations, and arrays of cells.

A cell is a graph of four nodes: 1 is its input, 4 its output, and a node is the sum of its incoming edges. Many
cells are an integer array of shape (n, 6), one column per edge in JAHS order; `cell_numbers` maps each row to
its place among all 15,625 in lexicographic order, the index of tables over all cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.schema import OPS
from jahs.spaces.parameters import as_index, show

IDENTITY, ZERO, CONV3X3, CONV1X1, POOL = range(5)

OPERATIONS: Final = ("skip_connect", "none", "nor_conv_3x3", "nor_conv_1x1", "avg_pool_3x3")
"""NAS-Bench-201's name of each code. JAHS-Bench-201 calls them Identity, Zero, ConvBN3x3, ConvBN1x1, AvgPool1x1."""

PASSING: Final = tuple(op for op in range(len(OPERATIONS)) if op != ZERO)
"""The codes of operations with an output: all but zero."""

EDGES: Final = ((1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4))
"""(source, target) of Op1 .. Op6."""

N_CELLS: Final = len(OPERATIONS) ** len(EDGES)

_PLACES: Final = len(OPERATIONS) ** np.arange(len(EDGES) - 1, -1, -1)


def operation_faults(values: Sequence[object]) -> tuple[list[int], list[str]]:
    """Return six values as built-in codes, and a line for each that is not a code, beginning with its key."""
    codes, faults = [], []
    for key, value in zip(OPS, values, strict=True):
        code = -1 if (number := as_index(value)) is None else number
        codes.append(code)
        if not 0 <= code < len(OPERATIONS):
            allowed = ", ".join(f"{code} ({name})" for code, name in enumerate(OPERATIONS))
            faults.append(f"{key}={show(value)} is not an operation; allowed are the integers {allowed}")
    return codes, faults


def all_ops() -> NDArray[np.int64]:
    """Return every cell, (15625, 6), in lexicographic order."""
    return np.arange(N_CELLS)[:, None] // _PLACES % len(OPERATIONS)


def cell_numbers(ops: ArrayLike) -> NDArray[np.int64]:
    """Return the place of each row of `ops`, (n, 6), among all cells in lexicographic order."""
    return np.asarray(ops, dtype=np.int64) @ _PLACES
