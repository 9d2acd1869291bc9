"""Syne Tune's BOHB (Falkner et al., 2018): asynchronous successive halving, proposals by density estimates."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from experiments.optimizers.tools.tool import Tool
from jahs.adapters import syne_tune as adapter
from jahs.adapters.importing import Chance, import_tool
from jahs.errors import InvalidArgument
from jahs.optimizers.baseline import TrialResult
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.simulate import Proposal, Trial
from jahs.spaces.configs import Config

_NEEDS = "syne-tune huggingface_hub"
_LOSS, _EPOCH, _STOP = "loss", "epoch", "STOP"
_ANY_TIME = dt.datetime(2000, 1, 1, tzinfo=dt.timezone.utc)  # required, but nothing depends on it


@dataclass(frozen=True, slots=True, kw_only=True)
class BohbSettings(OptimizerSettings):
    """Settings of BOHB."""

    eta: Annotated[int, Within(2)] = 3  # 1/eta of the trials continue at each rung
    grace_period: Annotated[int, Within(1)] = 1  # the first rung, in epochs
    random_fraction: Annotated[float, Within(0, 1)] = 0.33  # share of random configs
    n_candidates: Annotated[int, Within(1)] = 64  # draws of the density of good configs for each proposal
    min_bandwidth: Annotated[float, Within(0, excluded=0)] = 0.001  # of the densities


class Bohb(Tool[BohbSettings]):
    """Trials start at the full fidelity and are stopped at rungs of epochs. One objective.

    Fidelities other than the epoch are always full. If the epoch is not a fidelity of the view, no trial is stopped.
    """

    name = "syne_tune_bohb"

    def _make_tool(self, settings: BohbSettings) -> None:
        if settings.grace_period > self.view.max_epoch:
            raise InvalidArgument(
                f"grace_period={settings.grace_period} must be at most the last epoch, {self.view.max_epoch}"
            )
        baselines = import_tool("syne_tune.optimizer.baselines", needs=_NEEDS)
        self._backend = import_tool("syne_tune.backend.trial_status", needs=_NEEDS)
        self._scheduler = baselines.BOHB(
            adapter.make_space(self.view.space),
            metric=_LOSS,
            time_attr=_EPOCH,
            max_t=self.view.max_epoch,
            random_seed=self.tool_seed(),
            grace_period=settings.grace_period,
            reduction_factor=settings.eta,
            random_fraction=settings.random_fraction,
            num_candidates=settings.n_candidates,
            min_bandwidth=settings.min_bandwidth,
        )
        rungs = (int(milestone) for milestone, _ in self._scheduler.brackets[0].rungs)
        has_epochs = _EPOCH in self.view.fidelities
        self._rungs = tuple(sorted(epoch for epoch in rungs if epoch < self.view.max_epoch)) if has_epochs else ()
        self._n_suggested = 0
        self._chance = Chance(self.tool_seed())

    def ask(self, n: int) -> list[Proposal]:
        """Return up to `n` proposals that report at every rung."""
        return [replace(proposal, reports=self._rungs) for proposal in super().ask(n)]

    def should_stop(self, report: Trial) -> bool:
        """Return whether to stop a trial that has reached a rung."""
        (objective,) = self._objectives
        loss = float(objective.minimised(report.metrics[objective.metric.name]))
        trial: Any = self._open[cast("int", report.tag)]
        decision = self._scheduler.on_trial_result(trial, {_LOSS: loss, _EPOCH: int(report.fidelity[_EPOCH])})
        return bool(decision == _STOP)

    def _ask_tool(self) -> tuple[Config, None, Any]:
        with self._chance:
            suggestion = self._scheduler.suggest()
            trial = self._backend.Trial(self._n_suggested, suggestion.config, _ANY_TIME)
            self._scheduler.on_trial_add(trial)
        self._n_suggested += 1
        return adapter.to_config(trial.config, self.view.space), None, trial

    def _tell_tool(self, trial: Any, result: TrialResult) -> None:
        if result.is_known:
            report = {_LOSS: self.told_losses(result)[0], _EPOCH: self.view.max_epoch}
            self._scheduler.on_trial_complete(trial, report)
        else:  # it was stopped at a rung, or failed
            self._scheduler.on_trial_remove(trial)
