"""How long a million simulated evaluations take: `python -m tests.benchmarks.bench_simulate`.

Random search on four workers, as an optimiser that is asked and told. "formula" answers from numpy alone: it shows the
simulation's own time; "release" answers from the forests of a made-up release. CPU time of this process.
"""

from __future__ import annotations

import argparse
import platform
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from experiments.optimizers import make
from jahs.simulate import Simulation
from tests.fake_benchmark import FakeBenchmark

METRICS = ("valid_acc", "runtime")


def open_formula(_folder):
    return FakeBenchmark(max_epoch=12)


def open_release(folder):
    import jahs
    from tests.releases import make_release

    return jahs.Benchmark(
        "fashion_mnist_mini", release=make_release(folder / "release", task="fashion_mnist_mini", n_trees=500, depth=6)
    )


def main() -> None:
    """Print one line per benchmark, with and without a log."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--bench", nargs="+", choices=["formula", "release"], default=["formula", "release"])
    args = parser.parse_args()
    print(f"numpy {np.__version__}, Python {platform.python_version()}, {args.workers} simulated workers, one core")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.bench:
            bench = {"formula": open_formula, "release": open_release}[name](Path(folder))
            bench.query(bench.sample(seed=0))  # opens what is opened at the first query
            for log in (None, Path(folder) / f"{name}.jsonl"):
                simulation = Simulation(bench, args.workers, n_trials=args.trials, metrics=METRICS, log=log)
                begin = time.process_time()
                n_trials = sum(1 for _ in simulation.stream(make("random_search", bench, seed=0)))
                seconds = time.process_time() - begin
                size = 0 if log is None else log.stat().st_size / 2**20
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
                print(
                    f"{name:8} {'log' if log else 'no log':6} {n_trials:9,} evaluations {seconds:7.1f} s CPU "
                    f"{1e6 * seconds / n_trials:6.1f} us each  log {size:6.1f} MiB  peak memory {memory:6.0f} MiB"
                )


if __name__ == "__main__":
    main()
