"""NePS's optimisers: random search, Hyperband, PriorBand (Mallik et al., 2023), and πBO (Hvarfner et al., 2022)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from experiments.optimizers.tools.tool import Tool
from jahs.adapters import neps as adapter
from jahs.adapters.importing import import_tool
from jahs.optimizers.baseline import TrialResult
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.schema import OPS
from jahs.spaces.configs import Config

_WITH_PRIORS = ("priorband", "pibo")


def _prior() -> dict[str, Any]:
    """Return a prior around a large network of 3×3 convolutions with common settings of SGD."""
    training = {"Activation": "ReLU", "LearningRate": 0.1, "TrivialAugment": True, "WeightDecay": 5e-4}
    return {**dict.fromkeys(OPS, 2), **training, "N": 5, "Resolution": 1.0, "W": 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class NepsSettings(OptimizerSettings):
    """Settings of a NePS optimiser."""

    algorithm: Literal["random_search", "hyperband", "priorband", "pibo"]  # NePS's name of it
    # (Hyperband, PriorBand) 1/eta of the configs are promoted, and budgets are a factor of eta apart.
    eta: Annotated[int, Within(2)] = 3
    initial_design_size: Annotated[int, Within(1)] = 10  # (πBO) configs drawn before the first model is fitted
    # (PriorBand, πBO) a config believed to be good; keys that are not searched have no effect.
    prior: Mapping[str, Any] = field(default_factory=_prior)
    confidence: adapter.Confidence = "medium"


class Neps(Tool[NepsSettings]):
    """One objective. NePS draws from the process's global generators: it gets its own state of them while it runs."""

    def _make_tool(self, settings: NepsSettings) -> None:
        self.name = f"neps_{settings.algorithm}"
        tool = import_tool("neps", needs="neural-pipeline-search torch==2.13.0")
        has_budgets = settings.algorithm in ("hyperband", "priorband")
        searched = {key: value for key, value in settings.prior.items() if key in self.view.space.searched}
        space = adapter.make_space(
            self.view.space,
            fidelity_of=self.view if has_budgets else None,
            prior=searched if settings.algorithm in _WITH_PRIORS else None,
            confidence=settings.confidence,
        )
        algorithm = getattr(tool.algorithms, settings.algorithm)
        more: dict[str, Any] = {"eta": settings.eta} if has_budgets else {}
        if settings.algorithm == "pibo":
            more["initial_design_size"] = settings.initial_design_size
        self._chance = adapter.Chance(self.tool_seed())
        with self._chance:
            optimizer = algorithm(space, **more)
            if has_budgets:
                optimizer.create_brackets = _OpenBrackets(optimizer.create_brackets)
            self._neps = tool.AskAndTell(optimizer)

    def _ask_tool(self) -> tuple[Config, float | None, Any]:
        with self._chance:
            trial = self._neps.ask()
        _, budget = adapter.split_budget(trial.config, self.view.space)
        return adapter.to_config(trial.config, self.view.space), budget, trial

    def _tell_tool(self, trial: Any, result: TrialResult) -> None:
        with self._chance:
            self._neps.tell(trial, self.told_losses(result)[0])


class _OpenBrackets:
    """Hyperband's brackets without the full ones, which NePS builds again for every proposal and never uses."""

    def __init__(self, create: Callable[[Any], list[Any]]) -> None:
        self._create = create
        self._full: set[int] = set()  # ids of the configs of full brackets

    def __call__(self, table: Any) -> list[Any]:
        is_open = ~table.index.get_level_values("id").isin(self._full)
        found = self._create(_Trials(table[is_open]))
        for brackets in found:
            rungs = [rung for bracket in brackets.sh_brackets for rung in bracket.rungs]
            if not any(rung.has_capacity() for rung in rungs):
                self._full.update(number for rung in rungs for number in rung.config_ids)
        return found


class _Trials:
    """NePS's table of trials, which it searches for the lowest rung of each config whenever it proposes one.

    The rows of the table are in the order of configs and rungs.
    """

    def __init__(self, table: Any) -> None:
        self.index = table.index
        self._table = table
        ids = table.index.get_level_values("id")
        self._first = dict(zip(ids[::-1].tolist(), range(len(ids) - 1, -1, -1), strict=True))

    @property
    def loc(self) -> _Trials:
        """The rows of some configs; of a single one, the lowest rung alone."""
        return self

    def __getitem__(self, config: Any) -> Any:
        if isinstance(config, list):
            return self._table.loc[config]
        first = self._first[config]
        return self._table.iloc[first : first + 1]
