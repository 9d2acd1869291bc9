"""SMAC 2: a `Scenario` and a target function, for every facade.

    from jahs.adapters import smac as jahs_smac

    scenario = jahs_smac.make_scenario(bench, "valid_acc", has_budgets=True, n_trials=50, seed=0, output_directory=...)
    facade = MultiFidelityFacade(scenario, jahs_smac.make_objective(bench, "valid_acc"))
    jahs_smac.to_config(facade.optimize(), bench.space)

SMAC minimises: `valid_acc` is seen as `valid_error`. It has no constraints: a config that violates one gets a worse
value than any feasible config.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from jahs.adapters.configspace import from_config, make_space, to_config
from jahs.adapters.evaluating import Options, make_evaluator
from jahs.adapters.importing import import_tool
from jahs.queries.queryable import Queryable

if TYPE_CHECKING:
    from typing_extensions import Unpack  # only type checkers see it

__all__ = ["from_config", "make_objective", "make_scenario", "make_space", "to_config"]


def make_scenario(
    bench: Queryable,
    metrics: str | Iterable[str] = "valid_acc",
    *,
    seed: int,
    has_budgets: bool = False,
    **arguments: object,
) -> Any:
    """Return a `smac.Scenario` for this benchmark or view.

    Args:
        bench: a benchmark or a view.
        metrics: the objectives, the same as for `make_objective`.
        seed: seed of the optimiser, at least 0.
        has_budgets: whether the facade chooses budgets (multi-fidelity, Hyperband).
        **arguments: further arguments of `smac.Scenario`, such as `n_trials` and `output_directory`; `deterministic` is
            True unless given here.

    Raises:
        MissingDependency: SMAC is not installed.
        InvalidArgument, UnknownName: the metrics have faults.
    """
    tool = import_tool("smac", needs="smac")
    evaluator = make_evaluator(bench, metrics)
    budgets = {"min_budget": 1, "max_budget": evaluator.budgets.most} if has_budgets else {}
    defaults = {"objectives": list(evaluator.names), "deterministic": True, "seed": seed, **budgets}
    return tool.Scenario(make_space(bench.space, seed=seed), **{**defaults, **arguments})


def make_objective(
    bench: Queryable, metrics: str | Iterable[str] = "valid_acc", *, has_noise: bool = False, **options: Unpack[Options]
) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """Return a target function of a `Configuration`, SMAC's seed and a budget; it returns a cost and further facts.

    Args:
        bench: a benchmark or a view.
        metrics: one or several; SMAC minimises each.
        has_noise: whether SMAC's seed draws the training noise, for scenarios that are not deterministic.
        **options: constraints, worst and seed, as in `jahs.adapters.evaluating.make_evaluator`.

    Raises:
        InvalidArgument, UnknownName: the arguments have faults.
    """
    evaluator = make_evaluator(bench, metrics, **options, knows_constraints=False)

    def target(config: Any, seed: int = 0, budget: float | None = None) -> tuple[Any, dict[str, Any]]:
        evaluation = evaluator.evaluate(dict(config), budget=budget, seed=seed if has_noise else None)
        costs = dict(evaluation.penalised)
        return (costs if len(costs) > 1 else next(iter(costs.values()))), {**evaluation.info, "cost": evaluation.cost}

    return target
