"""DEHB (Awad, Mallik and Hutter, 2021): differential evolution in the brackets of Hyperband."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.optimizers.baseline import Result
from experiments.optimizers.settings import require
from experiments.optimizers.tools.tool import Tool
from jahs.adapters import dehb as adapter
from jahs.adapters.importing import import_tool
from jahs.adapters.values import shown_parameters
from jahs.errors import InvalidArgument
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["Dehb", "DehbSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DehbSettings:
    """Settings of DEHB.

    Attributes:
        eta: one of so many configs goes on to so much more budget.
        mutation_factor: how far a mutant lies from its parents.
        crossover_rate: share of keys that a child has from the mutant.
    """

    eta: int = 3
    mutation_factor: float = 0.5
    crossover_rate: float = 0.5

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (self.eta >= 2, f"eta={self.eta} is not at least 2"),
            (0 < self.mutation_factor <= 2, f"mutation_factor={self.mutation_factor} is not in (0, 2]"),
            (0 <= self.crossover_rate <= 1, f"crossover_rate={self.crossover_rate} is not in [0, 1]"),
        )


class Dehb(Tool):
    """One objective."""

    name = "dehb"

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: DehbSettings | None = None,
    ) -> None:
        settings = settings or DehbSettings()
        super().__init__(view, seed=seed, objectives=objectives, settings=settings)
        if len(objectives) > 1:
            raise InvalidArgument(f"dehb takes one objective, not {', '.join(objectives)}")
        self._dehb = import_tool("dehb", needs="dehb").DEHB(
            f=lambda *_, **__: None,  # never called: it is asked and told
            cs=adapter.make_space(view.space),
            dimensions=len(shown_parameters(view.space)),
            min_fidelity=1,
            max_fidelity=self.budgets.most,
            eta=settings.eta,
            mutation_factor=settings.mutation_factor,
            crossover_prob=settings.crossover_rate,
            seed=self.tool_seed(),
            n_workers=1,
            save_freq="end",
            output_path=self.own_folder(),
            log_level="ERROR",
        )

    def ask_tool(self) -> Any:
        """Ask for a job."""
        return self._dehb.ask()

    def read_trial(self, trial: Any) -> tuple[Config, float]:
        """A job's config and fidelity."""
        return adapter.to_config(trial["config"], self.view.space), trial["fidelity"]

    def tell_tool(self, trial: Any, result: Result) -> None:
        """The loss; the largest where the trial failed."""
        self._dehb.tell(trial, {"fitness": self.told_losses(result)[0], "cost": 0.0})
