"""Evaluation of a config for a tool: objectives, constraints and cost at the requested budget.

Tools differ in the metrics that they minimise. An `Evaluator` defines the metrics, their directions, the constraints
and the budgets once, and each adapter converts it to the form of its tool. Most tools have a single fidelity, a number.
If only the epoch is a fidelity, that number is the epoch. If a view has others, it is a position on the view's path
through all of them, counted in as many steps as there are epochs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from jahs.adapters.values import to_config
from jahs.errors import InvalidArgument, InvalidFidelity, refuse
from jahs.queries.queryable import Queryable
from jahs.queries.views import View
from jahs.simulate.answers import Visible
from jahs.spaces.configs import Config
from jahs.spaces.parameters import is_number, is_real, show
from jahs.spaces.seeds import read_optional_seed
from jahs.tasks.metrics import Metric
from jahs.tasks.objectives import Objective, read_objectives

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of a view, or of the part of it that an optimiser sees: 1 to `most`, both included."""

    view: View | Visible

    @property
    def is_epoch(self) -> bool:
        """Whether a budget is an epoch rather than a position on the view's path."""
        return tuple(self.view.fidelities) == ("epoch",)

    @property
    def name(self) -> str:
        """The name of the tool's parameter for the budget."""
        return "epoch" if self.is_epoch else "budget"

    @property
    def most(self) -> int:
        """The budget of a full evaluation."""
        return self.view.max_epoch

    def fidelity(self, budget: float) -> dict[str, float]:
        """Return the fidelity of a budget: the epoch rounded half to even, other fidelities at legal values."""
        if self.is_epoch:
            return self.view.fidelity(budget)
        if not is_real(budget) or not 0 < budget <= self.most * (1 + _ROUNDING):
            raise InvalidFidelity(f"budget={show(budget)} is not a number in (0, {self.most}]")
        return self.view.path(min(float(budget) / self.most, 1.0))


def as_view(bench: Queryable) -> View:
    """Return a view as it is, and a benchmark as its full view."""
    return bench if isinstance(bench, View) else View(bench)


class Options(TypedDict, total=False):
    """Options of `make_evaluator`, described there, that adapters of tools without constraints pass on."""

    constraints: Mapping[str, float] | None
    worst: Mapping[str, float] | None
    seed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The result of one evaluation."""

    config: Config  # all 14 keys, builtins
    fidelity: Mapping[str, float]  # rounded
    metrics: Mapping[str, float]  # metrics of objectives and constraints in their units, and the runtime if available
    objectives: Mapping[str, float]  # minimised, by `objective_name`
    violations: Mapping[str, float]  # distance of each metric beyond its bound, in its unit; 0 or less where it holds
    penalised: Mapping[str, float]  # the objectives; `Evaluator.worst` plus the violation if a constraint is violated
    cost: float  # runtime in seconds from the first epoch; NaN if the benchmark does not answer it

    @property
    def info(self) -> dict[str, dict[str, float]]:
        """The metrics and violations, if any, for tools that keep facts beside their objectives."""
        facts = {"metrics": dict(self.metrics), "violations": dict(self.violations)}
        return {name: values for name, values in facts.items() if values}  # DEHB's Parquet holds no empty mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """Objectives and their constraints; made by `make_evaluator`."""

    view: View
    objectives: tuple[Objective, ...]  # turned so that less is better
    constraints: tuple[tuple[Objective, float], ...] = ()  # turned in the same way, each with its upper bound
    worst: Mapping[str, float]  # by objective: no feasible config is worse; empty for tools that know constraints
    seed: int | None = None  # seed of the training noise; None is the mean

    @property
    def budgets(self) -> Budgets:
        """The budgets of the view."""
        return Budgets(self.view)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics to optimise."""
        return tuple(objective.metric.name for objective in self.objectives)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the objectives; see `objective_name`."""
        return tuple(map(objective_name, self.objectives))

    def evaluate(
        self, params: Mapping[str, object], *, budget: float | None = None, seed: int | None = None
    ) -> Evaluation:
        """Evaluate one config; see `evaluate_many`."""
        return self.evaluate_many([params], budgets=None if budget is None else [budget], seed=seed)[0]

    def evaluate_many(
        self,
        many_params: Sequence[Mapping[str, object]],
        *,
        budgets: Sequence[float] | None = None,
        seed: int | None = None,
    ) -> list[Evaluation]:
        """Evaluate configs in one query, each as a config or as a tool spells it (`jahs.adapters.values.to_config`).

        `budgets` has one budget per config; None: the full budget. `seed` replaces the evaluator's seed.
        """
        configs = [to_config(params, self.view.space) for params in many_params]
        if not configs:
            return []
        if budgets is None:
            budgets = [self.budgets.most] * len(configs)
        fidelities = [self.budgets.fidelity(budget) for budget in budgets]
        names = [*self.metrics, *(objective.metric.name for objective, _ in self.constraints)]
        names = list(dict.fromkeys([*names, *(["runtime"] if "runtime" in self.view.metrics else [])]))
        seed = self.seed if seed is None else seed
        columns = self.view.query_many(configs, each_at=fidelities, seed=seed, metrics=tuple(names))
        rows = zip(*(columns[name].tolist() for name in names), strict=True)
        answers = (dict(zip(names, row, strict=True)) for row in rows)
        return [self._judge(*each) for each in zip(configs, fidelities, answers, strict=True)]

    def _judge(self, config: Config, fidelity: Mapping[str, float], metrics: Mapping[str, float]) -> Evaluation:
        def value_of(objective: Objective) -> float:
            return float(objective.minimised(metrics[objective.metric.name]))

        objectives = {objective_name(objective): value_of(objective) for objective in self.objectives}
        violations = {limit.metric.name: value_of(limit) - bound for limit, bound in self.constraints}
        excess = sum(max(violations[limit.metric.name], 0.0) / (abs(bound) or 1.0) for limit, bound in self.constraints)
        penalised = {name: worst + excess for name, worst in self.worst.items()} if excess else {}
        return Evaluation(
            config=config,
            fidelity=fidelity,
            metrics=metrics,
            objectives=objectives,
            violations=violations,
            penalised=penalised or objectives,
            cost=metrics.get("runtime", math.nan),
        )


def make_evaluator(
    bench: Queryable,
    metrics: str | Iterable[str],
    *,
    constraints: Mapping[str, float] | None = None,
    worst: Mapping[str, float] | None = None,
    seed: int | None = None,
    knows_constraints: bool = True,
) -> Evaluator:
    """Return the evaluator of these metrics.

    Args:
        bench: a benchmark or a view.
        metrics: the objectives, one or several, each in its own direction.
        constraints: bounds by metric: at most for a metric that is minimised, at least for one that is maximised.
        worst: for tools without constraints: by metric, in its unit, a value at least as bad as every feasible
            config's. Infeasible configs get a worse value. The default is the metric's own bound; a metric without
            one, such as the latency, needs a value here.
        seed: seed of the training noise; None is the mean.
        knows_constraints: whether the tool supports constraints.
    """
    view, seed = as_view(bench), read_optional_seed(seed)
    objectives = read_objectives([metrics] if isinstance(metrics, str) else metrics, known=view.metrics)
    bounds = _read_bounds("constraints", constraints, view.metrics)
    worst_values = _read_bounds("worst", worst, view.metrics)
    names = [objective.metric.name for objective in objectives]
    if others := [name for objective, _ in worst_values if (name := objective.metric.name) not in names]:
        raise InvalidArgument(f"worst: {', '.join(others)} is not an objective; those are {', '.join(names)}")
    if knows_constraints or not bounds:
        return Evaluator(view=view, objectives=objectives, constraints=bounds, worst={}, seed=seed)
    largest = {objective_name(objective): objective.upper for objective in objectives}
    largest |= {objective_name(objective): value for objective, value in worst_values}
    if missing := [name for name, value in largest.items() if math.isinf(value)]:
        raise InvalidArgument(
            f"worst: {', '.join(missing)} has no largest value, and this tool knows no constraints; set worst= "
            "to a value at least as bad as that of every feasible config"
        )
    return Evaluator(view=view, objectives=objectives, constraints=bounds, worst=largest, seed=seed)


def elapsed_times(steps: Iterable[Evaluation]) -> list[float]:
    """Return the simulated seconds until each of the ascending steps in which one config is trained.

    The same network continues where it stopped. A larger network begins at its first epoch, as in `jahs.simulate`; the
    cost of the smaller networks before it is not refunded.
    """
    spent: dict[tuple[float, ...], float] = {}
    times = []
    for step in steps:
        sizes = tuple(value for name, value in step.fidelity.items() if name != "epoch")
        spent[sizes] = step.cost
        times.append(sum(spent.values()))
    return times


def objective_name(objective: Objective) -> str:
    """Return the name of an objective as it is minimised.

    Example:
        >>> [objective_name(objective) for objective in read_objectives(["valid_acc", "latency"])]
        ['valid_error', 'latency']
    """
    name = objective.metric.name
    return f"{name.removesuffix('_acc')}_error" if objective.metric.direction == "max" else name


def _read_bounds(
    argument: str, bounds: Mapping[str, float] | None, known: Mapping[str, Metric]
) -> tuple[tuple[Objective, float], ...]:
    """Return bounds of metrics, in their units, as bounds of objectives."""
    if bounds is not None and not isinstance(bounds, Mapping):
        raise InvalidArgument(f"{argument}={show(bounds)} is not a mapping of metrics to bounds")
    if not bounds:
        return ()
    wrong = {name: bound for name, bound in bounds.items() if not is_number(bound)}
    refuse(*(f"{argument}: {name}={show(bound)} is not a finite number" for name, bound in wrong.items()))
    pairs = zip(read_objectives(bounds, known=known), bounds.values(), strict=True)
    return tuple((objective, float(objective.minimised(float(bound)))) for objective, bound in pairs)
