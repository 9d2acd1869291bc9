"""Trainable parameters and multiply-adds of a config's network, computed exactly.

The network has three stages of N cells; each stage doubles the width and halves the side of the one before, so a
convolution inside a cell takes the same multiply-adds in every stage, and the sums over stages collapse. With W
the width, S the image side, C and K the task's channels and classes, and n3 and n1 the cell's numbers of 3x3 and
1x1 convolutions:

    parameters      9CW + 2W  +  N (n3 (189 W^2 + 14W) + n1 (21 W^2 + 14W))  +  280 W^2 + 24W   +  8W + 4WK + K
    multiply-adds   9CW S^2   +  N (9 n3 + n1) 3 W^2 S^2                     +  28 W^2 S^2      +  4WK + K
                    stem         cells                                          two reductions     head

Multiply-adds are those of convolutions and of the last linear layer with its bias, for one image. Divided by a
million they are what JAHS-Bench-201 publishes as `FLOPS`; parameters divided by a million are its `size_MB`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.schema import COLUMNS, OPS
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, OPERATIONS, operation_faults
from jahs.spaces.masks import refuse_masked
from jahs.spaces.parameters import as_index, show
from jahs.tasks.definitions import RESOLUTIONS, Task

__all__ = ["cost", "n_macs", "n_params"]

_COSTLY: Final = ("N", "W", "Resolution", *OPS)
_COLUMNS: Final = [COLUMNS.index(key) for key in _COSTLY]
_CHUNK: Final = 8192  # rows at a time, so that intermediate arrays stay in the processor's cache
_LARGEST: Final = 1024  # N and W: far beyond the space, and far from overflowing 64 bits
_MAX_FAULTS: Final = 10

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float32] | NDArray[np.float64]


def n_params(X: NDArray[np.float32], task: Task) -> _Ints:
    """Return the trainable parameters, (n,), of encoded configs, (n, 15) float32; see `jahs.schema.COLUMNS`.

    Raises:
        InvalidArgument: `X` has another shape or dtype, `task` is no Task, or no network has such values.
    """
    return _in_chunks(_params, X, task)


def n_macs(X: NDArray[np.float32], task: Task) -> _Ints:
    """Return the multiply-adds of one image, (n,), of encoded configs, (n, 15) float32; see `jahs.schema.COLUMNS`.

    Raises:
        InvalidArgument: `X` has another shape or dtype, `task` is no Task, or no network has such values.
    """
    return _in_chunks(_macs, X, task)


def cost(config: Mapping[str, object], task: Task) -> dict[str, int]:
    """Return the parameters and multiply-adds of one config; only N, W, Resolution and Op1 .. Op6 are read.

    Example:
        >>> from jahs.tasks.definitions import TASKS
        >>> ops = dict.fromkeys(["Op1", "Op2", "Op3", "Op4", "Op5", "Op6"], 2)
        >>> cost({"N": 5, "W": 16, "Resolution": 1.0, **ops}, TASKS["cifar10"])
        {'n_params': 1531546, 'n_macs': 220119690}

    Raises:
        InvalidConfig: with a line for each key that is missing or has no network.
        InvalidArgument: `task` is not a Task.
    """
    _check_task(task)
    faults = [f"{key}: missing" for key in _COSTLY if key not in config]
    values = [_number(key, config[key], faults) if key in config else 1 for key in _COSTLY[:3]]
    codes, op_faults = operation_faults([config.get(key, 0) for key in OPS])
    faults += op_faults
    columns = np.array([*values, *(0 if op_faults else code for code in codes)], dtype=np.float64)[:, None]
    faults += [fault for _, fault in _value_faults(columns)]
    if faults:
        raise InvalidConfig(sorted(faults))
    return {"n_params": int(_params(columns, task)[0]), "n_macs": int(_macs(columns, task)[0])}


def _number(key: str, value: object, faults: list[str]) -> float:
    """`value` as a number, or 1 (which is always allowed) and one more line in `faults`."""
    if key == "Resolution" and isinstance(value, float | np.floating):
        return float(value)
    number = as_index(value)
    if number is not None and abs(number) < 2**53:
        return float(number)
    faults.append(f"{key}={show(value)} must be {_allowed(key)}")
    return 1.0


def _allowed(key: str) -> str:
    if key == "Resolution":
        return f"one of {', '.join(map(str, RESOLUTIONS))}"
    if key in OPS:
        return f"an integer from 0 to {len(OPERATIONS) - 1}"
    return f"an integer from 1 to {_LARGEST}"


def _in_chunks(formula: Callable[[_Floats, Task], _Ints], X: NDArray[np.float32], task: Task) -> _Ints:
    _check_task(task)
    if not isinstance(X, np.ndarray) or X.dtype != np.float32 or X.ndim != 2 or X.shape[1] != len(COLUMNS):
        given = f"shape {X.shape} and dtype {X.dtype}" if isinstance(X, np.ndarray) else f"type {type(X).__name__}"
        raise InvalidArgument(
            f"X has {given}; it must be a float32 array of shape (n, {len(COLUMNS)}) with the columns "
            f"{', '.join(COLUMNS)}"
        )
    refuse_masked("X", X)
    result = np.empty(len(X), dtype=np.int64)
    for first in range(0, len(X), _CHUNK):
        columns = X[first : first + _CHUNK].T[_COLUMNS]  # (9, rows)
        faults = _value_faults(columns)
        if faults:
            lines = [f"X[{first + row}]: {fault}" for row, fault in faults]
            raise InvalidArgument("\n".join(lines))
        result[first : first + _CHUNK] = formula(columns, task)
    return result


def _check_task(task: Task) -> None:
    if not isinstance(task, Task):
        raise InvalidArgument(f"task={task!r} is a {type(task).__name__}; it must be a jahs.tasks.Task")


def _value_faults(columns: _Floats) -> list[tuple[int, str]]:
    """(row, fault) for the first values of `columns`, (9, n) in the order of `_COSTLY`, that no network has."""
    counts, resolution, ops = columns[:2], columns[2], columns[3:]
    is_right = np.empty(columns.shape, dtype=np.bool_)
    is_right[:2] = (counts >= 1) & (counts <= _LARGEST) & (np.rint(counts) == counts)
    is_right[2] = (resolution == RESOLUTIONS[0]) | (resolution == RESOLUTIONS[1]) | (resolution == RESOLUTIONS[2])
    is_right[3:] = (ops >= 0) & (ops < len(OPERATIONS)) & (np.rint(ops) == ops)
    if is_right.all():
        return []
    return [
        (int(row), f"{_COSTLY[column]}={columns[column, row]:g} must be {_allowed(_COSTLY[column])}")
        for row, column in np.argwhere(~is_right.T)[:_MAX_FAULTS]
    ]


def _counts(columns: _Floats, task: Task) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints]:
    """N, W, image side, and numbers of 3x3 and 1x1 convolutions in a cell."""
    n_cells, width = columns[:2].astype(np.int64)
    side = (columns[2] * task.side).astype(np.int64)
    n_conv3x3, n_conv1x1 = (
        (columns[3:] == op).view(np.int8).sum(axis=0, dtype=np.int8).astype(np.int64) for op in (CONV3X3, CONV1X1)
    )
    return n_cells, width, side, n_conv3x3, n_conv1x1


def _params(columns: _Floats, task: Task) -> _Ints:
    n_cells, width, _, n_conv3x3, n_conv1x1 = _counts(columns, task)
    square = width * width
    cells = n_cells * ((9 * n_conv3x3 + n_conv1x1) * 21 * square + (n_conv3x3 + n_conv1x1) * 14 * width)
    rest = 280 * square + (9 * task.n_channels + 34 + 4 * task.n_classes) * width + task.n_classes
    total: _Ints = cells + rest
    return total


def _macs(columns: _Floats, task: Task) -> _Ints:
    n_cells, width, side, n_conv3x3, n_conv1x1 = _counts(columns, task)
    per_pixel = 9 * task.n_channels * width + (3 * n_cells * (9 * n_conv3x3 + n_conv1x1) + 28) * width * width
    return per_pixel * side * side + (4 * width + 1) * task.n_classes
