"""JAHS as a multi-objective test problem of BoTorch: a tensor of mixed columns in, minimised objectives out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.test_functions.base import MultiObjectiveTestProblem

import jahs
from jahs.adapters.evaluating import make_evaluator
from jahs.adapters.values import shown_parameters


class JAHSProblem(MultiObjectiveTestProblem):  # type: ignore[misc]  # the base has no types here
    """The objectives of configs at the last epoch.

    A float is the logarithm to base 10 of its value. A choice is its position in the list of legal values: discrete for
    N, W and Resolution, categorical for the other keys.

    Args:
        bench: the benchmark.
        metrics: what is optimised; accuracies become errors in percent.
        seed: which draw of the training noise; None is the mean.
        negate: whether objectives are maximised, as BoTorch's acquisition functions expect.
    """

    def __init__(
        self,
        bench: jahs.Benchmark,
        metrics: Sequence[str] = ("valid_acc", "latency"),
        *,
        seed: int | None = None,
        negate: bool = False,
    ) -> None:
        self._evaluator = make_evaluator(bench, metrics, seed=seed)
        self._keys = tuple(shown_parameters(bench.space).values())
        front = bench.front(metrics)
        self.dim, self.num_objectives = len(self._keys), len(self._evaluator.names)
        self._ref_point, self._max_hv = front.reference_point.tolist(), front.hypervolume
        self._bounds = [
            (float(torch.tensor(key.lower).log10()), float(torch.tensor(key.upper).log10()))
            if key.kind == "float"
            else (0, len(key.choices) - 1)
            for key in self._keys
        ]
        self.continuous_inds, self.discrete_inds, self.categorical_inds = (
            [i for i, key in enumerate(self._keys) if key.kind == kind] for kind in ("float", "ordinal", "categorical")
        )
        super().__init__(negate=negate)

    def read_configs(self, X: torch.Tensor) -> list[dict[str, object]]:
        """Return the configs of rows, (n, dim)."""
        return [
            {
                key.name: 10.0**value if key.kind == "float" else key.choices[round(value)]
                for key, value in zip(self._keys, row, strict=True)
            }
            for row in X.tolist()
        ]

    def _evaluate_true(self, X: torch.Tensor) -> torch.Tensor:
        evaluations = self._evaluator.evaluate_many(self.read_configs(X.reshape(-1, self.dim)))
        values = torch.tensor([list(evaluation.objectives.values()) for evaluation in evaluations], dtype=X.dtype)
        return values.reshape(*X.shape[:-1], self.num_objectives)
