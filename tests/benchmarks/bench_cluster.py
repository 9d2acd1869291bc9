"""Measure how many empty jobs one local Dask scheduler passes on, and how many runs one folder records, in a second.

python -m tests.benchmarks.bench_cluster [--seconds 10]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch  # noqa: F401  # workers of a collector have it, too

from pipeline.runs import RunsFolder
from tests.dask_cluster import DaskCluster
from tests.pipeline.test_runs import FACTS, run_rows
from workshop.cluster import Cluster


def empty(number: int) -> int:
    """Do nothing."""
    return number


def jobs_per_second(seconds: float, n_workers: int = 2) -> float:
    """Pass empty jobs through one scheduler, two ahead for each worker, as the collector does."""
    with DaskCluster() as local:
        local.start_scheduler()
        for _ in range(n_workers):
            local.start_worker()
        cluster = Cluster(local.address)
        try:
            cluster.submit(empty, 0).result(timeout=30)  # the first worker is there
            waiting = [cluster.submit(empty, i) for i in range(2 * n_workers)]
            n_done, start = 0, time.monotonic()
            while time.monotonic() - start < seconds:
                waiting.pop(0).result(timeout=30)
                waiting.append(cluster.submit(empty, n_done))
                n_done += 1
            return n_done / (time.monotonic() - start)
        finally:
            cluster.close()


def runs_per_second(seconds: float) -> float:
    """Claim, check and record runs in one folder from one process."""
    with tempfile.TemporaryDirectory() as name:
        folder = RunsFolder.open_or_make(Path(name) / "runs", facts=FACTS, digest="p1")
        n_done, start = 0, time.monotonic()
        while time.monotonic() - start < seconds:
            with folder.claim(n_done, 0):
                folder.write_run(n_done, 0, run_rows(n_done))  # type: ignore[no-untyped-call]  # tests have no types
            n_done += 1
        return n_done / (time.monotonic() - start)


def main() -> None:
    """Print both rates, and how busy the machine was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="for each of the two, at most 20")
    seconds = min(parser.parse_args().seconds, 20.0)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    print(f"empty jobs per second, one scheduler, two workers: {jobs_per_second(seconds):.0f}")
    print(f"runs recorded per second, one folder, one process: {runs_per_second(seconds):.0f}")


if __name__ == "__main__":
    main()
