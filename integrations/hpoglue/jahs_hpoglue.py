"""JAHS as a benchmark of hpoglue and hposuite: its metrics, runtime as cost, epochs with continuation, trajectories."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pandas as pd
from hpoglue import BenchmarkDescription, Config, Measure, Query, Result, SurrogateBenchmark
from hpoglue.fidelity import RangeFidelity

import jahs
from jahs.adapters import configspace as jahs_configspace


def describe(bench: jahs.Benchmark, *, seed: int | None = None) -> BenchmarkDescription:
    """Return the description, which `hposuite.register.register` and `hpoglue.run_glue` take.

    Metrics keep their units and directions; the first one, and so the default objective, is `valid_acc`. The predefined
    point is the release's reference config.

    Args:
        bench: the benchmark.
        seed: which draw of the training noise; None is the mean.
    """
    measures = {
        name: Measure.metric((metric.lower, metric.upper), minimize=metric.direction == "min")
        for name, metric in sorted(bench.metrics.items(), key=lambda item: item[0] != "valid_acc")
        if name != "runtime" and not name.startswith("test_")
    }
    tests = {
        name: Measure.test_metric((metric.lower, metric.upper), minimize=metric.direction == "min")
        for name, metric in bench.metrics.items()
        if name.startswith("test_")
    }
    point = bench.reference_config
    return BenchmarkDescription(
        name=f"jahs-{bench.task.name}",
        config_space=jahs_configspace.make_space(bench.space),
        load=partial(_load, bench=bench, seed=seed),
        metrics=measures,
        test_metrics=tests or None,
        costs={"runtime": Measure.cost((0.0, math.inf))},
        fidelities={"epoch": RangeFidelity.from_tuple((1, bench.max_epoch, 1), supports_continuation=True)},
        predefined_points=None if point is None else {"reference": Config(config_id="reference", values=dict(point))},
        mem_req_mb=512,
    )


def _load(description: BenchmarkDescription, *, bench: jahs.Benchmark, seed: int | None) -> SurrogateBenchmark:
    def read(query: Query) -> tuple[Any, int]:
        epoch = bench.max_epoch if query.fidelity is None else query.fidelity[1]
        return jahs_configspace.to_config(query.config.values, bench.space), epoch

    def ask(query: Query) -> Result:
        config, epoch = read(query)
        return Result(
            query=query, fidelity=query.fidelity, values=dict(bench.query(config, at=epoch, seed=seed).values)
        )

    def trajectory(*, query: Query, frm: float | None = None, to: float | None = None) -> pd.DataFrame:
        config, epoch = read(query)
        curve = bench.trajectory(config, frm=int(frm or 1), to=int(to or epoch), seed=seed)
        return pd.DataFrame(dict(curve)).set_index("epoch")

    return SurrogateBenchmark(
        desc=description, config_space=description.config_space, benchmark=bench, query=ask, trajectory_f=trajectory
    )
