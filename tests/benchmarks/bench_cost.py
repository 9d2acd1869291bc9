"""How many configs per second of one core's CPU time `jahs.models.cost` takes from encoded arrays.

Run: python -m tests.benchmarks.bench_cost
"""

from __future__ import annotations

import time

import numpy as np

from jahs.models.cost import n_macs, n_params
from jahs.schema import COLUMNS, OPS
from jahs.tasks.definitions import TASKS

N_CONFIGS = 1_000_000
N_REPEATS = 7


def main() -> int:
    rng = np.random.default_rng(0)
    X = rng.random((N_CONFIGS, len(COLUMNS)), dtype=np.float32)
    for key, values in {"N": [1, 3, 5], "W": [4, 8, 16], "Resolution": [0.25, 0.5, 1.0]}.items():
        X[:, COLUMNS.index(key)] = rng.choice(values, N_CONFIGS)
    for key in OPS:
        X[:, COLUMNS.index(key)] = rng.integers(0, 5, N_CONFIGS)
    times: dict[str, list[float]] = {"n_params": [], "n_macs": [], "both": []}
    for _ in range(N_REPEATS):
        start = time.process_time()
        n_params(X, TASKS["cifar10"])
        middle = time.process_time()
        n_macs(X, TASKS["cifar10"])
        end = time.process_time()
        for name, seconds in zip(times, (middle - start, end - middle, end - start), strict=True):
            times[name].append(seconds)
    for name, seconds in times.items():
        median = sorted(seconds)[N_REPEATS // 2]
        print(f"{name}: {N_CONFIGS / median:,.0f} configs/s (median of {N_REPEATS}, {median:.3f} s of CPU time)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
