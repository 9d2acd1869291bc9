"""Optuna's samplers: TPE (Bergstra et al., 2011; multivariate, as Optuna 5 has it) and NSGA-II."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from experiments.optimizers.tools.tool import Tool
from jahs.adapters import optuna as adapter
from jahs.adapters.importing import import_tool
from jahs.optimizers.baseline import TrialResult
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class OptunaSettings(OptimizerSettings):
    """Settings of an Optuna sampler."""

    sampler: Literal["tpe", "nsga2"]
    n_startup_trials: Annotated[int, Within(1)] = 10  # (TPE) random trials at the start
    population_size: Annotated[int, Within(2)] = 50  # (NSGA-II) size of the population


class Optuna(Tool[OptunaSettings]):
    """Full evaluations of a sampler's suggestions. Any number of objectives."""

    def _make_tool(self, settings: OptunaSettings) -> None:
        self.name = f"optuna_{settings.sampler}"
        tool = import_tool("optuna", needs="optuna")
        if settings.sampler == "tpe":
            sampler = tool.samplers.TPESampler(n_startup_trials=settings.n_startup_trials, seed=self.tool_seed())
        else:
            sampler = tool.samplers.NSGAIISampler(population_size=settings.population_size, seed=self.tool_seed())
        self._space = adapter.make_space(self.view.space)
        verbosity = tool.logging.get_verbosity()
        tool.logging.set_verbosity(tool.logging.ERROR)
        self._study = tool.create_study(directions=["minimize"] * len(self._objectives), sampler=sampler)
        tool.logging.set_verbosity(verbosity)
        self._failed = tool.trial.TrialState.FAIL

    def _ask_tool(self) -> tuple[Config, None, Any]:
        trial = self._study.ask(self._space)
        return adapter.to_config(trial.params, self.view.space), None, trial

    def _tell_tool(self, trial: Any, result: TrialResult) -> None:
        if result.is_known:
            self._study.tell(trial, result.losses.tolist())
        else:
            self._study.tell(trial, state=self._failed)
