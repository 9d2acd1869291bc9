"""BOHB as Syne Tune has it: asynchronous successive halving over what two density estimates propose (Falkner, 2018)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from experiments.optimizers.baseline import Result
from experiments.optimizers.settings import require
from experiments.optimizers.tools.tool import Tool
from jahs.adapters import syne_tune as adapter
from jahs.adapters.chance import Chance
from jahs.adapters.importing import import_tool
from jahs.errors import InvalidArgument
from jahs.simulate import Proposal, Trial, Visible
from jahs.spaces.configs import Config

__all__ = ["Bohb", "BohbSettings"]

_NEEDS = "syne-tune huggingface_hub"
_LOSS, _EPOCH, _STOP = "loss", "epoch", "STOP"
_ANY_TIME = dt.datetime(2000, 1, 1, tzinfo=dt.timezone.utc)  # a trial must have one; nothing depends on it


@dataclass(frozen=True, slots=True, kw_only=True)
class BohbSettings:
    """Settings of BOHB.

    Attributes:
        eta: at each rung one of so many trials goes on.
        grace_period: the first rung, in epochs.
        random_fraction: share of configs that are drawn at random.
    """

    eta: int = 3
    grace_period: int = 1
    random_fraction: float = 0.33

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(
            (self.eta >= 2, f"eta={self.eta} is not at least 2"),
            (self.grace_period >= 1, f"grace_period={self.grace_period} is not at least 1"),
            (0 <= self.random_fraction <= 1, f"random_fraction={self.random_fraction} is not in [0, 1]"),
        )


class Bohb(Tool):
    """One objective. Trials start towards the full fidelity and are stopped at rungs of epochs.

    Fidelities other than the epoch are full throughout; where the epoch is none, nothing is stopped.
    """

    name = "syne_tune_bohb"

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: BohbSettings | None = None,
    ) -> None:
        settings = settings or BohbSettings()
        super().__init__(view, seed=seed, objectives=objectives, settings=settings)
        if len(objectives) > 1:
            raise InvalidArgument(f"{self.name} takes one objective, not {', '.join(objectives)}")
        if settings.grace_period > view.max_epoch:
            raise InvalidArgument(f"grace_period={settings.grace_period} is beyond the last epoch, {view.max_epoch}")
        baselines = import_tool("syne_tune.optimizer.baselines", needs=_NEEDS)
        self._backend = import_tool("syne_tune.backend.trial_status", needs=_NEEDS)
        self._scheduler = baselines.BOHB(
            adapter.make_space(view.space),
            metric=_LOSS,
            time_attr=_EPOCH,
            max_t=view.max_epoch,
            random_seed=self.tool_seed(),
            grace_period=settings.grace_period,
            reduction_factor=settings.eta,
            random_fraction=settings.random_fraction,
        )
        rungs = (int(milestone) for milestone, _ in self._scheduler.brackets[0].rungs)
        has_epochs = _EPOCH in view.fidelities
        self._rungs = tuple(sorted(epoch for epoch in rungs if epoch < view.max_epoch)) if has_epochs else ()
        self._n_suggested = 0
        self._chance = Chance(self.tool_seed())

    def ask(self, n: int) -> list[Proposal]:
        """Return up to `n` proposals, to be shown at every rung."""
        return [replace(proposal, reports=self._rungs) for proposal in super().ask(n)]

    def should_stop(self, report: Trial) -> bool:
        """Whether a trial that has reached a rung is among those that do not go on."""
        (objective,) = self._objectives
        loss = float(objective.minimised(report.metrics[objective.metric.name]))
        trial: Any = self._open[cast("int", report.tag)]
        decision = self._scheduler.on_trial_result(trial, {_LOSS: loss, _EPOCH: int(report.fidelity[_EPOCH])})
        return bool(decision == _STOP)

    def ask_tool(self) -> Any:
        """Suggest a config and start it."""
        with self._chance:
            suggestion = self._scheduler.suggest()
            trial = self._backend.Trial(self._n_suggested, suggestion.config, _ANY_TIME)
            self._scheduler.on_trial_add(trial)
        self._n_suggested += 1
        return trial

    def read_trial(self, trial: Any) -> tuple[Config, None]:
        """A trial's config; it starts towards the full fidelity."""
        return adapter.to_config(trial.config, self.view.space), None

    def tell_tool(self, trial: Any, result: Result) -> None:
        """That the trial is complete, or that it is gone: stopped at a rung, or failed."""
        if result.is_known:
            told = {_LOSS: self.told_losses(result)[0], _EPOCH: self.view.max_epoch}
            self._scheduler.on_trial_complete(trial, told)
        else:
            self._scheduler.on_trial_remove(trial)
