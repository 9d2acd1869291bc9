"""SMAC (Lindauer et al., 2022) with a random forest: full evaluations, or Hyperband's budgets."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from joblib import parallel_config

from experiments.optimizers.tools.tool import Tool
from jahs.adapters import smac as adapter
from jahs.adapters.importing import import_tool
from jahs.optimizers.baseline import TrialResult
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.spaces.configs import Config

_FACADES = {"black_box": "HyperparameterOptimizationFacade", "multi_fidelity": "MultiFidelityFacade"}

_TREES = 5  # trees of the forest; this and the share of random configs are those of NAS-Bench-101 (S2.2)
_RANDOM = 1 / 3  # share of random configs
_MOST_LEAVES = 2**14  # more than trials; a tree has memory for all from the start, and SMAC's 2**20 take 0.2 s each
_FAR = 0.01  # configs with the same values have arrays that are equal up to the rounding of values


@dataclass(frozen=True, slots=True, kw_only=True)
class SmacSettings(OptimizerSettings):
    """Settings of SMAC."""

    # Full evaluations, with the settings of NAS-Bench-101 (S2.2), or Hyperband's budgets, with the defaults of SMAC.
    facade: Literal["black_box", "multi_fidelity"]
    # Number of trials that SMAC plans for; its initial design is at most a quarter of them.
    n_trials: Annotated[int, Within(1)] = 100
    # (multi-fidelity) 1/eta of the configs are promoted, and budgets are a factor of eta apart.
    eta: Annotated[int, Within(2)] = 3


class Smac(Tool[SmacSettings]):
    """SMAC. Several objectives are combined by ParEGO's random weights."""

    def _make_tool(self, settings: SmacSettings) -> None:
        self.name = f"smac_{settings.facade}"
        tool = import_tool("smac", needs="smac")
        _compare_arrays_first()
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
        logging.getLogger("smac").setLevel(logging.WARNING)  # it logs every new incumbent
        facade = getattr(tool, _FACADES[settings.facade])
        more = {"model": facade.get_model(scenario, **({} if has_budgets else {"n_trees": _TREES}))}
        more["model"]._rf_opts["max_leaf_nodes"] = _MOST_LEAVES
        if has_budgets:
            # With several objectives, comparing incumbents at any other budget fails an assertion inside SMAC.
            more["intensifier"] = facade.get_intensifier(
                scenario, eta=settings.eta, incumbent_selection="highest_budget"
            )
        else:
            more["intensifier"] = facade.get_intensifier(scenario, max_config_calls=1)  # a config is evaluated once
            more["random_design"] = facade.get_random_design(scenario, probability=_RANDOM)
        if len(self._objectives) > 1:
            parego = import_tool("smac.multi_objective.parego", needs="smac").ParEGO
            more["multi_objective_algorithm"] = parego(scenario)
        maximizer = facade.get_acquisition_maximizer(scenario)
        _order_starts(maximizer._local_search)
        self._smac = facade(scenario, acquisition_maximizer=maximizer, overwrite=True, logging_level=False, **more)

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
        cost = losses if len(losses) > 1 else losses[0]
        is_known = result.is_known
        value = self._value.TrialValue(cost=cost, status=status.SUCCESS if is_known else status.CRASHED)
        self._smac.tell(trial, value, save=False)


def _order_starts(local_search: Any) -> None:
    """Order the starts of SMAC's local search: it takes them from a set, whose order differs between processes."""
    name = "_get_init_points_from_previous_configs"
    starts = getattr(local_search, name)
    setattr(local_search, name, lambda *configs: sorted(starts(*configs), key=lambda start: start.get_array().tolist()))


@functools.cache
def _compare_arrays_first() -> None:
    """Let ConfigSpace compare arrays before it compares dictionaries, which takes a quarter of the time of a run."""
    configuration = import_tool("ConfigSpace", needs="smac").Configuration
    have_same_values = configuration.__eq__

    def is_same(one: Any, other: object) -> Any:
        if isinstance(other, configuration) and np.abs(one.get_array() - other.get_array()).max() > _FAR:
            return False
        return have_same_values(one, other)

    configuration.__eq__ = is_same
