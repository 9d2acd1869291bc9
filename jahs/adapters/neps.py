"""NePS 0.17: a `PipelineSpace` with a fidelity and priors, and a function for `neps.run` or `neps.AskAndTell`.

    from jahs.adapters import neps as jahs_neps

    space = jahs_neps.make_space(bench.space, fidelity_of=bench, prior={"LearningRate": 0.1, "WeightDecay": 5e-4})
    neps.run(jahs_neps.make_objective(bench), space, root_directory=..., optimizer="hyperband", ...)

NePS minimises: `valid_acc` is seen as `valid_error`. It has no constraints: a config that violates one gets a worse
value than any feasible config. It takes no seed; use `Chance`. `neps.import_trials` and `AskAndTell.tell_custom` take
the result of `from_config`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from jahs.adapters import values
from jahs.adapters.evaluating import Budgets, Options, as_view, make_evaluator
from jahs.adapters.importing import Chance as GlobalChance
from jahs.adapters.importing import import_tool
from jahs.adapters.values import from_config
from jahs.errors import InvalidArgument, InvalidConfig, refuse
from jahs.queries.queryable import Queryable
from jahs.simulate.answers import Visible
from jahs.spaces.configs import Config, mapping_of
from jahs.spaces.parameters import Parameter, Value, as_index, show
from jahs.spaces.space import Space

if TYPE_CHECKING:
    from typing_extensions import Unpack  # only type checkers see it

__all__ = ["Chance", "Confidence", "from_config", "make_objective", "make_space", "split_budget", "to_config"]

Confidence: TypeAlias = Literal["low", "medium", "high"]

_NEEDS: Final = "neural-pipeline-search torch==2.13.0"
_SAMPLED: Final = re.compile(r"SAMPLING__Resolvable\.(\w+)::(categorical)?")
_FIDELITY: Final = "ENVIRONMENT__"
_SPENT: Final = "jahs.json"


def make_space(
    space: Space,
    *,
    fidelity_of: Queryable | Visible | None = None,
    prior: Mapping[str, object] | None = None,
    confidence: Confidence = "medium",
) -> Any:
    """Return a `neps.PipelineSpace` of the keys that `space` searches, categorical unless they are floats.

    Args:
        space: the searched keys.
        fidelity_of: the benchmark or view whose budgets are the space's fidelity, `epoch` (or `budget`, if a view has
            other fidelities than the epoch); None: a space without one.
        prior: a config that is believed to be good, or some keys of one.
        confidence: confidence in every value of the prior.

    Raises:
        MissingDependency: NePS is not installed.
        InvalidConfig: a value of the prior is not legal.
        InvalidArgument: `space` fixes another value than the prior, or the confidence does not exist.
    """
    tool = import_tool("neps", needs=_NEEDS)
    if confidence not in (levels := get_args(Confidence)):
        raise InvalidArgument(f"confidence={show(confidence)} is not one of {', '.join(levels)}")
    parameters = values.shown_parameters(space)
    priors = space.fix({} if prior is None else prior).fixed
    fixed = [(key, value) for key, value in space.fixed.items() if priors[key] != value]
    refuse(*(f"prior: {key}={priors[key]!r}, but the space fixes it at {value!r}" for key, value in fixed))
    attributes = {name: _domain(tool, each, priors.get(name), confidence) for name, each in parameters.items()}
    if fidelity_of is not None:
        budgets = Budgets(fidelity_of if isinstance(fidelity_of, Visible) else as_view(fidelity_of))
        attributes[budgets.name] = tool.IntegerFidelity(1, budgets.most)
    return type("JAHSSpace", (tool.PipelineSpace,), attributes)()


def split_budget(params: Mapping[str, object], space: Space) -> tuple[dict[str, object], float | None]:
    """Return the parameters and the budget of a NePS config; None without a budget.

    A NePS config is the argument of an evaluated function, or the result of `AskAndTell.ask`. There, some optimisers
    use other names, and positions among choices in place of values.
    """
    parameters: dict[str, object] = {}
    budget = None
    for key, value in mapping_of(params).items():
        match = _SAMPLED.match(key) if isinstance(key, str) else None
        if match and match[1] in space.parameters and match[2]:
            choices, position = space.parameters[match[1]].choices, as_index(value)
            if position is None or not 0 <= position < len(choices):
                raise InvalidConfig(
                    [f"{match[1]}={show(value)} is not a position among {', '.join(map(str, choices))}"]
                )
            parameters[match[1]] = choices[position]
        elif match:
            parameters[match[1]] = value
        elif isinstance(key, str) and key.removeprefix(_FIDELITY) in ("epoch", "budget"):
            budget = cast("float", value)
        else:
            parameters[key] = value
    return parameters, budget


def to_config(params: Mapping[str, object], space: Space) -> Config:
    """Return the config, as builtins, of a NePS config; its fidelity is left out.

    Raises:
        InvalidConfig: one line for every fault.
    """
    return values.to_config(split_budget(params, space)[0], space)


def make_objective(
    bench: Queryable, metrics: str | Iterable[str] = "valid_acc", **options: Unpack[Options]
) -> Callable[..., dict[str, Any]]:
    """Return a function for `neps.run`, which takes the parameters and the directories that NePS passes.

    It returns the objective (a list of several), the cost in simulated seconds and, in `info_dict`, the metrics. A
    config that continues from a smaller budget costs the difference, if it is the same network (N, W and Resolution):
    the cost so far is kept in the trial's directory. Called with parameters alone, as for `AskAndTell`, it costs the
    full runtime.

    Args:
        bench: a benchmark or a view.
        metrics: one or several; NePS minimises each.
        **options: constraints, worst and seed, as in `jahs.adapters.evaluating.make_evaluator`.

    Raises:
        InvalidArgument, UnknownName: the arguments have faults.
    """
    evaluator = make_evaluator(bench, metrics, **options, knows_constraints=False)

    def evaluate(
        pipeline_directory: Path | None = None, previous_pipeline_directory: Path | None = None, **params: object
    ) -> dict[str, Any]:
        parameters, budget = split_budget(params, bench.space)
        evaluation = evaluator.evaluate(parameters, budget=budget)
        objectives = list(evaluation.penalised.values())
        if pipeline_directory is not None:
            facts = {"cost": evaluation.cost, "fidelity": dict(evaluation.fidelity)}
            (Path(pipeline_directory) / _SPENT).write_text(json.dumps(facts), encoding="utf-8")
        spent = 0.0
        if previous_pipeline_directory is not None:
            previous = json.loads((Path(previous_pipeline_directory) / _SPENT).read_text(encoding="utf-8"))
            spent = previous["cost"] if _continues(previous["fidelity"], evaluation.fidelity) else 0.0
        return {
            "objective_to_minimize": objectives if len(objectives) > 1 else objectives[0],
            "cost": evaluation.cost - spent,
            "info_dict": evaluation.info,
        }

    return evaluate


class Chance(GlobalChance):
    """The generators that NePS draws from, seeded; see `jahs.adapters.importing.Chance`."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, torch=import_tool("torch", needs=_NEEDS))


def _continues(previous: Mapping[str, float], current: Mapping[str, float]) -> bool:
    """Return whether a training continues, as in `jahs.simulate`: the same network, for more epochs."""
    return {**previous, "epoch": 0} == {**current, "epoch": 0} and previous.get("epoch", 0) < current.get("epoch", 0)


def _domain(tool: Any, parameter: Parameter, prior: Value | None, confidence: Confidence) -> Any:
    is_float = parameter.kind == "float"
    options: dict[str, object] = {}
    if prior is not None:
        options = {"prior": prior if is_float else parameter.choices.index(prior), "prior_confidence": confidence}
    if is_float:
        return tool.Float(parameter.lower, parameter.upper, log=parameter.is_log, **options)
    return tool.Categorical(parameter.choices, **options)
