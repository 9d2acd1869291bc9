"""A trial log as columns.

A log is a header and trials (JSON lines, `jahs.simulate`). Analysis wants arrays: when each result was known, what it
cost, and whether it was measured at the highest fidelity of its view. Only those trials may become incumbents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, InvalidTable
from jahs.simulate import Trial
from jahs.tasks.metrics import metric

__all__ = ["FINISHED", "Floats", "TrialLog", "trial_log"]

Floats = NDArray[np.float64]

FINISHED: Final = "finished"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialLog:
    """The trials of one run of an optimiser, in the order in which their results were known.

    Attributes:
        header: the log's first line.
        trial, worker: numbers, (n,).
        start, end: simulated seconds, (n,); a result is known from `end` on.
        status: (n,).
        fidelities: one array for each fidelity that the trials name.
        is_full: whether the trial finished at the highest fidelity, (n,).
        metrics: one array for each metric, NaN where a trial has none.
        trials: as the log has them, in this order.
    """

    header: Mapping[str, Any]  # Any: JSON
    trial: NDArray[np.int64]
    worker: NDArray[np.int64]
    start: Floats
    end: Floats
    status: NDArray[np.str_]
    fidelities: dict[str, Floats]
    is_full: NDArray[np.bool_]
    metrics: dict[str, Floats]
    trials: Sequence[Trial]

    def __len__(self) -> int:
        return len(self.end)

    def minimised(self, name: str) -> Floats:
        """A metric such that less is better: accuracies in percent become errors, (n,).

        Raises:
            InvalidArgument: no trial of the log has this metric.
        """
        if name not in self.metrics:
            raise InvalidArgument(f"metric={name!r} is in no trial of this log; there are {', '.join(self.metrics)}")
        values = self.metrics[name]
        return values if metric(name).direction == "min" else 100.0 - values


def trial_log(header: Mapping[str, Any], trials: Iterable[Trial]) -> TrialLog:
    """Return a log as columns, sorted by the time at which results were known, then by number.

    Args:
        header: the log's first line; its view names the highest value of each fidelity.
        trials: its trials, in any order.

    Raises:
        InvalidTable: the header names no view.
    """
    try:
        full = {name: float(value) for name, value in header["view"]["fidelities"].items()}
    except (KeyError, TypeError, AttributeError, ValueError) as err:
        raise InvalidTable("the header of the log does not name the fidelities of its view") from err
    given = sorted(trials, key=lambda t: (t.end, t.trial))
    start, end = (np.array([getattr(t, key) for t in given], dtype=np.float64) for key in ("start", "end"))
    status = np.array([t.status for t in given], dtype=np.str_)
    fidelities = {name: _column([t.fidelity for t in given], name) for name in full}
    is_full = status == FINISHED
    for name, highest in full.items():
        is_full &= fidelities[name] == highest
    names = sorted({name for t in given for name in t.metrics})
    metrics = {name: _column([t.metrics for t in given], name) for name in names}
    return TrialLog(
        header=header,
        trial=np.array([t.trial for t in given], dtype=np.int64),
        worker=np.array([t.worker for t in given], dtype=np.int64),
        start=start,
        end=end,
        status=status,
        fidelities=fidelities,
        is_full=is_full,
        metrics=metrics,
        trials=given,
    )


def _column(mappings: Sequence[Mapping[str, Any]], name: str) -> Floats:
    nan = float("nan")
    return np.array([nan if (value := m.get(name)) is None else value for m in mappings], dtype=np.float64)
