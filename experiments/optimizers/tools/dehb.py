"""DEHB (Awad, Mallik and Hutter, 2021): differential evolution in the brackets of Hyperband."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from experiments.optimizers.tools.tool import Tool
from jahs.adapters import dehb as adapter
from jahs.adapters.importing import import_tool
from jahs.adapters.values import shown_parameters
from jahs.optimizers.baseline import TrialResult
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class DehbSettings(OptimizerSettings):
    """Settings of DEHB."""

    eta: Annotated[int, Within(2)] = 3  # 1/eta of the configs are promoted, and budgets are a factor of eta apart
    # Scale of the difference that is added to a parent.
    mutation_factor: Annotated[float, Within(0, 2, excluded=0)] = 0.5
    crossover_rate: Annotated[float, Within(0, 1)] = 0.5  # share of keys that a child takes from the mutant


class Dehb(Tool[DehbSettings]):
    """Differential evolution and Hyperband. One objective."""

    name = "dehb"

    def _make_tool(self, settings: DehbSettings) -> None:
        self._dehb = import_tool("dehb", needs="dehb").DEHB(
            f=lambda *_, **__: None,  # never called: ask and tell are used instead
            cs=adapter.make_space(self.view.space),
            dimensions=len(shown_parameters(self.view.space)),
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

    def _ask_tool(self) -> tuple[Config, float, Any]:
        trial = self._dehb.ask()
        return adapter.to_config(trial["config"], self.view.space), trial["fidelity"], trial

    def _tell_tool(self, trial: Any, result: TrialResult) -> None:
        self._dehb.tell(trial, {"fitness": self.told_losses(result)[0], "cost": 0.0})
