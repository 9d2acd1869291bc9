"""Cost of a network: parameters, multiply-adds and estimated times, as a table by activation, size and cell.

Cells with as many convolutions, activations and poolings take the same: 618 classes of the 15,625 cells. So the table
is small, and a query looks four numbers up.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.models.cost import n_macs, n_params
from jahs.models.features.cells import CELL_FEATURES, cell_features, representative_numbers
from jahs.models.features.timing import MISH, TimeCoefficients, time_terms
from jahs.schema import COLUMNS, OPS
from jahs.spaces.cell.operations import all_ops
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import Task

WORK: Final = ("n_params", "n_macs", "forward_time", "training_time")
"""The columns of the table."""

SIZE_KEYS: Final = ("N", "W", "Resolution")
SIZES: Final = tuple(product(*(PARAMETERS[key].choices for key in SIZE_KEYS)))
"""All 27 sizes; those of one depth lie side by side."""

_FACTS: Final = ("n_conv3x3", "n_conv1x1", *CELL_FEATURES["computed"], *CELL_FEATURES["trained"])
_BASE: Final = len(OPS) + 1  # more than any of these counts


@cache
def _classes() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """One cell of each class, and the class of each cell."""
    cells = cell_features(canonical=False)
    keys = np.column_stack([cells[name] for name in _FACTS]).astype(np.int64) @ _BASE ** np.arange(len(_FACTS))
    _, first, classes = np.unique(keys, return_index=True, return_inverse=True)
    return first, classes


def work_classes(*, canonical: bool) -> NDArray[np.intp]:
    """Return the class of each cell, (15625,); with `canonical`, of the cell that represents it."""
    classes = _classes()[1]
    return classes[representative_numbers()] if canonical else classes


def work_table(task: Task, times: TimeCoefficients) -> NDArray[np.float64]:
    """Return the costs of networks by activation (Mish or not), size and class of cell, (2, 27, 618, 4)."""
    cells = _classes()[0]
    X = np.ones((len(SIZES), len(cells), len(COLUMNS)), dtype=np.float32)
    X[..., [COLUMNS.index(key) for key in SIZE_KEYS]] = np.array(SIZES)[:, None]
    X[..., [COLUMNS.index(op) for op in OPS]] = all_ops()[cells]
    rows = X.reshape(-1, len(COLUMNS))
    facts = {name: cell_features(canonical=False)[name][cells].astype(np.float64) for name in _FACTS}
    size = dict(zip(SIZE_KEYS, np.array(SIZES).T[..., None], strict=True))
    table = np.empty((2, *X.shape[:2], len(WORK)))
    table[..., 0] = n_params(rows, task).reshape(X.shape[:2])
    table[..., 1] = n_macs(rows, task).reshape(X.shape[:2])
    for is_mish in (False, True):
        terms = time_terms(Activation=MISH if is_mish else MISH - 1, **size, **facts)
        table[int(is_mish), ..., 2], table[int(is_mish), ..., 3] = times.times(terms)
    return table
