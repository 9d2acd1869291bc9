"""How long all metrics take to fit on 100,000 rows, and in how much memory: `python -m tests.benchmarks.bench_fit`.

Rows are made up, as many as 2,800 configs with three seeds in every tenth and 30 epochs give: 100,000 for each
accuracy, one per run for `runtime`, one per config for `latency`. Every forest has 500 trees of depth 6, each fit one
thread. CPU time says what the work costs, wall time what one waits on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np
import psutil

import jahs
from jahs.models.features import FeatureBuilder
from jahs.tasks.definitions import TASKS
from surrogate.data.rows import Rows
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import fit_each
from surrogate.models.model import default_features

N_CONFIGS = 2_800
N_EPOCHS = 30
ACCURACIES = ("train_acc", "valid_acc", "test_acc")
TASK = TASKS["cifar10"]


def made_up(n_configs: int, *, n_epochs: int) -> dict[str, Rows]:
    """Rows of every metric that depend on the config and on noise, so that trees grow to their full depth."""
    rng = np.random.default_rng(0)
    columns = jahs.space().sample_columns(n_configs, seed=0)
    n_runs = np.where(np.arange(n_configs) % 10 == 0, 3, 1)
    config = np.repeat(np.arange(n_configs), n_runs)
    seed = np.arange(len(config)) - np.repeat(np.cumsum(n_runs) - n_runs, n_runs)
    by_run = {name: values[config] for name, values in columns.items()}
    X = jahs.encode(
        {name: values.repeat(n_epochs) for name, values in by_run.items()},
        np.tile(np.arange(1, n_epochs + 1), len(config)),
    )
    ids = config.astype(np.uint64)
    hidden = FeatureBuilder(default_features("valid_acc"), TASK).build(X).astype(np.float64)
    score = (np.log1p(np.abs(hidden)) @ rng.normal(size=hidden.shape[1])) / 20 + rng.normal(0, 0.3, len(X))
    accuracy = 100 / (1 + np.exp(-score))
    rows = {
        metric: Rows(
            X=X, y=np.clip(accuracy + shift, 0, 100), config_id=ids.repeat(n_epochs), seed=seed.repeat(n_epochs)
        )
        for shift, metric in enumerate(ACCURACIES)
    }
    last = X[:, -1] == n_epochs
    seconds = np.exp(score[last])
    rows["runtime"] = Rows(X=X[last], y=seconds, config_id=ids, seed=seed)
    rows["latency"] = rows["runtime"].take(seed == 0)
    return rows


def cpu_seconds() -> float:
    """CPU seconds of this process and of those that it started, living or ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(t.user + t.system for t in living)


def most_resident() -> float:
    """Largest resident memory of this process and of its living workers together, in GB; shared pages count twice."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peaks = [Path(f"/proc/{process.pid}/status") for process in psutil.Process().children(recursive=True)]
    lines = [line for path in peaks for line in path.read_text().splitlines() if line.startswith("VmHWM")]
    return (peak + sum(int(line.split()[1]) * 1024 for line in lines)) / 1e9


def main() -> None:
    """Print one line per number of processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 1])
    given = parser.parse_args()
    rows = made_up(N_CONFIGS, n_epochs=N_EPOCHS)
    n_rows = {metric: len(metric_rows) for metric, metric_rows in rows.items()}
    print(f"xgboost, Python {platform.python_version()}, {os.cpu_count()} cores; rows: {n_rows}")
    for workers in given.workers:
        start, cpu = time.perf_counter(), cpu_seconds()
        fit_each(rows, TASK, dict.fromkeys(rows, ForestSettings()), workers=workers)
        took, cpu = time.perf_counter() - start, cpu_seconds() - cpu
        print(
            f"all metrics, {workers} processes: {took:6.1f} s, {cpu:6.1f} s of CPU, "
            f"{cpu / workers:.1f} s of CPU per process; {most_resident():.2f} GB resident"
        )


if __name__ == "__main__":
    main()
