"""The classes of cells that compute the same, for arrays of cells.

A class has a number; classes are numbered by their smallest member, which represents them. Finding them takes the
canonical key of every cell (`jahs.spaces.cell.keys`), a second of work, so the package carries the table. A test finds
the classes anew and compares.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.spaces.cell.operations import all_ops, cell_numbers

TABLE: Final = Path(__file__).with_name("classes.npz")
"""The class of each cell number, (15625,) uint16."""


def canonical_keys(ops: ArrayLike) -> NDArray[np.int64]:
    """Return the number of each row's class, (n,), for `ops` of shape (n, 6): equal numbers, equal functions."""
    return _classes()[0][cell_numbers(ops)]


def representatives() -> NDArray[np.int64]:
    """Return the smallest cell of each class in the order of Op1 .. Op6, (n_classes, 6); row i is of class i."""
    return all_ops()[_classes()[1]]


@cache
def _classes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the class of each cell number, (15625,), and the number of each class's smallest cell, (n_classes,)."""
    with np.load(TABLE, allow_pickle=False) as file:
        classes = file["classes"].astype(np.int64)
    return classes, np.unique(classes, return_index=True)[1]
