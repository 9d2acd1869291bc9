"""SMAC's facades (Lindauer et al., 2022): black box (Gaussian process), and multi-fidelity (Hyperband, forest)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from experiments.optimizers.baseline import Result
from experiments.optimizers.settings import require
from experiments.optimizers.tools.tool import Tool
from jahs.adapters import smac as adapter
from jahs.adapters.importing import import_tool
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["Smac", "SmacSettings"]

_FACADES = {"black_box": "BlackBoxFacade", "multi_fidelity": "MultiFidelityFacade"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SmacSettings:
    """Settings of a facade.

    Attributes:
        facade: which one.
        n_trials: how many trials SMAC counts on: its initial design is at most a quarter of them.
        eta: of the multi-fidelity facade: one of so many configs goes on to so much more budget.
    """

    facade: Literal["black_box", "multi_fidelity"]
    n_trials: int = 100
    eta: int = 3

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (self.facade in _FACADES, f"facade={self.facade!r} is not one of {', '.join(_FACADES)}"),
            (self.n_trials >= 1, f"n_trials={self.n_trials} is not at least 1"),
            (self.eta >= 2, f"eta={self.eta} is not at least 2"),
        )


class Smac(Tool):
    """What a facade asks for. With several objectives it is ParEGO's weighted sum of them."""

    def __init__(
        self, view: Visible, *, seed: int, objectives: Sequence[str] = ("valid_acc",), settings: SmacSettings
    ) -> None:
        self.name = f"smac_{settings.facade}"
        super().__init__(view, seed=seed, objectives=objectives, settings=settings)
        tool = import_tool("smac", needs="smac")
        self._value = import_tool("smac.runhistory", needs="smac")
        has_budgets = settings.facade == "multi_fidelity"
        scenario = tool.Scenario(
            adapter.make_space(view.space, seed=self.tool_seed()),
            output_directory=self.own_folder(),
            deterministic=True,
            objectives=[f"loss_{i}" for i in range(len(objectives))],
            n_trials=settings.n_trials,
            seed=self.tool_seed(),
            **({"min_budget": 1, "max_budget": self.budgets.most} if has_budgets else {}),
        )
        facade = getattr(tool, _FACADES[settings.facade])
        more = {}
        if has_budgets:
            # With several objectives, comparing incumbents at any other budget fails an assertion of SMAC's.
            more["intensifier"] = facade.get_intensifier(
                scenario, eta=settings.eta, incumbent_selection="highest_budget"
            )
        self._smac = facade(scenario, overwrite=True, logging_level=False, **more)

    def ask_tool(self) -> Any:
        """Ask the facade."""
        try:
            return self._smac.ask()
        except StopIteration:
            return None

    def read_trial(self, trial: Any) -> tuple[Config, float | None]:
        """A trial info's config and budget."""
        return adapter.to_config(trial.config, self.view.space), trial.budget

    def tell_tool(self, trial: Any, result: Result) -> None:
        """Losses, or that it crashed."""
        status = self._value.StatusType
        losses = self.told_losses(result)
        told = losses if len(losses) > 1 else losses[0]
        is_known = result.is_known
        value = self._value.TrialValue(cost=told, status=status.SUCCESS if is_known else status.CRASHED)
        self._smac.tell(trial, value, save=False)
