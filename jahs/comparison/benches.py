"""Benchmarks of comparisons, their releases and their unit of time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from jahs.comparison.logs import Floats
from jahs.queries.benchmark import Benchmark
from jahs.release import Release, read_release
from jahs.release.models import REFITS
from jahs.spaces.configs import Config
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space

N_RANDOM: Final = 10_000
"""Random configs whose mean runtime is the unit of time, as in JAHS-Bench-201's Table 8."""


@functools.lru_cache(maxsize=24)
def open_benchmark(task: str, release: Path | None, *, refit: int | None = None, model: str | None = None) -> Benchmark:
    """Return the benchmark of a task; it is opened once per process."""
    return Benchmark(task, release=release, refit=refit, model=model)


def release_of(bench: Benchmark) -> Release:
    """Return the release behind a benchmark."""
    assert bench.release is not None, "comparisons query releases, never live trainings"
    return read_release(bench.release)


def refits_of(bench: Benchmark, metric: str) -> tuple[Benchmark, ...]:
    """Return the refits of a benchmark's release; none if it has none of the metric."""
    release = release_of(bench)
    n_refits = release.refits.n_refits if release.has(REFITS) and metric in release.refits.metrics else 0
    return tuple(open_benchmark(bench.task.name, release.path, refit=k) for k in range(n_refits))


def errors_by_refits(bench: Benchmark, configs: Sequence[Config]) -> Floats:
    """Return the mean validation error (%) of each config over the refits; NaN without refits.

    A search on the released models did not see the refits, so errors that only these models make do not count.
    """
    is_released = bench.refit is None and bench.model is None
    refits = refits_of(bench, "valid_acc") if configs and is_released else ()
    if not refits:
        return np.full(len(configs), np.nan)
    answers = [refit.query_many(configs, metrics=("valid_acc",))["valid_acc"] for refit in refits]
    return np.asarray(100.0 - np.mean(answers, axis=0))


def mean_runtime(bench: Benchmark) -> float:
    """Return the mean runtime in seconds of a full evaluation over random configs at full size."""
    columns = space(fixed=LARGEST).sample_columns(N_RANDOM, seed=0)
    return float(bench.query_many(columns, metrics=("runtime",))["runtime"].mean())
