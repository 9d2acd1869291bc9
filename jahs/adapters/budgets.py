"""Budgets of tools: one number per config, whatever the fidelities of a view.

Most tools know one fidelity, a number. Where the epoch alone is a fidelity, that number is the epoch. Where a view has
others, it is a share of the view's path through all of them, counted in as many steps as there are epochs.
"""

from __future__ import annotations

from dataclasses import dataclass

from jahs.errors import InvalidFidelity
from jahs.queries.queryable import Queryable
from jahs.queries.views import View
from jahs.simulate.visible import Visible
from jahs.spaces.parameters import is_real, show

__all__ = ["Budgets", "as_view"]

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of a view, or of what an optimiser may see of one: 1 to `most`, both included."""

    view: View | Visible

    @property
    def is_epoch(self) -> bool:
        """Whether a budget is an epoch, and not a share of a path."""
        return tuple(self.view.fidelities) == ("epoch",)

    @property
    def name(self) -> str:
        """The name of the tool's parameter for it."""
        return "epoch" if self.is_epoch else "budget"

    @property
    def most(self) -> int:
        """The budget of a full evaluation."""
        return self.view.max_epoch

    def fidelity(self, budget: float) -> dict[str, float]:
        """Return the fidelity that a budget buys: whole epochs, half to even, and legal values of the others."""
        if self.is_epoch:
            return self.view.fidelity(budget)
        if not is_real(budget) or not 0 < budget <= self.most * (1 + _ROUNDING):
            raise InvalidFidelity(f"budget={show(budget)} is not a number in (0, {self.most}]")
        return self.view.path(min(float(budget) / self.most, 1.0))


def as_view(bench: Queryable) -> View:
    """Return a view as it is, and a benchmark as the view of all that it has."""
    return bench if isinstance(bench, View) else View(bench)
