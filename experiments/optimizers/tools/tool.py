"""What optimisers of other packages share: budgets, seeds, and results in their terms."""

from __future__ import annotations

import math
import weakref
from abc import abstractmethod
from collections.abc import Sequence
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final

import numpy as np

from experiments.optimizers.baseline import Baseline, Result
from jahs.adapters.budgets import Budgets
from jahs.simulate import Visible
from jahs.simulate.trial import AskedFidelity
from jahs.spaces.configs import Config

__all__ = ["Tool"]

_WORSE_THAN_ALL: Final = 1e12
"""Seconds, parameters, multiply-adds: more than any network of the space has."""


class Tool(Baseline):
    """A tool that is asked for its own kind of trial. A subclass says how to ask for one, to read it and to tell it."""

    def __init__(self, view: Visible, *, seed: int, objectives: Sequence[str], settings: Any) -> None:
        # Any: each optimiser has a dataclass of its own.
        super().__init__(view, seed=seed, objectives=objectives, settings=settings)
        self._largest = np.full(len(self._objectives), -math.inf)

    @property
    def budgets(self) -> Budgets:
        """How much the tool may spend on a config, in one number."""
        return Budgets(self.view)

    def own_folder(self) -> str:
        """A new temporary folder for what a tool insists on writing; it goes when the optimiser goes."""
        folder = mkdtemp(prefix=f"{self.name}-")
        weakref.finalize(self, rmtree, folder, ignore_errors=True)
        return folder

    def tool_seed(self) -> int:
        """A seed as tools take it, below 2**31, from the optimiser's own."""
        return int(np.random.SeedSequence([int(str(self.settings["seed"])), 2]).generate_state(1, np.uint32)[0] >> 1)

    @abstractmethod
    def ask_tool(self) -> Any:
        """Return the tool's next trial; None: it has none before it hears of results."""

    @abstractmethod
    def read_trial(self, trial: Any) -> tuple[Config, float | None]:
        """Return the config and the budget, None for the full one, of a tool's trial."""

    @abstractmethod
    def tell_tool(self, trial: Any, result: Result) -> None:
        """Tell the tool what became of its trial; where it failed, `result.is_known` is false."""

    def told_losses(self, result: Result) -> list[float]:
        """Losses, finite ones: of a trial that failed the largest there can be, or has been, or one larger than all."""
        if result.is_known:
            self._largest = np.maximum(self._largest, result.losses)
            return [float(loss) for loss in result.losses]
        worst = zip((objective.upper for objective in self._objectives), self._largest.tolist(), strict=True)
        return [next(filter(math.isfinite, (*known, _WORSE_THAN_ALL))) for known in worst]

    def propose(self) -> tuple[Config, AskedFidelity, Any] | None:
        """Ask the tool."""
        trial = self.ask_tool()
        if trial is None:
            return None
        config, budget = self.read_trial(trial)
        return config, None if budget is None else self.budgets.fidelity(budget), trial

    def learn(self, result: Result) -> None:
        """Tell the tool."""
        self.tell_tool(result.memo, result)
