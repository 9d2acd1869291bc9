"""Trainable parameters and multiply-adds of a config's network, computed exactly.

The network has three stages of N cells; each stage doubles the width and halves the side of the one before, so a
convolution inside a cell takes the same multiply-adds in every stage, and the sums over stages collapse. With W
the width, S the image side, C and K the task's channels and classes, and n3 and n1 the cell's numbers of 3x3 and
1x1 convolutions:

    parameters      9CW + 2W  +  N (n3 (189 W^2 + 14W) + n1 (21 W^2 + 14W))  +  280 W^2 + 24W   +  8W + 4WK + K
    multiply-adds   9CW S^2   +  N (9 n3 + n1) 3 W^2 S^2                     +  28 W^2 S^2      +  4WK + K
                    stem         cells                                          two reductions     head

Multiply-adds are counted in convolutions and in the last linear layer with its bias, for one image. Divided by a
million, they are JAHS-Bench-201's `FLOPS`; parameters divided by a million are its `size_MB`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.schema import COLUMNS, OPS, SIZE_KEYS
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, operation_faults
from jahs.spaces.configs import mapping_of
from jahs.spaces.parameters import as_index, is_real, show
from jahs.tasks.definitions import RESOLUTIONS, Task

_COLUMNS: Final = [COLUMNS.index(key) for key in (*SIZE_KEYS, *OPS)]
_LARGEST: Final = 1024  # N and W: far beyond the space, and far from overflowing 64 bits

_Ints = NDArray[np.int64]


def n_params(X: NDArray[np.float32], task: Task) -> _Ints:
    """Return the trainable parameters, (n,), of encoded configs, (n, 15); see `jahs.schema.COLUMNS`."""
    n_cells, width, _, n_conv3x3, n_conv1x1 = _counts(X, task)
    square = width * width
    cells = n_cells * ((9 * n_conv3x3 + n_conv1x1) * 21 * square + (n_conv3x3 + n_conv1x1) * 14 * width)
    rest = 280 * square + (9 * task.n_channels + 34 + 4 * task.n_classes) * width + task.n_classes
    total: _Ints = cells + rest
    return total


def n_macs(X: NDArray[np.float32], task: Task) -> _Ints:
    """Return the multiply-adds of one image, (n,), of encoded configs, (n, 15); see `jahs.schema.COLUMNS`."""
    n_cells, width, side, n_conv3x3, n_conv1x1 = _counts(X, task)
    per_pixel = 9 * task.n_channels * width + (3 * n_cells * (9 * n_conv3x3 + n_conv1x1) + 28) * width * width
    return per_pixel * side * side + (4 * width + 1) * task.n_classes


def cost(config: Mapping[str, object], task: Task) -> dict[str, int]:
    """Return the parameters and multiply-adds of one config; only N, W, Resolution and Op1 .. Op6 are read.

    Example:
        >>> from jahs.tasks.definitions import TASKS
        >>> ops = dict.fromkeys(["Op1", "Op2", "Op3", "Op4", "Op5", "Op6"], 2)
        >>> cost({"N": 5, "W": 16, "Resolution": 1.0, **ops}, TASKS["cifar10"])
        {'n_params': 1531546, 'n_macs': 220119690}

    Raises:
        InvalidConfig: with a line for each key that is missing or invalid.
        InvalidArgument: `task` is not a Task.
    """
    if not isinstance(task, Task):
        raise InvalidArgument(f"task={task!r} is a {type(task).__name__}; it must be a Task, such as bench.task")
    config = mapping_of(config)
    codes, faults = operation_faults([config.get(key, 0) for key in OPS])
    faults += [f"{key}: missing" for key in (*SIZE_KEYS, *OPS) if key not in config]
    faults += [fault for key in SIZE_KEYS if key in config and (fault := _size_fault(key, config[key]))]
    if faults:
        raise InvalidConfig(sorted(faults))
    X = np.zeros((1, len(COLUMNS)), dtype=np.float32)
    X[0, _COLUMNS] = np.array([*(config[key] for key in SIZE_KEYS), *codes], dtype=np.float32)
    return {"n_params": int(n_params(X, task)[0]), "n_macs": int(n_macs(X, task)[0])}


def _size_fault(key: str, value: object) -> str | None:
    """Return the fault of a value of N, W or Resolution, or None."""
    if key == "Resolution":
        is_right, allowed = is_real(value) and value in RESOLUTIONS, f"one of {', '.join(map(str, RESOLUTIONS))}"
    else:
        number = as_index(value)
        is_right, allowed = number is not None and 1 <= number <= _LARGEST, f"an integer from 1 to {_LARGEST}"
    return None if is_right else f"{key}={show(value)} must be {allowed}"


def _counts(X: NDArray[np.float32], task: Task) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints]:
    """Return N, W, the image side, and the numbers of 3x3 and 1x1 convolutions in a cell."""
    columns = X.T[_COLUMNS]
    n_cells, width = columns[:2].astype(np.int64)
    side = (columns[2] * task.side).astype(np.int64)
    n_conv3x3, n_conv1x1 = (
        (columns[3:] == op).view(np.int8).sum(axis=0, dtype=np.int8).astype(np.int64) for op in (CONV3X3, CONV1X1)
    )
    return n_cells, width, side, n_conv3x3, n_conv1x1
