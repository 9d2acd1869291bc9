"""What a draw of noise costs: `python -m tests.benchmarks.bench_noise`; microseconds of CPU, the least of several."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from jahs.spaces.columns import config_ids
from jahs.spaces.encoding import encode
from jahs.spaces.space import space
from tests.jahs.models.noise_models import ACCURACIES, noise_model

N_ROWS = 100_000


def cpu_us(call: Callable[[], object], n_calls: int, *, n_rounds: int = 7) -> float:
    """Microseconds of CPU of one call: the least mean of several rounds."""
    found = []
    for _ in range(n_rounds):
        started = time.process_time()
        for _ in range(n_calls):
            call()
        found.append((time.process_time() - started) / n_calls * 1e6)
    return min(found)


def main() -> None:
    model = noise_model()
    configs = space().sample_columns(N_ROWS, seed=0)
    X, ids = encode(configs, np.arange(N_ROWS) % 12 + 1), config_ids(configs)
    chance = np.random.default_rng(0)
    means = {name: chance.uniform(10, 90, N_ROWS) for name in (*ACCURACIES, "runtime", "latency")}
    model.draw(means, X, ids, 0)  # builds the table of quantiles
    row, one_id = X[7].tolist(), int(ids[7])
    single = {name: values.item(7) for name, values in means.items()}
    first = {name: values[7:8] for name, values in means.items()}
    print(f"100,000 rows, all metrics: {cpu_us(lambda: model.draw(means, X, ids, 3), 1) / 1e3:.1f} ms")
    print(f"one row, all metrics, as numbers: {cpu_us(lambda: model.draw_one(single, row, one_id, 3), 2000):.1f} us")
    one = {"valid_acc": 80.0}
    print(f"one row, valid_acc, as numbers: {cpu_us(lambda: model.draw_one(one, row, one_id, 3), 2000):.1f} us")
    arrays = cpu_us(lambda: model.draw(first, X[7:8], ids[7:8], 3), 2000)
    print(f"one row, all metrics, as arrays: {arrays:.1f} us")
    print(f"for comparison, sum(range(1000)): {cpu_us(lambda: sum(range(1000)), 2000):.1f} us")


if __name__ == "__main__":
    main()
