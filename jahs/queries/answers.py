"""Answers: a `Result` for one query, a dict of arrays for many, which can become a tidy DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.errors import MissingDependency
from jahs.tasks.metrics import METRICS

Rows: TypeAlias = tuple[NDArray[Any], tuple[str, ...], int]  # Any: epochs, or rows of numbers
"""The fidelity of each answer, the names of the fidelities, and the number of answers per config."""

_BASE_METRICS: Final = {"error": "valid_acc", "cost": "runtime"}


class Answers(dict[str, NDArray[Any]]):
    """A dict of one array per metric; `to_pandas` makes it a table.

    Example:
        >>> bench.query_many(configs, at=[3, 12]).to_pandas().columns  # doctest: +SKIP
        Index(['config', 'epoch', 'valid_acc', ...])
    """

    rows: Rows | None = None

    def to_pandas(self) -> Any:  # Any: pandas is not a dependency
        """Return a DataFrame with one row per answer: the position of its config, its fidelity and the metrics.

        Rows of a trajectory have no position: it has one config.

        Raises:
            MissingDependency: pandas is not installed.
        """
        columns = {} if self.rows is None else row_columns(self.rows)
        return to_frame({**columns, **{name: values.ravel() for name, values in self.items()}})


def row_columns(rows: Rows) -> dict[str, NDArray[Any]]:  # Any: as in `Answers`
    """Return the columns of each row's config, as a position, and of its fidelity."""
    fidelities, names, n_each = rows
    columns: dict[str, NDArray[Any]] = {"config": np.arange(len(fidelities)) // n_each}
    for name, values in zip(names, fidelities.reshape(len(fidelities), len(names)).T, strict=True):
        columns[name] = values if name == "Resolution" else values.astype(np.int64)
    return columns


def to_frame(columns: Mapping[str, ArrayLike]) -> Any:  # Any: pandas is not a dependency
    """Return a DataFrame of these columns; MissingDependency without pandas."""
    try:
        pandas = import_module("pandas")
    except ImportError as err:
        raise MissingDependency(f"to_pandas() needs pandas ({err}): pip install pandas") from err
    return pandas.DataFrame(columns)


@dataclass(frozen=True, slots=True)
class Result:
    """The metrics of one config at one fidelity: `result.valid_acc`, `result.runtime`, and so on.

    Attributes:
        values: every metric that was asked for, by name.
        fidelity: fidelity of the query.
        seed: seed of the training noise; None is the mean.
        costs: mode of the costs, a `jahs.release.Costs`.
    """

    values: Mapping[str, float]
    fidelity: Mapping[str, float]
    seed: int | None
    costs: str

    @property
    def error(self) -> float:
        """Validation error in percent: 100 - valid_acc."""
        return 100.0 - self._value("valid_acc")

    @property
    def cost(self) -> float:
        """Seconds of training up to this epoch: the runtime."""
        return self._value("runtime")

    def as_dict(self) -> dict[str, float]:
        """Return the metrics as a new dict of numbers."""
        return dict(self.values)

    def __getattr__(self, name: str) -> float:
        metric = _BASE_METRICS.get(name, name)  # a property that raises AttributeError ends up here, too
        if metric in METRICS:
            return self._value(metric)
        matches = get_close_matches(name, METRICS, n=1)
        hint = f"; did you mean {matches[0]!r}?" if matches else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def _value(self, name: str) -> float:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(
                f"{name} is not in this result, which has {', '.join(self.values)}; see metrics= of the query"
            ) from None
