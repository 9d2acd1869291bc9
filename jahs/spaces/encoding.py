"""Conversion of configs and epochs to the float32 matrix that models read, and back.

The matrix has the columns `jahs.schema.COLUMNS`: the 14 keys in order, then the epoch. Choices are encoded as
`Parameter.codes`, other values are unchanged. Two laws hold:

- `encode(*decode(X))` is `X`, bit for bit;
- `decode(encode(configs, epochs))` is `configs, epochs`, with LearningRate and WeightDecay rounded to float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument, InvalidFidelity
from jahs.schema import COLUMNS
from jahs.spaces.columns import Columns, Configs, RowFaults, codes, columns_of_codes, rows
from jahs.spaces.configs import Config
from jahs.spaces.fidelities import is_list, read_epoch, read_epochs
from jahs.spaces.parameters import PARAMETERS, Parameter, refuse_masked

MAX_EPOCH: Final = 2**24
"""Largest epoch that float32 distinguishes from its neighbours. Queries check the limit of the task."""


def encode(configs: Configs, epoch: int | Sequence[int] | npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
    """Return the float32 matrix of `configs`, of shape (n_configs, 15).

    Args:
        configs: mappings one by one, or one mapping of columns (much faster).
        epoch: one for all, or one for each config.

    Raises:
        InvalidConfig: the faults of the first invalid configs, with their positions, and the number of all.
        InvalidFidelity: an epoch is not an integer in 1..2**24, or their number differs from the configs'.

    Example:
        >>> config = jahs.space().default()
        >>> encode([config, config], [1, 50])[:, -1].tolist()
        [1.0, 50.0]
    """
    numbers = codes(configs)
    return encode_codes(numbers, _read_epochs(epoch, len(numbers)))


def encode_codes(found: npt.NDArray[np.float64], epochs: npt.NDArray[np.int64] | int) -> npt.NDArray[np.float32]:
    """Return the matrix of configs with these `jahs.spaces.columns.codes`, (n, 14), each at its epoch or all at one."""
    X = np.empty((len(found), len(COLUMNS)), dtype=np.float32)
    X[:, :-1], X[:, -1] = found, epochs
    return X


def decode(X: npt.NDArray[np.float32]) -> tuple[list[Config], npt.NDArray[np.int64]]:
    """Return the configs and the epochs of a matrix.

    A matrix stores both rates in float32, so decoded configs may have slightly different rates, and then another id.

    Raises:
        InvalidArgument: `X` is not a float32 matrix of 15 columns.
        InvalidConfig: a cell is not a code, or out of its range; each line begins with its column.
    """
    columns, epochs = decode_columns(X)
    return rows(columns), epochs


def decode_columns(X: npt.NDArray[np.float32]) -> tuple[Columns, npt.NDArray[np.int64]]:
    """Return the configs, as columns, and the epochs of a matrix; raises as `decode`."""
    if not isinstance(X, np.ndarray) or X.dtype != np.float32 or X.shape[1:] != (len(COLUMNS),):
        given = f"{X.dtype} of shape {X.shape}" if isinstance(X, np.ndarray) else type(X).__name__
        raise InvalidArgument(f"X: {given} is not a float32 matrix of {len(COLUMNS)} columns; see jahs.schema.COLUMNS")
    refuse_masked("X", X)
    faults = RowFaults(len(X))
    for cells, (name, parameter) in zip(X.T, PARAMETERS.items(), strict=False):
        if parameter.kind == "float":
            values = cells.astype(np.float64)
            is_bad = ~((values >= parameter.least) & (values <= parameter.most))
        else:
            is_bad = ~np.isin(cells, parameter.codes) | np.signbit(cells)  # -0.0 would come back as 0.0
        faults.note(is_bad, partial(_cell_fault, name, cells, _meaning(parameter)))
    epochs = X[:, -1]
    is_epoch = (epochs >= 1) & (epochs <= MAX_EPOCH) & (epochs == np.floor(epochs))
    faults.note(~is_epoch, partial(_cell_fault, "epoch", epochs, f"an integer in 1..{MAX_EPOCH}"))
    faults.raise_if_any()
    return columns_of_codes(X[:, :-1].astype(np.float64)), epochs.astype(np.int64)


def _meaning(parameter: Parameter) -> str:
    if parameter.kind == "float":
        return parameter.allowed
    pairs = zip(parameter.codes, parameter.choices, strict=True)
    return "a code: " + ", ".join(f"{code:g} is {choice}" for code, choice in pairs)


def _cell_fault(name: str, cells: npt.NDArray[np.float32], meaning: str, i: int) -> str:
    return f"{name}={cells[i]!s} is not {meaning}"


def _read_epochs(epoch: object, n_configs: int) -> npt.NDArray[np.int64]:
    """Return one epoch for each config."""
    if not is_list(epoch):
        return np.full(n_configs, read_epoch(epoch, MAX_EPOCH, name="epoch"))
    epochs = read_epochs(epoch, MAX_EPOCH, name="epoch")
    if len(epochs) != n_configs:
        raise InvalidFidelity(f"epoch: {len(epochs)} epochs for {n_configs} configs; give one, or one for each config")
    return epochs
