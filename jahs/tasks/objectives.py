"""Metrics as objectives: float64 columns in which less is always better.

A metric that is minimised is its own objective. One that is maximised is subtracted from its upper bound (an accuracy
becomes the error, 100 - accuracy), or changes its sign if it has no bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument
from jahs.spaces.parameters import read_floats, show
from jahs.tasks.metrics import METRICS, Metric, is_ordered, read_metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A metric, turned so that less is better.

    Attributes:
        metric: the metric, with its unit and its own direction.
    """

    metric: Metric

    @property
    def label(self) -> str:
        """The objective in words, for tables and axes."""
        if self.metric.direction == "min":
            return f"{self.metric.name} ({self.metric.unit})"
        top = "" if math.isinf(self.metric.upper) else f"{self.metric.upper:g} "
        return f"{top}- {self.metric.name} ({self.metric.unit})"

    @property
    def upper(self) -> float:
        """The largest value that the objective can have."""
        return self.metric.upper if self.metric.direction == "min" else self._top - self.metric.lower

    def minimised(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return values of the metric as values of the objective.

        Raises:
            InvalidArgument: a value is masked, or is not a number.

        Example:
            >>> read_objectives(["valid_acc"])[0].minimised([90, 95.5]).tolist()
            [10.0, 4.5]
        """
        array = read_floats(self.metric.name, values)
        return array if self.metric.direction == "min" else self._top - array

    def measured(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return values of the objective as values of the metric, the inverse of `minimised`."""
        return self.minimised(values)  # a - (a - x)

    @property
    def _top(self) -> float:
        return 0.0 if math.isinf(self.metric.upper) else self.metric.upper


def read_objectives(
    metrics: Iterable[str], *, known: Mapping[str, Metric] = METRICS, name: str = "metrics"
) -> tuple[Objective, ...]:
    """Return the named objectives, in their order.

    Args:
        metrics: names, our own or the published ones.
        known: the metrics that are available; a release may lack some.
        name: what messages call the argument `metrics`.

    Raises:
        UnknownName: `known` lacks a metric; lists those that it has.
        InvalidArgument: no metric, a metric named twice, or a single string.

    Example:
        >>> [objective.label for objective in read_objectives(("valid_acc", "latency"))]
        ['100 - valid_acc (%)', 'latency (s)']
    """
    requested: Any = metrics  # Any: whatever a user gives
    if is_ordered(metrics) and not isinstance(metrics, str):
        requested = list(metrics)
    names = read_metrics(requested, known=known, name=name)
    if len(names) < len(requested):
        raise InvalidArgument(f"{name}={show(requested)} names a metric more than once")
    return tuple(Objective(metric=known[each]) for each in names)


def objective_matrix(columns: Mapping[str, npt.ArrayLike], objectives: Iterable[Objective]) -> npt.NDArray[np.float64]:
    """Return the answer of a query as a matrix with one column per objective, (..., n_objectives), all minimised."""
    return np.stack([each.minimised(columns[each.metric.name]) for each in objectives], axis=-1)
