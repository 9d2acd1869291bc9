"""Benchmarks of comparisons, their releases and their unit of time."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

from jahs.models.forest.engines import EngineKind
from jahs.queries.benchmark import Benchmark
from jahs.queries.exhaustive import LARGEST
from jahs.release import Release, read_release
from jahs.spaces.space import space

N_RANDOM: Final = 10_000
"""Random configs whose mean runtime is the unit of time, as in JAHS-Bench-201's Table 8."""


@functools.lru_cache(maxsize=24)
def open_benchmark(
    task: str, release: Path | None, engine: EngineKind = "auto", *, refit: int | None = None, model: str | None = None
) -> Benchmark:
    """Return the benchmark of a task; it is opened once per process."""
    return Benchmark(task, release=release, engine=engine, refit=refit, model=model)


def release_of(bench: Benchmark) -> Release:
    """Return the release behind a benchmark."""
    assert bench.release is not None, "comparisons query releases, never live trainings"
    return read_release(bench.release)


def mean_runtime(bench: Benchmark) -> float:
    """Return the mean runtime in seconds of a full evaluation over random configs at full size."""
    columns = space(fixed=LARGEST).sample_columns(N_RANDOM, seed=0)
    return float(bench.query_many(columns, metrics=("runtime",))["runtime"].mean())
