"""Optuna 5: distributions, an objective for `study.optimize`, and a problem for OptunaHub.

    from jahs.adapters import optuna as jahs_optuna

    study = optuna.create_study(directions=jahs_optuna.directions("valid_acc"))
    study.optimize(jahs_optuna.make_objective(bench, "valid_acc"), n_trials=20)
    jahs_optuna.to_config(study.best_params, bench.space)

Values are metrics in their own units and directions: a study maximises the accuracy. `study.enqueue_trial` and
`create_trial` take the result of `from_config`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, cast

from jahs.adapters.evaluating import Evaluation, Evaluator, elapsed_times, make_evaluator
from jahs.adapters.importing import import_tool
from jahs.adapters.values import from_config, shown_parameters, to_config
from jahs.errors import InvalidArgument
from jahs.queries.queryable import Queryable
from jahs.spaces.configs import Config
from jahs.spaces.parameters import Parameter, is_iterable, is_number, show
from jahs.spaces.space import Space
from jahs.tasks.objectives import read_objectives

__all__ = ["directions", "from_config", "make_objective", "make_problem", "make_space", "suggest", "to_config"]


def make_space(space: Space) -> dict[str, Any]:
    """Return the distribution of each key that `space` searches, as `study.ask` takes them.

    N is an integer with step 2. W and Resolution are categorical, since Optuna has no ordinals.

    Raises:
        MissingDependency: Optuna is not installed.
    """
    tool = import_tool("optuna.distributions", needs="optuna")
    return {name: _distribution(tool, parameter) for name, parameter in shown_parameters(space).items()}


def directions(metrics: str | Iterable[str]) -> list[str]:
    """Return the argument `directions` of `create_study` for these metrics.

    Example:
        >>> directions(["valid_acc", "latency"])
        ['maximize', 'minimize']
    """
    names = [metrics] if isinstance(metrics, str) else metrics
    return [{"max": "maximize", "min": "minimize"}[each.metric.direction] for each in read_objectives(names)]


def suggest(trial: Any, space: Space) -> Config:
    """Return the config that a trial (or a `FixedTrial`) suggests, from the distributions of `make_space`."""
    params: dict[str, object] = {}
    for name, parameter in shown_parameters(space).items():
        if parameter.kind == "float":
            params[name] = trial.suggest_float(name, parameter.lower, parameter.upper, log=parameter.is_log)
        elif step := _step(parameter):
            params[name] = trial.suggest_int(name, parameter.choices[0], parameter.choices[-1], step=step)
        else:
            params[name] = trial.suggest_categorical(name, parameter.choices)
    return to_config(params, space)


def make_objective(
    bench: Queryable,
    metrics: str | Iterable[str] = "valid_acc",
    *,
    constraints: Mapping[str, float] | None = None,
    seed: int | None = None,
    budgets: Iterable[int] = (),
) -> Callable[[Any], float | tuple[float, ...]]:
    """Return a function of a trial, for `study.optimize`.

    It sets the trial's constraints and, as user attributes, the metrics and the "cost" in simulated seconds.

    Args:
        bench: a benchmark or a view.
        metrics: one or several; the study needs their `directions`.
        constraints, seed: as in `jahs.adapters.evaluating.make_evaluator`.
        budgets: ascending epochs (or positions on the view's path) at which the metric is reported, and at which the
            study's pruner may stop the trial; the full one comes after them. Optuna prunes with one metric only.

    Raises:
        InvalidArgument, UnknownName: the arguments have faults; at the first trial, the study's directions are others.
    """
    evaluator = make_evaluator(bench, metrics, constraints=constraints, seed=seed)
    steps = _steps(evaluator, budgets)

    def run_trial(trial: Any) -> float | tuple[float, ...]:
        _check_directions(trial, evaluator.metrics)
        config = suggest(trial, bench.space)
        evaluations = evaluator.evaluate_many([config] * len(steps), budgets=steps)
        for step, evaluation in zip(steps, evaluations, strict=True):
            if len(steps) > 1:
                trial.report(evaluation.metrics[evaluator.metrics[0]], step)
            if step == steps[-1] or trial.should_prune():
                break
        for name, value in {**evaluation.metrics, "cost": elapsed_times(evaluations)[steps.index(step)]}.items():
            trial.set_user_attr(name, value)
        for name, value in evaluation.violations.items():
            trial.set_constraint(name, value)
        if step != steps[-1]:
            raise import_tool("optuna", needs="optuna").TrialPruned
        return _values(evaluator, evaluation)

    return run_trial


def make_problem(
    bench: Queryable,
    metrics: str | Iterable[str] = "valid_acc",
    *,
    constraints: Mapping[str, float] | None = None,
    seed: int | None = None,
) -> Any:
    """Return an `optunahub.benchmarks.BaseProblem`, evaluated at the full fidelity; arguments as `make_objective`.

    Raises:
        MissingDependency: optunahub is not installed.
        InvalidArgument, UnknownName: the arguments have faults.
    """
    base: Any = import_tool("optunahub", needs="optunahub").benchmarks.BaseProblem
    study = import_tool("optuna.study", needs="optuna")
    evaluator = make_evaluator(bench, metrics, constraints=constraints, seed=seed)

    class JAHSProblem(base):  # type: ignore[misc]  # the base has no types here
        """The benchmark as one of OptunaHub's."""

        @property
        def search_space(self) -> dict[str, Any]:
            return make_space(bench.space)

        @property
        def directions(self) -> list[Any]:
            return [study.StudyDirection[word.upper()] for word in directions(evaluator.metrics)]

        @property
        def metric_names(self) -> list[str]:
            return list(evaluator.metrics)

        def evaluate(self, params: dict[str, Any]) -> float | tuple[float, ...]:
            return _values(evaluator, evaluator.evaluate(params))

        def evaluate_constraints(self, params: dict[str, Any]) -> dict[str, float]:
            return dict(evaluator.evaluate(params).violations) if evaluator.constraints else {}

    return JAHSProblem()


def _steps(evaluator: Evaluator, budgets: Iterable[int]) -> list[int]:
    full = evaluator.budgets.most
    if not is_iterable(budgets):
        raise InvalidArgument(f"budgets={show(budgets)} is not a list of integers in 1..{full}")
    early = list(budgets)
    if early and len(evaluator.metrics) > 1:
        raise InvalidArgument("budgets: Optuna prunes studies of one metric only; leave them out, or name one metric")
    are_whole = all(is_number(budget) and budget == int(budget) and 1 <= budget <= full for budget in early)
    if not are_whole or early != sorted(set(early)):
        raise InvalidArgument(f"budgets={show(early)}: not integers in 1..{full}, ascending")
    return [*(int(budget) for budget in early if budget < full), full]


def _check_directions(trial: Any, metrics: tuple[str, ...]) -> None:
    """Refuse a study that would minimise an accuracy, as one without `directions` does; a FixedTrial has no study."""
    wanted, study = directions(metrics), getattr(trial, "study", None)
    given = wanted if study is None else [direction.name.lower() for direction in study.directions]
    if given != wanted:
        raise InvalidArgument(
            f"the study's directions are {given}, but {', '.join(metrics)} must have {wanted}; make it with "
            f"optuna.create_study(directions={wanted})"
        )


def _values(evaluator: Evaluator, evaluation: Evaluation) -> float | tuple[float, ...]:
    metric_values = tuple(evaluation.metrics[name] for name in evaluator.metrics)
    return metric_values[0] if len(metric_values) == 1 else metric_values


def _distribution(tool: Any, parameter: Parameter) -> Any:
    if parameter.kind == "float":
        return tool.FloatDistribution(parameter.lower, parameter.upper, log=parameter.is_log)
    if step := _step(parameter):
        return tool.IntDistribution(parameter.choices[0], parameter.choices[-1], step=step)
    return tool.CategoricalDistribution(parameter.choices)


def _step(parameter: Parameter) -> int | None:
    """Return the distance between an ordinal's choices if they are integers at equal distances."""
    if parameter.kind != "ordinal" or not all(isinstance(choice, int) for choice in parameter.choices):
        return None
    numbers = cast("tuple[int, ...]", parameter.choices)
    steps = {after - before for before, after in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else None
