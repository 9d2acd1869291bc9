"""JAHS as a problem of OptunaHub."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import jahs
from jahs.adapters import optuna as jahs_optuna
import optuna
import optunahub


class Problem(optunahub.benchmarks.BaseProblem):
    """One task of JAHS, evaluated at the last epoch.

    Args:
        task: name of the task; see `available_tasks`.
        metric_names: metrics to optimize, each in its own direction; see `available_metric_names`.
        seed: which draw of the training noise; None: the mean over trainings.
        constraints: bounds by metric: at most for a metric that is minimized, at least for one
            that is maximized.
        search: "all" parameters, "nas" (the cell alone) or "hpo" (how it is trained alone).
    """

    def __init__(
        self,
        task: str = "cifar10_mini",
        metric_names: Sequence[str] = ("valid_acc",),
        *,
        seed: int | None = None,
        constraints: Mapping[str, float] | None = None,
        search: str = "all",
    ) -> None:
        self.benchmark = jahs.Benchmark(task).view(search=search)
        self._problem = jahs_optuna.make_problem(
            self.benchmark, metric_names, constraints=constraints, seed=seed
        )

    @property
    def available_tasks(self) -> list[str]:
        """Names of the tasks that can be queried here."""
        return list(jahs.releases())

    @property
    def available_metric_names(self) -> list[str]:
        """Names of the metrics of this task."""
        return list(self.benchmark.metrics)

    @property
    def metric_names(self) -> list[str]:
        """Names of the metrics that are optimized, for `study.set_metric_names`."""
        return list(self._problem.metric_names)

    @property
    def search_space(self) -> dict[str, optuna.distributions.BaseDistribution]:
        """The distribution of each parameter."""
        return dict(self._problem.search_space)

    @property
    def directions(self) -> list[optuna.study.StudyDirection]:
        """The direction of each metric."""
        return list(self._problem.directions)

    def evaluate(self, params: dict[str, Any]) -> float | Sequence[float]:
        """Return the values of the metrics, in their own units."""
        return self._problem.evaluate(params)  # type: ignore[no-any-return]

    def evaluate_constraints(self, params: dict[str, Any]) -> dict[str, float]:
        """Return how far each constraint is broken; 0 or less where it holds."""
        return dict(self._problem.evaluate_constraints(params))
