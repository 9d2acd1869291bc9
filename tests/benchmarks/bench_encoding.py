"""How long the space, the encoding and the ids take: `python tests/benchmarks/bench_encoding.py`.

CPU time of this process, the smallest of some repetitions; validation is included everywhere.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import numpy as np

import jahs
from jahs.spaces.columns import rows

N_CONFIGS = 100_000
N_SINGLE = 2_000


def cpu_time_s(function: Callable[[], object], *, repeats: int) -> float:
    """Return the smallest CPU time of one call."""
    times = []
    for _ in range(repeats):
        start = time.process_time_ns()
        function()
        times.append(time.process_time_ns() - start)
    return min(times) * 1e-9


def main() -> None:
    """Print one line per operation."""
    space = jahs.space()
    columns = space.sample_columns(N_CONFIGS, seed=0)
    epochs = np.random.default_rng(0).integers(1, 201, N_CONFIGS)
    configs = rows(columns)
    X = jahs.encode(columns, epochs)
    some = configs[:N_SINGLE]
    print(f"numpy {np.__version__}, Python {platform.python_version()}, one core")
    many: dict[str, Callable[[], object]] = {
        "sample_columns": lambda: space.sample_columns(N_CONFIGS, seed=0),
        "sample": lambda: space.sample(N_CONFIGS, seed=0),
        "encode columns": lambda: jahs.encode(columns, epochs),
        "encode dicts": lambda: jahs.encode(configs, epochs),
        "decode_columns": lambda: jahs.decode_columns(X),
        "decode": lambda: jahs.decode(X),
        "config_ids of columns": lambda: jahs.config_ids(columns),
        "validate_many": lambda: jahs.validate_many(configs),
    }
    for name, function in many.items():
        print(f"{name:24} {1e3 * cpu_time_s(function, repeats=5):8.1f} ms for {N_CONFIGS:,} configs")
    single: dict[str, Callable[[], object]] = {
        "encode_one": lambda: [jahs.encode_one(config, 50) for config in some],
        "validate": lambda: [jahs.validate(config) for config in some],
        "config_id": lambda: [jahs.config_id(config) for config in some],
        "neighbors": lambda: [space.neighbors(config) for config in some],
    }
    for name, function in single.items():
        print(f"{name:24} {1e6 / N_SINGLE * cpu_time_s(function, repeats=9):8.2f} us for one config")


if __name__ == "__main__":
    main()
