"""pymoo 0.6: a `Problem` of mixed variables that evaluates a whole generation in one query.

    from jahs.adapters import pymoo as jahs_pymoo

    problem = jahs_pymoo.make_problem(bench, ["valid_acc", "latency"])
    result = minimize(problem, MixedVariableGA(pop_size=20, survival=RankAndCrowdingSurvival()), ("n_gen", 10), seed=0)
    [jahs_pymoo.to_config(x, bench.space) for x in result.X]

A variable is a position among a key's choices (pymoo cuts text short), or the logarithm (base 10) of a float (pymoo
has no log scale). If choices have an order the position is an `Integer`, otherwise a `Choice`. For algorithms that only
take real variables, such as a plain `NSGA2(pop_size=20)`, `encoding="unit"` gives each key a number in [0, 1]: a
position on a float's log scale, or one of as many equal intervals as the key has choices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from jahs.adapters import values
from jahs.adapters.evaluating import Evaluator, make_evaluator
from jahs.adapters.importing import import_tool
from jahs.errors import InvalidArgument, InvalidConfig, MissingData, UnknownName
from jahs.queries.benchmark import Benchmark
from jahs.queries.queryable import Queryable
from jahs.spaces.configs import Config
from jahs.spaces.parameters import Parameter, show
from jahs.spaces.space import Space

__all__ = ["from_config", "make_problem", "make_space", "to_config", "to_unit"]


def make_space(space: Space) -> dict[str, Any]:
    """Return the variable of each key that `space` searches, as `Problem(vars=...)` takes them.

    Raises:
        MissingDependency: pymoo is not installed.
    """
    tool = import_tool("pymoo.core.variable", needs="pymoo")
    return {name: _variable(tool, parameter) for name, parameter in values.shown_parameters(space).items()}


def to_config(x: Mapping[str, Any] | Sequence[float] | NDArray[np.floating], space: Space) -> Config:
    """Return the config, as builtins, for the variables' values: by key, or the numbers of the encoding "unit".

    Raises:
        InvalidConfig: one line for every fault.
    """
    if not isinstance(x, Mapping):
        x = _from_unit(x, space)
    faults: list[str] = []
    params: dict[str, object] = {name: value for name, value in x.items() if name not in space.parameters}
    for name, parameter in values.shown_parameters(space).items():
        if name not in x:
            faults.append(f"{name} is missing: {_meaning(parameter)}")
        elif (decoded := _decode(parameter, x[name])) is None:
            faults.append(f"{name}={x[name]!r} is not {_meaning(parameter)}")
        else:
            params[name] = decoded
    if faults:
        raise InvalidConfig(faults)
    return values.to_config(params, space)


def from_config(config: Mapping[str, object], space: Space) -> dict[str, int | float]:
    """Return the variables' values of `config`, as an `Individual` holds them.

    Raises:
        InvalidConfig: the config is not in `space`.
    """
    params = values.from_config(config, space)
    return {
        name: math.log10(cast("float", value)) if parameter.kind == "float" else parameter.choices.index(value)
        for (name, value), parameter in zip(params.items(), values.shown_parameters(space).values(), strict=True)
    }


def to_unit(config: Mapping[str, object], space: Space) -> NDArray[np.float64]:
    """Return the numbers of `config` in the encoding "unit": for a choice, the middle of its interval.

    Raises:
        InvalidConfig: the config is not in `space`.
    """
    parameters = values.shown_parameters(space)
    pairs = zip(from_config(config, space).values(), parameters.values(), strict=True)
    return np.array([_share(parameter, value) for value, parameter in pairs])


def make_problem(
    bench: Queryable,
    metrics: str | Iterable[str] = "valid_acc",
    *,
    constraints: Mapping[str, float] | None = None,
    seed: int | None = None,
    encoding: Literal["mixed", "unit"] = "mixed",
) -> Any:
    """Return a `pymoo.core.problem.Problem`, evaluated at the full fidelity.

    `F` are the objectives, all minimised, in the order of `metrics`; `G` the constraints, 0 or less where they hold.
    `pareto_front()` and `pareto_set()` are the best known ones; for one metric, its best known value. They are None
    with constraints, for several metrics in a view that fixes keys, and for metrics that the release does not compare.

    Args:
        bench: a benchmark or a view.
        metrics, constraints, seed: as in `jahs.adapters.evaluating.make_evaluator`.
        encoding: "mixed" for `MixedVariableGA`, or "unit" for algorithms of real variables.

    Raises:
        MissingDependency: pymoo is not installed.
        InvalidArgument, UnknownName: the arguments have faults.
    """
    if encoding not in ("mixed", "unit"):
        raise InvalidArgument(f"encoding must be 'mixed' or 'unit', got {show(encoding)}")
    is_unit = encoding == "unit"
    evaluator = make_evaluator(bench, metrics, constraints=constraints, seed=seed)
    known_front = cache(partial(_known_front, evaluator))
    base: Any = import_tool("pymoo.core.problem", needs="pymoo").Problem

    class JAHSProblem(base):  # type: ignore[misc]  # the base has no types here
        """The benchmark as pymoo sees it."""

        def __init__(self) -> None:
            variables = make_space(bench.space)
            super().__init__(
                **({"n_var": len(variables), "xl": 0.0, "xu": 1.0} if is_unit else {"vars": variables}),
                n_obj=len(evaluator.metrics),
                n_ieq_constr=len(evaluator.constraints),
            )

        def bounds(self) -> Any:
            """Return the bounds of real variables; the mixed encoding has no such bounds."""
            if is_unit:
                return super().bounds()
            raise InvalidArgument(
                "this algorithm is for real variables; give make_problem(..., encoding='unit'), or use MixedVariableGA"
            )

        def pareto_front(self, *_: object, **__: object) -> NDArray[np.float64] | None:
            """Return the best known front, (n_points, n_objectives), or None."""
            return evaluator.view.objectives(known_front(), metrics=evaluator.metrics) if known_front() else None

        def pareto_set(self, *_: object, **__: object) -> NDArray[Any] | None:
            """Return the variables of the best known front, in the order of its points, or None."""
            encode: Any = to_unit if is_unit else from_config
            return np.array([encode(config, bench.space) for config in known_front()]) if known_front() else None

        def _evaluate(self, X: Sequence[Mapping[str, Any]], out: dict[str, Any], *_: object, **__: object) -> None:
            evaluations = evaluator.evaluate_many([to_config(x, bench.space) for x in X])
            out["F"] = np.array([list(evaluation.objectives.values()) for evaluation in evaluations])
            if evaluator.constraints:
                out["G"] = np.array([list(evaluation.violations.values()) for evaluation in evaluations])

    return JAHSProblem()


def _known_front(evaluator: Evaluator) -> tuple[Config, ...]:
    """Return the configs of the best known front, sorted by the first objective; none if no front is known."""
    view, metrics = evaluator.view, evaluator.metrics
    if evaluator.constraints or not isinstance(view.bench, Benchmark):
        return ()
    try:
        if len(metrics) == 1:
            return (view.bench.best(metrics[0], view if view.space.fixed else None).config,)
        return () if view.space.fixed else view.bench.front(metrics).configs
    except (MissingData, UnknownName):
        return ()


def _share(parameter: Parameter, value: float) -> float:
    if parameter.kind != "float":
        return (value + 0.5) / len(parameter.choices)
    lowest, highest = _log_range(parameter)
    return min(max((value - lowest) / (highest - lowest), 0.0), 1.0)


def _from_unit(x: Sequence[float] | NDArray[np.floating], space: Space) -> dict[str, float]:
    """Return the variables' values by key for numbers in [0, 1]."""
    parameters = values.shown_parameters(space)
    try:
        unit = np.asarray(x)
    except ValueError:  # rows of different lengths
        unit = np.empty(0)
    if unit.shape != (len(parameters),) or unit.dtype.kind not in "fiu" or not ((unit >= 0) & (unit <= 1)).all():
        raise InvalidConfig([f"x={show(x)} is not one number in [0, 1] for each of {', '.join(parameters)}"])
    variables = {}
    for share, (name, parameter) in zip(unit.tolist(), parameters.items(), strict=True):
        if parameter.kind == "float":
            lowest, highest = _log_range(parameter)
            variables[name] = lowest + share * (highest - lowest)
        else:
            variables[name] = min(int(share * len(parameter.choices)), len(parameter.choices) - 1)
    return variables


def _variable(tool: Any, parameter: Parameter) -> Any:
    if parameter.kind == "float":
        return tool.Real(bounds=_log_range(parameter))
    last = len(parameter.choices) - 1
    if parameter.kind == "ordinal":
        return tool.Integer(bounds=(0, last))
    return tool.Choice(options=list(range(last + 1)))


def _log_range(parameter: Parameter) -> tuple[float, float]:
    return math.log10(parameter.lower), math.log10(parameter.upper)


def _decode(parameter: Parameter, value: Any) -> object:
    """Return a parameter's value for a variable's value; None if it is not legal."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if parameter.kind == "float":
        lowest, highest = _log_range(parameter)
        is_legal = lowest - values.ROUNDING <= number <= highest + values.ROUNDING
        return min(max(10.0**number, parameter.lower), parameter.upper) if is_legal else None
    return parameter.choices[int(number)] if number in range(len(parameter.choices)) else None


def _meaning(parameter: Parameter) -> str:
    if parameter.kind == "float":
        return f"the logarithm (base 10) of a number in {parameter.span}"
    return "a position: " + ", ".join(f"{i} is {choice!r}" for i, choice in enumerate(parameter.choices))
