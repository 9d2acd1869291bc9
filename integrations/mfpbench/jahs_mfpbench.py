"""JAHS as a benchmark of mf-prior-bench, whose own wrapper of JAHS-Bench-201 cannot be installed any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ConfigSpace import Constant
from mfpbench.benchmark import Benchmark
from mfpbench.get import _mapping
from mfpbench.jahs.benchmark import JAHSConfig
from mfpbench.metric import Metric
from mfpbench.result import Result

import jahs
from jahs.adapters import configspace as jahs_configspace


@dataclass(frozen=True)
class JAHSMiniResult(Result[JAHSConfig, int]):  # type: ignore[misc]  # the base has no types here
    """The metrics of a release, in their own units."""

    default_value_metric: ClassVar[str] = "valid_acc"
    default_value_metric_test: ClassVar[str] = "test_acc"
    default_cost_metric: ClassVar[str] = "runtime"
    metric_defs: ClassVar[Mapping[str, Metric]] = {
        name: Metric(minimize=metric.direction == "min", bounds=(metric.lower, metric.upper))
        for name in ("train_acc", "valid_acc", "test_acc", "latency", "runtime", "n_params", "n_macs")
        for metric in [jahs.tasks.metric(name)]
    }
    train_acc: Metric.Value
    valid_acc: Metric.Value
    test_acc: Metric.Value
    latency: Metric.Value
    runtime: Metric.Value
    n_params: Metric.Value
    n_macs: Metric.Value


class JAHSMini(Benchmark[JAHSConfig, JAHSMiniResult, int]):  # type: ignore[misc]  # as above
    """A task, as in `mfpbench.get("jahs_mini", task="cifar10_mini")`; `noise_seed` draws training noise."""

    def __init__(
        self,
        task: str = "cifar10_mini",
        *,
        noise_seed: int | None = None,
        seed: int | None = None,
        prior: str | Path | JAHSConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.bench, self.noise_seed = jahs.Benchmark(task), noise_seed
        space = jahs_configspace.make_space(self.bench.space)
        space.add(Constant("Optimizer", "SGD"))
        space.seed(seed)
        at = (1, self.bench.max_epoch, 1)
        options |= {"seed": seed, "prior": prior}
        super().__init__(f"jahs-{task}", space, JAHSConfig, JAHSMiniResult, at, "epoch", **options)

    def _objective_function(self, config: Mapping[str, Any], *, at: int) -> Mapping[str, float]:
        return dict(self.bench.query(config, at=at, seed=self.noise_seed).values)

    def _trajectory(
        self, config: Mapping[str, Any], *, frm: int, to: int, step: int
    ) -> Iterable[tuple[int, Mapping[str, float]]]:
        curve = dict(self.bench.trajectory(config, frm=frm, to=to, step=step, seed=self.noise_seed))
        epochs = curve.pop("epoch")
        return [(int(epoch), {name: float(each[i]) for name, each in curve.items()}) for i, epoch in enumerate(epochs)]


_mapping["jahs_mini"] = JAHSMini
