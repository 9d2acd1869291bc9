"""Opening what answers, and what a study notes about it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jahs
from experiments.studies.study import FULL_SIZES
from jahs.release import read_release

__all__ = ["ReleaseFacts", "mean_runtime", "open_benchmark", "release_facts"]

N_RANDOM: Final = 10_000
"""Random configs whose mean runtime is the unit of time, as in JAHS-Bench-201's Table 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFacts:
    """What a study notes about a release.

    Attributes:
        sha256: of its manifest, which stands for every byte of it.
        answers_as: the same, and of the releases before it that give the same answers.
        version, source: for people.
        has_noise, has_table: whether it can draw training noise, and has the recorded runs.
    """

    sha256: str
    answers_as: frozenset[str]
    version: str
    source: str
    has_noise: bool
    has_table: bool


@functools.lru_cache(maxsize=8)
def open_benchmark(task: str, release: Path | None) -> jahs.Benchmark:
    """Return the benchmark of a task, once for each process."""
    return jahs.Benchmark(task, release=release)


def release_facts(bench: jahs.Benchmark) -> ReleaseFacts:
    """Return what a study notes about the release behind a benchmark."""
    assert bench.release is not None, "studies ask releases, never live trainings"
    release = read_release(bench.release)
    return ReleaseFacts(
        sha256=release.sha256,
        answers_as=release.answers_as,
        version=str(release.facts.get("version")),
        source=str(release.facts.get("source")),
        has_noise=release.has("noise.json"),
        has_table=release.has("table.npz"),
    )


def mean_runtime(bench: jahs.Benchmark) -> float:
    """Mean runtime in seconds of a full evaluation of random configs at full size."""
    columns = jahs.space(fixed=FULL_SIZES).sample_columns(N_RANDOM, seed=0)
    return float(bench.query_many(columns, metrics=("runtime",))["runtime"].mean())
