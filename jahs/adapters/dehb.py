"""DEHB 0.1: the space and fidelities of `DEHB(...)`, and its objective function.

    from jahs.adapters import dehb as jahs_dehb

    optimiser = DEHB(**jahs_dehb.make_arguments(bench, "valid_acc"), eta=3, seed=0, output_path=...)
    optimiser.run(fevals=50)

DEHB minimises one metric: `valid_acc` is seen as `valid_error`. It has no constraints: a config that
violates one gets a worse value than any feasible config.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jahs.adapters.configspace import from_config, make_space, to_config
from jahs.adapters.evaluating import Budgets, Options, as_view, make_evaluator
from jahs.adapters.values import shown_parameters
from jahs.queries.queryable import Queryable

if TYPE_CHECKING:
    from typing_extensions import Unpack  # only type checkers see it

__all__ = ["from_config", "make_arguments", "make_objective", "make_space", "to_config"]


def make_arguments(bench: Queryable, metric: str = "valid_acc", **options: Unpack[Options]) -> dict[str, Any]:
    """Return `DEHB`'s arguments `f`, `cs`, `dimensions`, `min_fidelity` and `max_fidelity`; see `make_objective`.

    Raises:
        MissingDependency: ConfigSpace is not installed.
        InvalidArgument, UnknownName: the arguments have faults.
    """
    return {
        "f": make_objective(bench, metric, **options),
        "cs": make_space(bench.space),
        "dimensions": len(shown_parameters(bench.space)),
        "min_fidelity": 1,
        "max_fidelity": Budgets(as_view(bench)).most,
    }


def make_objective(
    bench: Queryable, metric: str = "valid_acc", **options: Unpack[Options]
) -> Callable[..., dict[str, Any]]:
    """Return a function of a `Configuration` and a fidelity; it returns "fitness", "cost" (simulated s) and "info".

    Args:
        bench: a benchmark or a view.
        metric: the objective; DEHB sees it as minimised.
        **options: constraints, worst and seed, as in `jahs.adapters.evaluating.make_evaluator`.

    Raises:
        InvalidArgument, UnknownName: the arguments have faults.
    """
    evaluator = make_evaluator(bench, [metric], **options, knows_constraints=False)

    def evaluate(config: Any, fidelity: float | None = None, **_: object) -> dict[str, Any]:
        evaluation = evaluator.evaluate(dict(config), budget=fidelity)
        (fitness,) = evaluation.penalised.values()
        return {"fitness": fitness, "cost": evaluation.cost, "info": evaluation.info}

    return evaluate
