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


class JAHSObjectiveFunction(ObjectiveFunction):  # type: ignore[misc]  # the base has no types here
    """A view of one benchmark.

    A budget is an epoch, or a step on the view's path where it has more fidelities than the epoch. Virtual time is the
    runtime that a trial adds: it continues an earlier training of the same network. The runner sums it up.

    Args:
        benchmark: name of the task.
        metrics: what is optimised; accuracies become errors in percent.
        fidelities: fidelities of the view.
        noise_seed: which draw of the training noise; None is the mean.
        loggers: CARP-S's loggers.
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
        evaluation = self.evaluator.evaluate(dict(trial_info.config), budget=trial_info.budget)
        costs = list(evaluation.objectives.values())
        end = time.time()
        return TrialValue(
            cost=costs[0] if len(costs) == 1 else costs,
            time=end - begin,
            starttime=begin,
            endtime=end,
            virtual_time=self._charge(evaluation),
            additional_info=evaluation.info["metrics"],
        )

    def _charge(self, evaluation: Evaluation) -> float:
        """Return the runtime without the epochs that an earlier trial of the same network has paid for."""
        sizes = (value for name, value in evaluation.fidelity.items() if name != "epoch")
        trained = self._trained.setdefault((jahs.config_id(evaluation.config), *sizes), {})
        epoch = int(evaluation.fidelity.get("epoch", self.evaluator.view.max_epoch))
        paid_epoch = max((at for at in trained if at < epoch), default=0)
        trained[epoch] = evaluation.cost
        return evaluation.cost - trained.get(paid_epoch, 0.0)


def make_configspace(view: jahs.View) -> ConfigurationSpace:
    """Return the searched keys; booleans are text, because the file logger cannot write numpy's."""
    space = ConfigurationSpace()
    for name, parameter in jahs_configspace.make_space(view.space).items():
        if isinstance(parameter.default_value, str | int | float) and not isinstance(parameter.default_value, bool):
            space.add(parameter)
        else:
            texts = [str(bool(choice)) for choice in parameter.choices]
            space.add(CategoricalHyperparameter(name, texts, default_value=str(bool(parameter.default_value))))
    return space
