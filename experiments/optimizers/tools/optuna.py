"""Optuna's samplers: TPE (Bergstra et al., 2011; multivariate, as Optuna 5 has it) and NSGA-II."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from experiments.optimizers.baseline import Result
from experiments.optimizers.settings import require
from experiments.optimizers.tools.tool import Tool
from jahs.adapters import optuna as adapter
from jahs.adapters.importing import import_tool
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["Optuna", "OptunaSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptunaSettings:
    """Settings of an Optuna sampler.

    Attributes:
        sampler: which one.
        n_startup_trials: of TPE: how many are random.
        population_size: of NSGA-II.
    """

    sampler: Literal["tpe", "nsga2"]
    n_startup_trials: int = 10
    population_size: int = 50

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (self.sampler in ("tpe", "nsga2"), f"sampler={self.sampler!r} is not 'tpe' or 'nsga2'"),
            (self.n_startup_trials >= 1, f"n_startup_trials={self.n_startup_trials} is not at least 1"),
            (self.population_size >= 2, f"population_size={self.population_size} is not at least 2"),
        )


class Optuna(Tool):
    """Full evaluations of what a sampler suggests; one objective or several."""

    def __init__(
        self, view: Visible, *, seed: int, objectives: Sequence[str] = ("valid_acc",), settings: OptunaSettings
    ) -> None:
        self.name = f"optuna_{settings.sampler}"
        super().__init__(view, seed=seed, objectives=objectives, settings=settings)
        tool = import_tool("optuna", needs="optuna")
        if settings.sampler == "tpe":
            sampler = tool.samplers.TPESampler(n_startup_trials=settings.n_startup_trials, seed=self.tool_seed())
        else:
            sampler = tool.samplers.NSGAIISampler(population_size=settings.population_size, seed=self.tool_seed())
        self._space = adapter.make_space(view.space)
        verbosity = tool.logging.get_verbosity()
        tool.logging.set_verbosity(tool.logging.ERROR)
        self._study = tool.create_study(directions=["minimize"] * len(objectives), sampler=sampler)
        tool.logging.set_verbosity(verbosity)
        self._failed = tool.trial.TrialState.FAIL

    def ask_tool(self) -> Any:
        """Suggest."""
        return self._study.ask(self._space)

    def read_trial(self, trial: Any) -> tuple[Config, None]:
        """A trial's params."""
        return adapter.to_config(trial.params, self.view.space), None

    def tell_tool(self, trial: Any, result: Result) -> None:
        """Losses, or that it failed."""
        if result.is_known:
            self._study.tell(trial, result.losses.tolist())
        else:
            self._study.tell(trial, state=self._failed)
