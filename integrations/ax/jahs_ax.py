"""JAHS as a problem of Ax's benchmarking suite: every objective minimised, in simulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from ax.benchmark.benchmark_problem import BenchmarkProblem, get_moo_opt_config, get_soo_opt_config
from ax.benchmark.benchmark_test_function import BenchmarkTestFunction
from ax.core.parameter import ChoiceParameter, Parameter, ParameterType, RangeParameter
from ax.core.search_space import SearchSpace
from ax.core.types import TParamValue

import jahs
from jahs.adapters.evaluating import Evaluator, make_evaluator
from jahs.adapters.values import shown_parameters

_TYPES = {bool: ParameterType.BOOL, int: ParameterType.INT, float: ParameterType.FLOAT, str: ParameterType.STRING}
_TICKS_PER_SECOND = 2**20
_N_BASELINE = 5  # Ax's own baseline is the best of five quasi-random trials


@dataclass(kw_only=True)
class JAHSTestFunction(BenchmarkTestFunction):  # type: ignore[misc]  # the base has no types here
    """The objectives of a config: at the last epoch, or at every epoch if each epoch is a step."""

    evaluator: Evaluator

    def evaluate_true(self, params: Mapping[str, TParamValue]) -> torch.Tensor:
        """Return the objectives, (n_outcomes, n_steps)."""
        max_budget = self.evaluator.budgets.most
        budgets = [max_budget] if self.n_steps == 1 else list(range(1, max_budget + 1))
        answers = self.evaluator.evaluate_many([params] * len(budgets), budgets=budgets)
        return torch.tensor([[answer.objectives[name] for answer in answers] for name in self.outcome_names])

    def step_runtime(self, params: Mapping[str, TParamValue]) -> float:
        """Return the simulated seconds of a step, to about a microsecond.

        Ax subtracts a trial's start from its end and drops the data if rounding made the difference too short. Sums
        of multiples of a power of two are exact.
        """
        return round(_TICKS_PER_SECOND * self.evaluator.evaluate(params).cost / self.n_steps) / _TICKS_PER_SECOND


def make_search_space(view: jahs.View | jahs.Benchmark) -> SearchSpace:
    """Return the searched keys; N, W and Resolution are ordered choices."""
    parameters: list[Parameter] = []
    for name, key in shown_parameters(view.space).items():
        if key.kind == "float":
            parameters.append(RangeParameter(name, ParameterType.FLOAT, key.lower, key.upper, log_scale=key.is_log))
        else:
            values, kind = list(key.choices), _TYPES[type(key.default)]
            is_ordered = key.kind == "ordinal"
            parameters.append(ChoiceParameter(name, kind, values, is_ordered=is_ordered, sort_values=is_ordered))
    return SearchSpace(parameters)


def make_problem(
    bench: jahs.Benchmark,
    metrics: Sequence[str] = ("valid_acc",),
    *,
    n_trials: int = 100,
    n_steps: int = 1,
    seed: int | None = None,
) -> BenchmarkProblem:
    """Return the problem of optimising these metrics.

    A score of 100 is the best known value, or the hypervolume of the best known front; 0 is the best of five random
    configs. The objective thresholds of several objectives are the reference point of the release.

    Args:
        bench: the benchmark.
        metrics: what is optimised; accuracies become errors in percent.
        n_trials: budget of a run.
        n_steps: 1, or the number of epochs: then each trial is a learning curve, and may be stopped early.
        seed: which draw of the training noise; None is the mean.
    """
    if n_steps not in {1, bench.max_epoch}:
        raise jahs.errors.InvalidArgument(f"n_steps={n_steps} must be 1 or the number of epochs, {bench.max_epoch}")
    evaluator = make_evaluator(bench, metrics, seed=seed)
    names = evaluator.names
    answers = evaluator.evaluate_many(bench.sample(_N_BASELINE, seed=0))
    values = [list(answer.objectives.values()) for answer in answers]
    use_map_metric = n_steps > 1
    if len(names) == 1:
        config, ax_metrics = get_soo_opt_config(outcome_names=names, use_map_metric=use_map_metric)
        baseline = float(np.min(values))
        best = float(evaluator.objectives[0].minimised(bench.best(metrics[0]).value))
    else:
        front = bench.front(metrics)
        config, ax_metrics = get_moo_opt_config(
            outcome_names=names, ref_point=front.reference_point.tolist(), use_map_metric=use_map_metric
        )
        baseline, best = bench.hypervolume(values, metrics), front.hypervolume
    function = JAHSTestFunction(outcome_names=names, n_steps=n_steps, evaluator=evaluator)
    return BenchmarkProblem(
        name=f"JAHS {bench.task.name}: {', '.join(names)}",
        optimization_config=config,
        opt_config_metrics=ax_metrics,
        num_trials=n_trials,
        test_function=function,
        optimal_value=best,
        baseline_value=baseline,
        search_space=make_search_space(bench),
        step_runtime_function=function.step_runtime,
    )
