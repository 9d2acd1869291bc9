"""pymoo 0.6: a `Problem` of mixed variables that evaluates a whole generation in one query.

    from jahs.adapters import pymoo as jahs_pymoo

    problem = jahs_pymoo.make_problem(bench, ["valid_acc", "latency"])
    found = minimize(problem, MixedVariableGA(pop_size=20, survival=RankAndCrowdingSurvival()), ("n_gen", 10), seed=0)
    [jahs_pymoo.to_config(x, bench.space) for x in found.X]

A variable is a position among a key's choices (pymoo cuts text short), or the logarithm (base 10) of a float (pymoo
knows no log scale). Where choices have an order the position is an `Integer`, otherwise a `Choice`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from jahs.adapters import values
from jahs.adapters.evaluating import make_evaluator
from jahs.adapters.importing import import_tool
from jahs.errors import InvalidConfig
from jahs.queries.queryable import Queryable
from jahs.spaces.configs import Config
from jahs.spaces.parameters import Parameter
from jahs.spaces.space import Space

__all__ = ["from_config", "make_problem", "make_space", "to_config"]


def make_space(space: Space) -> dict[str, Any]:
    """Return the variable of each key that `space` searches and that has a choice, as `Problem(vars=...)` takes them.

    Raises:
        MissingDependency: pymoo is not installed.
    """
    tool = import_tool("pymoo.core.variable", needs="pymoo")
    return {name: _variable(tool, parameter) for name, parameter in values.shown_parameters(space).items()}


def to_config(x: Mapping[str, Any], space: Space) -> Config:
    """Return the config, as builtins, for the variables' values.

    Raises:
        InvalidConfig: one line for every fault.
    """
    faults: list[str] = []
    params: dict[str, object] = {name: value for name, value in x.items() if name not in space.parameters}
    for name, parameter in values.shown_parameters(space).items():
        if name not in x:
            faults.append(f"{name} is missing: {_meaning(parameter)}")
        elif (read := _decode(parameter, x[name])) is None:
            faults.append(f"{name}={x[name]!r} is not {_meaning(parameter)}")
        else:
            params[name] = read
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


def make_problem(
    bench: Queryable,
    metrics: str | Iterable[str] = "valid_acc",
    *,
    constraints: Mapping[str, float] | None = None,
    seed: int | None = None,
) -> Any:
    """Return a `pymoo.core.problem.Problem`, evaluated at the full fidelity.

    `F` are the objectives, all minimised, in the order of `metrics`; `G` the constraints, 0 or less where they hold.

    Args:
        bench: a benchmark or a view.
        metrics, constraints, seed: as in `jahs.adapters.evaluating.make_evaluator`.

    Raises:
        MissingDependency: pymoo is not installed.
        InvalidArgument, UnknownName: the arguments have faults.
    """
    evaluator = make_evaluator(bench, metrics, constraints=constraints, seed=seed)
    base: Any = import_tool("pymoo.core.problem", needs="pymoo").Problem

    class JAHSProblem(base):  # type: ignore[misc]  # the base has no types here
        """The benchmark as pymoo sees it."""

        def __init__(self) -> None:
            super().__init__(
                vars=make_space(bench.space), n_obj=len(evaluator.metrics), n_ieq_constr=len(evaluator.constraints)
            )

        def _evaluate(self, X: Sequence[Mapping[str, Any]], out: dict[str, Any], *_: object, **__: object) -> None:
            found = evaluator.evaluate_many([to_config(x, bench.space) for x in X])
            out["F"] = np.array([list(one.objectives.values()) for one in found])
            if evaluator.constraints:
                out["G"] = np.array([list(one.violations.values()) for one in found])

    return JAHSProblem()


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
    """Return the key's value for a variable's value; None where there is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
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
