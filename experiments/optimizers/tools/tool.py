"""The base class of other packages' optimisers: budgets, seeds, and results as the package expects them."""

from __future__ import annotations

import math
import weakref
from abc import abstractmethod
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final

import numpy as np

from jahs.adapters.evaluating import Budgets
from jahs.optimizers.baseline import Baseline, S, TrialResult
from jahs.simulate.trial import AskedFidelity
from jahs.spaces.configs import Config

_WORSE_THAN_ALL: Final = 1e12  # larger than any metric of any network in the space


class Tool(Baseline[S]):
    """A tool with trials of its own type. A subclass defines how to ask for a trial, and how to report its result."""

    def prepare(self) -> None:
        """Start without results, and make the tool's optimiser."""
        self._largest = np.full(len(self._objectives), -math.inf)
        self._make_tool(self._settings)

    @abstractmethod
    def _make_tool(self, settings: S) -> None:
        """Make the tool's optimiser, and name this one after its settings."""

    @property
    def budgets(self) -> Budgets:
        """The view's fidelities as one number, the budget of a config."""
        return Budgets(self.view)

    def own_folder(self) -> str:
        """Return a new temporary folder for the tool's files; it is removed with the optimiser."""
        folder = mkdtemp(prefix=f"{self.name}-")
        weakref.finalize(self, rmtree, folder, ignore_errors=True)
        return folder

    def tool_seed(self) -> int:
        """Return a seed below 2**31, as tools require, derived from the optimiser's own."""
        return int(np.random.SeedSequence([int(str(self.settings["seed"])), 2]).generate_state(1, np.uint32)[0] >> 1)

    @abstractmethod
    def _ask_tool(self) -> tuple[Config, float | None, Any] | None:
        """Return config, budget (None: the full one) and the tool's own next trial; None: it waits for results."""

    @abstractmethod
    def _tell_tool(self, trial: Any, result: TrialResult) -> None:
        """Tell the tool the result of its trial; `result.is_known` is false for a failed one."""

    def told_losses(self, result: TrialResult) -> list[float]:
        """Return finite losses; a failed trial gets losses no better than any reported before."""
        if result.is_known:
            self._largest = np.maximum(self._largest, result.losses)
            return [float(loss) for loss in result.losses]
        worst = zip((objective.upper for objective in self._objectives), self._largest.tolist(), strict=True)
        return [next(filter(math.isfinite, (*limits, _WORSE_THAN_ALL))) for limits in worst]

    def propose(self) -> tuple[Config, AskedFidelity, Any] | None:
        """Ask the tool."""
        reply = self._ask_tool()
        if reply is None:
            return None
        config, budget, trial = reply
        return config, None if budget is None else self.budgets.fidelity(budget), trial

    def learn(self, result: TrialResult) -> None:
        """Tell the tool."""
        self._tell_tool(result.memo, result)
