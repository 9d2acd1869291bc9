"""Syne Tune 0.16: a search space, and a `Blackbox` for its simulator.

    from jahs.adapters import syne_tune as jahs_syne_tune

    blackbox = jahs_syne_tune.make_blackbox(bench, "valid_acc")
    backend = UserBlackboxBackend(blackbox, elapsed_time_attr=jahs_syne_tune.ELAPSED_TIME)
    scheduler = ASHA(blackbox.configuration_space, metric="valid_error", time_attr="epoch", max_t=bench.max_epoch)

Syne Tune has one direction for all metrics, so each is minimised: `valid_acc` is seen as `valid_error`. It has no
constraints: a config that violates one gets a worse value than any feasible config.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jahs.adapters.evaluating import Options, elapsed_times, make_evaluator
from jahs.adapters.importing import import_tool
from jahs.adapters.values import from_config, shown_parameters, to_config
from jahs.errors import InvalidArgument
from jahs.queries.queryable import Queryable
from jahs.spaces.parameters import Parameter
from jahs.spaces.space import Space

if TYPE_CHECKING:
    from typing_extensions import Unpack  # only type checkers see it

__all__ = ["ELAPSED_TIME", "from_config", "make_blackbox", "make_space", "to_config"]

ELAPSED_TIME: Final = "elapsed_time"
"""Name of the objective that holds the time since the first budget, in simulated seconds.

If only epochs are fidelities, it is the runtime. A larger network begins at its first epoch, and its time includes the
cost of the smaller ones at smaller budgets: a simulator subtracts that for a trial that continues.
"""

_NEEDS: Final = "syne-tune huggingface_hub"


def make_space(space: Space) -> dict[str, Any]:
    """Return the domain of each key that `space` searches.

    N is an ordinal, W and Resolution are ordinals on a log scale: their steps are doublings.

    Raises:
        MissingDependency: Syne Tune is not installed.
    """
    tool = import_tool("syne_tune.config_space", needs=_NEEDS)
    return {name: _domain(tool, parameter) for name, parameter in shown_parameters(space).items()}


def make_blackbox(bench: Queryable, metrics: str | Iterable[str] = "valid_acc", **options: Unpack[Options]) -> Any:
    """Return a `Blackbox` with one fidelity, `epoch` (or `budget`, if a view has other fidelities than the epoch).

    Its objectives are `metrics`, all minimised, and `ELAPSED_TIME`.

    Args:
        bench: a benchmark or a view; it must answer `runtime`.
        metrics: one or several; Syne Tune minimises each.
        **options: constraints, worst and seed, as in `jahs.adapters.evaluating.make_evaluator`; the backend may pass
            another seed.

    Raises:
        MissingDependency: Syne Tune, or the huggingface_hub that its repository imports, is not installed.
        InvalidArgument, UnknownName: the arguments have faults.
    """
    evaluator = make_evaluator(bench, metrics, **options, knows_constraints=False)
    if "runtime" not in bench.metrics:
        raise InvalidArgument(f"bench: it answers {', '.join(bench.metrics)}, and the simulator needs runtime")
    base: Any = import_tool("syne_tune.blackbox_repository.blackbox", needs=_NEEDS).Blackbox
    domains = import_tool("syne_tune.config_space", needs=_NEEDS)
    budgets = evaluator.budgets

    class JAHSBlackbox(base):  # type: ignore[misc]  # the base has no types here
        """The benchmark as Syne Tune sees it."""

        def __init__(self) -> None:
            super().__init__(
                configuration_space=make_space(bench.space),
                fidelity_space={budgets.name: domains.randint(1, budgets.most)},
                objectives_names=[*evaluator.names, ELAPSED_TIME],
            )

        @property
        def fidelity_values(self) -> Any:
            return np.arange(1, budgets.most + 1)

        def _objective_function(
            self,
            configuration: Mapping[str, object],
            fidelity: Mapping[str, float] | None = None,
            seed: int | None = None,
        ) -> Any:
            last = budgets.most if fidelity is None else fidelity[budgets.name]
            steps = [*(budget for budget in range(1, budgets.most) if budget < last), last]
            evaluations = evaluator.evaluate_many([configuration] * len(steps), budgets=steps, seed=seed)
            times = elapsed_times(evaluations)
            rows = [[*evaluation.penalised.values(), time] for evaluation, time in zip(evaluations, times, strict=True)]
            return np.array(rows) if fidelity is None else dict(zip(self.objectives_names, rows[-1], strict=True))

    return JAHSBlackbox()


def _domain(tool: Any, parameter: Parameter) -> Any:
    if parameter.kind == "float":
        return tool.loguniform(parameter.lower, parameter.upper)
    choices = list(parameter.choices)
    if parameter.kind != "ordinal":
        return tool.choice(choices)
    ratios = set(np.divide(choices[1:], choices[:-1]).tolist())
    return tool.logordinal(choices) if len(ratios) == 1 else tool.ordinal(choices)
