"""Answers of many queries: a dict of arrays, which can become a tidy DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.errors import MissingDependency

Rows: TypeAlias = tuple[NDArray[Any], tuple[str, ...], int]  # Any: epochs, or rows of numbers
"""The fidelity of each answer, the names of the fidelities, and the number of answers per config."""


class Answers(dict[str, NDArray[Any]]):
    """A dict of one array per metric; `to_pandas` makes it a table.

    Example:
        >>> bench.query_many(configs, at=[3, 12]).to_pandas().columns  # doctest: +SKIP
        Index(['config', 'epoch', 'valid_acc', ...])
    """

    rows: Rows | None = None

    def to_pandas(self) -> Any:  # Any: pandas is not a dependency
        """Return a DataFrame with one row per answer: the position of its config, its fidelity and the metrics.

        Those of a trajectory have no position, as it is of one config.

        Raises:
            MissingDependency: pandas is not installed.
        """
        first = {} if self.rows is None else row_columns(self.rows)
        return to_frame({**first, **{name: values.ravel() for name, values in self.items()}})


def row_columns(rows: Rows) -> dict[str, NDArray[Any]]:  # Any: as in `Answers`
    """Return the position of the config of each row, and its fidelity."""
    at, names, n_each = rows
    columns: dict[str, NDArray[Any]] = {"config": np.arange(len(at)) // n_each}
    for name, values in zip(names, at.reshape(len(at), len(names)).T, strict=True):
        columns[name] = values if name == "Resolution" else values.astype(np.int64)
    return columns


def to_frame(columns: Mapping[str, ArrayLike]) -> Any:  # Any: pandas is not a dependency
    """Return a DataFrame of these columns; MissingDependency without pandas."""
    try:
        pandas = import_module("pandas")
    except ImportError as err:
        raise MissingDependency(f"to_pandas() needs pandas ({err}): pip install pandas") from err
    return pandas.DataFrame(columns)
