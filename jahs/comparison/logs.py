"""A trial log as columns.

A log (`jahs.simulate`) has a header and trials. Only trials at the highest fidelity of the view can become incumbents.
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
from jahs.tasks.objectives import Objective

Floats = NDArray[np.float64]

FINISHED: Final = "finished"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialLog:
    """The trials of one simulation, in the order of their ends."""

    trials: Sequence[Trial]  # (n,)
    end: Floats  # simulated seconds, (n,); a result is known from then on
    is_full: NDArray[np.bool_]  # whether the trial finished at the highest fidelity, (n,)
    metrics: dict[str, Floats]  # (n,) each, NaN for missing values

    def __len__(self) -> int:
        return len(self.end)

    def full(self) -> TrialLog:
        """Return the columns of trials that finished at the highest fidelity, without the trials, which are large."""
        metrics = {name: values[self.is_full] for name, values in self.metrics.items()}
        return TrialLog(trials=(), end=self.end[self.is_full], is_full=self.is_full[self.is_full], metrics=metrics)

    def minimised(self, name: str) -> Floats:
        """Return a metric to be minimised, (n,): accuracies in percent become errors."""
        if name not in self.metrics:
            raise InvalidArgument(f"metric={name!r} must be a metric of this log: {', '.join(self.metrics)}")
        return Objective(metric=metric(name)).minimised(self.metrics[name])


def trial_log(header: Mapping[str, Any], trials: Iterable[Trial]) -> TrialLog:
    """Return a log as columns, sorted by the end of the trials, then by number; InvalidTable without a view."""
    try:
        full = {name: float(value) for name, value in header["view"]["fidelities"].items()}
    except (KeyError, TypeError, AttributeError, ValueError) as err:
        raise InvalidTable("the header of the log does not name the fidelities of its view") from err
    ordered = sorted(trials, key=lambda t: (t.end, t.trial))
    end = np.array([t.end for t in ordered], dtype=np.float64)
    is_full = np.array([t.status == FINISHED for t in ordered], dtype=np.bool_)
    for name, highest in full.items():
        is_full &= _column([t.fidelity for t in ordered], name) == highest
    names = sorted({name for t in ordered for name in t.metrics})
    metrics = {name: _column([t.metrics for t in ordered], name) for name in names}
    return TrialLog(trials=ordered, end=end, is_full=is_full, metrics=metrics)


def _column(mappings: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([each.get(name) for each in mappings], dtype=np.float64)  # NaN for None
