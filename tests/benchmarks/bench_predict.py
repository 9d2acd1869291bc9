"""How fast `bench.predict` and a refit answer, beside a query of the same metrics.

One process, CPU time, alternating blocks over different configs, warm; printed are medians over the blocks. Required:
`bench.predict` takes at most ten times as long as a query, and a query of `Benchmark(refit=0)` about as long.

    python -m tests.benchmarks.bench_predict
    python -m tests.benchmarks.bench_predict --release RELEASE --rounds 3
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import jahs

N_CONFIGS = 300
N_MANY = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="fashion_mnist_mini")
    parser.add_argument("--release", type=Path, help="with refits; the embedded one by default")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    bench, refit = (jahs.Benchmark(given.task, release=given.release, refit=k) for k in (None, 0))
    configs = bench.sample(N_CONFIGS, seed=0)
    columns = bench.space.sample_columns(N_MANY, seed=0)
    print(bench)
    for metrics in (["valid_acc"], ["train_acc", "valid_acc", "test_acc"]):
        ask: dict[str, Callable[[], object]] = {
            "query": lambda m=metrics: [bench.query(config, metrics=m) for config in configs],
            "query of a refit": lambda m=metrics: [refit.query(config, metrics=m) for config in configs],
            "predict": lambda m=metrics: [bench.predict(config, metrics=m) for config in configs],
            "predict, total_sd": lambda m=metrics: [bench.predict(config, metrics=m).total_sd for config in configs],
            "predict, a quantile": lambda m=metrics: [bench.predict(c, metrics=m).quantile(0.95) for c in configs],
        }
        seconds = measure(ask, given.rounds)
        print(f"\n{', '.join(metrics)}: one config at a time")
        for name, value in seconds.items():
            print(f"{name:22s} {1e6 * value / N_CONFIGS:8.1f} us  {value / seconds['query']:5.1f} x query")
        many = measure(
            {
                "query_many": lambda m=metrics: bench.query_many(columns, metrics=m),
                "predict, total_sd": lambda m=metrics: bench.predict(columns, metrics=m).total_sd,
            },
            max(given.rounds // 3, 1),
        )
        print(f"{N_MANY:,} configs at once")
        for name, value in many.items():
            print(f"{name:22s} {1e6 * value / N_MANY:8.2f} us  {value / many['query_many']:5.1f} x query_many")


def measure(ask: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each, in alternating blocks, after a warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in ask}
    for act in ask.values():
        act()
    for _ in range(rounds):
        for name, act in ask.items():
            begin = time.process_time()
            act()
            seconds[name].append(time.process_time() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


if __name__ == "__main__":
    main()
