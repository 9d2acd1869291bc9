"""The objective function of every JAHS task: a view of a benchmark, minimised, with virtual time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from carps.objective_functions.objective_function import ObjectiveFunction
from carps.utils.trials import TrialInfo, TrialValue
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace

import jahs
from jahs.adapters import configspace as jahs_configspace
from jahs.adapters.evaluating import Evaluation, make_evaluator

__all__ = ["JAHSObjectiveFunction", "make_configspace"]


class JAHSObjectiveFunction(ObjectiveFunction):  # type: ignore[misc]  # the base has no types here
    """A view of one benchmark.

    A budget is an epoch, or a step on the view's path where it has more fidelities than the epoch. Virtual time is what
    the trial adds: a network that was trained before, for fewer epochs, goes on where it was. The runner adds these up.

    Args:
        benchmark: name of the task.
        metrics: what is optimised; accuracies become errors in percent.
        fidelities: of the view.
        noise_seed: which draw of the training noise; None is the mean.
        loggers: of CARP-S.
    """

    def __init__(
        self,
        benchmark: str,
        metrics: Sequence[str] = ("valid_acc",),
        fidelities: Sequence[str] = ("epoch",),
        noise_seed: int | None = None,
        loggers: list[object] | None = None,
    ) -> None:
        super().__init__(loggers)
        view = jahs.Benchmark(benchmark).view(fidelities=tuple(fidelities))
        self.evaluator = make_evaluator(view, tuple(metrics), seed=noise_seed)
        self._configspace = make_configspace(view)
        self._trained: dict[tuple[object, ...], dict[int, float]] = {}

    @property
    def configspace(self) -> ConfigurationSpace:
        """The searched keys."""
        return self._configspace

    def _evaluate(self, trial_info: TrialInfo) -> TrialValue:
        begin = time.time()
        found = self.evaluator.evaluate(dict(trial_info.config), budget=trial_info.budget)
        costs = list(found.objectives.values())
        end = time.time()
        return TrialValue(
            cost=costs[0] if len(costs) == 1 else costs,
            time=end - begin,
            starttime=begin,
            endtime=end,
            virtual_time=self._charge(found),
            additional_info=found.info["metrics"],
        )

    def _charge(self, found: Evaluation) -> float:
        """Return the runtime without the epochs that an earlier trial of the same network has paid for."""
        sizes = (value for name, value in found.fidelity.items() if name != "epoch")
        trained = self._trained.setdefault((jahs.config_id(found.config), *sizes), {})
        epoch = int(found.fidelity.get("epoch", self.evaluator.view.max_epoch))
        paid = max((at for at in trained if at < epoch), default=0)
        trained[epoch] = found.cost
        return found.cost - trained.get(paid, 0.0)


def make_configspace(view: jahs.View) -> ConfigurationSpace:
    """Return the searched keys; booleans are text, because the file logger cannot write numpy's."""
    made = ConfigurationSpace()
    for name, parameter in jahs_configspace.make_space(view.space).items():
        if isinstance(parameter.default_value, str | int | float) and not isinstance(parameter.default_value, bool):
            made.add(parameter)
        else:
            words = [str(bool(choice)) for choice in parameter.choices]
            made.add(CategoricalHyperparameter(name, words, default_value=str(bool(parameter.default_value))))
    return made
