"""The answer of one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from jahs.tasks.metrics import METRICS

_FROM: Final = {"error": "valid_acc", "cost": "runtime"}


@dataclass(frozen=True, slots=True)
class Result:
    """The metrics of one config at one fidelity: `result.valid_acc`, `result.runtime`, and so on.

    Attributes:
        values: every metric that was asked for, by name.
        fidelity: of the query, rounded.
        seed: of the draw of the training noise; None is the mean.
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
        """Seconds that the training took up to this epoch: the runtime."""
        return self._value("runtime")

    def as_dict(self) -> dict[str, float]:
        """Return the metrics as a new dict of numbers."""
        return dict(self.values)

    def __getattr__(self, name: str) -> float:
        metric = _FROM.get(name, name)  # a property that raises AttributeError ends up here, too
        if metric in METRICS:
            return self._value(metric)
        near = get_close_matches(name, METRICS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def _value(self, name: str) -> float:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(
                f"{name} is not in this result, which has {', '.join(self.values)}; see metrics= of the query"
            ) from None
