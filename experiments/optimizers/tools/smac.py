"""SMAC's facades (Lindauer et al., 2022): black box (Gaussian process), and multi-fidelity (Hyperband, forest)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from joblib import parallel_config

from experiments.optimizers.tools.tool import Tool
from jahs.adapters import smac as adapter
from jahs.adapters.importing import import_tool
from jahs.optimizers.baseline import TrialResult
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config

_FACADES = {"black_box": "BlackBoxFacade", "multi_fidelity": "MultiFidelityFacade"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SmacSettings(OptimizerSettings):
    """Settings of a facade.

    Attributes:
        n_trials: number of trials that SMAC plans for; its initial design is at most a quarter of them.
        eta: (multi-fidelity) 1/eta of the configs are promoted, and budgets are a factor of eta apart.
    """

    facade: Literal["black_box", "multi_fidelity"]
    n_trials: Annotated[int, Within(1)] = 100
    eta: Annotated[int, Within(2)] = 3


class Smac(Tool[SmacSettings]):
    """A facade of SMAC. Several objectives are combined by ParEGO's weighted sum."""

    def _make_tool(self, settings: SmacSettings) -> None:
        self.name = f"smac_{settings.facade}"
        tool = import_tool("smac", needs="smac")
        self._value = import_tool("smac.runhistory", needs="smac")
        has_budgets = settings.facade == "multi_fidelity"
        scenario = tool.Scenario(
            adapter.make_space(self.view.space, seed=self.tool_seed()),
            output_directory=self.own_folder(),
            deterministic=True,
            objectives=[f"loss_{i}" for i in range(len(self._objectives))],
            n_trials=settings.n_trials,
            seed=self.tool_seed(),
            **({"min_budget": 1, "max_budget": self.budgets.most} if has_budgets else {}),
        )
        logging.getLogger("smac").setLevel(logging.WARNING)  # it tells every new incumbent to whoever logs
        facade = getattr(tool, _FACADES[settings.facade])
        more = {}
        if has_budgets:
            # With several objectives, comparing incumbents at any other budget fails an assertion inside SMAC.
            more["intensifier"] = facade.get_intensifier(
                scenario, eta=settings.eta, incumbent_selection="highest_budget"
            )
        self._smac = facade(scenario, overwrite=True, logging_level=False, **more)

    def _ask_tool(self) -> tuple[Config, float | None, Any] | None:
        try:
            with parallel_config(backend="sequential"):  # threads make its forest four times as slow
                trial = self._smac.ask()
        except StopIteration:
            return None
        return adapter.to_config(trial.config, self.view.space), trial.budget, trial

    def _tell_tool(self, trial: Any, result: TrialResult) -> None:
        status = self._value.StatusType
        losses = self.told_losses(result)
        told = losses if len(losses) > 1 else losses[0]
        is_known = result.is_known
        value = self._value.TrialValue(cost=told, status=status.SUCCESS if is_known else status.CRASHED)
        self._smac.tell(trial, value, save=False)
