"""NePS's optimisers: random search, Hyperband, PriorBand (Mallik et al., 2023), and πBO (Hvarfner et al., 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from experiments.optimizers.baseline import Result
from experiments.optimizers.settings import require
from experiments.optimizers.tools.tool import Tool
from jahs.adapters import neps as adapter
from jahs.adapters.importing import import_tool
from jahs.errors import InvalidArgument
from jahs.schema import OPS
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["Neps", "NepsSettings"]

_ALGORITHMS = ("random_search", "hyperband", "priorband", "pibo")
_WITH_PRIORS = ("priorband", "pibo")


def _prior() -> dict[str, Any]:
    """A plain network of 3×3 convolutions, large, trained as is usual with SGD."""
    training = {"Activation": "ReLU", "LearningRate": 0.1, "TrivialAugment": True, "WeightDecay": 5e-4}
    return {**dict.fromkeys(OPS, 2), **training, "N": 5, "Resolution": 1.0, "W": 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class NepsSettings:
    """Settings of a NePS optimiser.

    Attributes:
        algorithm: which one.
        eta: of Hyperband and PriorBand: one of so many configs goes on to so much more budget.
        initial_design_size: of πBO: how many configs are drawn before a model is fitted.
        prior: of PriorBand and πBO: where good configs are believed to be; keys that are not searched have no effect.
        confidence: in every value of the prior.
    """

    algorithm: Literal["random_search", "hyperband", "priorband", "pibo"]
    eta: int = 3
    initial_design_size: int = 10
    prior: Mapping[str, Any] = field(default_factory=_prior)
    confidence: adapter.Confidence = "medium"

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (self.algorithm in _ALGORITHMS, f"algorithm={self.algorithm!r} is not one of {', '.join(_ALGORITHMS)}"),
            (self.eta >= 2, f"eta={self.eta} is not at least 2"),
            (self.initial_design_size >= 1, f"initial_design_size={self.initial_design_size} is not at least 1"),
            (
                self.confidence in ("low", "medium", "high"),
                f"confidence={self.confidence!r} is not low, medium or high",
            ),
        )


class Neps(Tool):
    """One objective. NePS draws from the process's generators: they are lent to it while it is asked."""

    def __init__(
        self, view: Visible, *, seed: int, objectives: Sequence[str] = ("valid_acc",), settings: NepsSettings
    ) -> None:
        self.name = f"neps_{settings.algorithm}"
        super().__init__(view, seed=seed, objectives=objectives, settings=settings)
        if len(objectives) > 1:
            raise InvalidArgument(f"{self.name} takes one objective, not {', '.join(objectives)}")
        tool = import_tool("neps", needs="neural-pipeline-search torch==2.13.0")
        has_budgets = settings.algorithm in ("hyperband", "priorband")
        searched = {key: value for key, value in settings.prior.items() if key in view.space.searched}
        space = adapter.make_space(
            view.space,
            fidelity_of=view if has_budgets else None,
            prior=searched if settings.algorithm in _WITH_PRIORS else None,
            confidence=settings.confidence,
        )
        algorithm = getattr(tool.algorithms, settings.algorithm)
        more: dict[str, Any] = {"eta": settings.eta} if has_budgets else {}
        if settings.algorithm == "pibo":
            more["initial_design_size"] = settings.initial_design_size
        self._chance = adapter.Chance(self.tool_seed())
        with self._chance:
            self._neps = tool.AskAndTell(algorithm(space, **more))

    def ask_tool(self) -> Any:
        """Ask, with the process's generators in NePS's own state."""
        with self._chance:
            return self._neps.ask()

    def read_trial(self, trial: Any) -> tuple[Config, float | None]:
        """A trial's config and its fidelity."""
        _, budget = adapter.split_budget(trial.config, self.view.space)
        return adapter.to_config(trial.config, self.view.space), budget

    def tell_tool(self, trial: Any, result: Result) -> None:
        """The loss; the largest where the trial failed."""
        with self._chance:
            self._neps.tell(trial, self.told_losses(result)[0])
