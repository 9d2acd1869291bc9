"""How far trainings by the C engine end from those by torch, for the same configs and seeds.

The folders hold runs of both devices; the spread between two seeds of torch is printed beside the differences.

Run: python -m tests.benchmarks.engine_twins data/candidates/native/runs data/cifar10_mini/runs
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from jahs.files.runs import last_rows, read_runs
from jahs.files.tables import concatenate, take
from jahs.schema import RUN_COLUMNS
from workshop.machine import NATIVE


def main(folders) -> int:
    runs = concatenate([last_rows(read_runs(Path(folder))) for folder in folders], RUN_COLUMNS)
    by_device = {device: take(runs, runs["device"] == device) for device in ("cpu", NATIVE)}
    keys = {
        device: {
            key: row for row, key in enumerate(zip(rows["config_id"].tolist(), rows["seed"].tolist(), strict=True))
        }
        for device, rows in by_device.items()
    }
    both = sorted(keys["cpu"].keys() & keys[NATIVE].keys())
    ours, torchs = (
        take(by_device[device], np.array([keys[device][key] for key in both])) for device in (NATIVE, "cpu")
    )
    gap = ours["valid_acc"].astype(np.float64) - torchs["valid_acc"]
    standard_error = gap.std(ddof=1) / len(gap) ** 0.5
    print(
        f"{len(both)} configs and seeds, valid_acc of engine minus torch: mean {gap.mean():+.2f} (standard error "
        f"{standard_error:.2f}), standard deviation {gap.std(ddof=1):.2f}, {(gap == 0).sum()} equal"
    )
    print(f"CPU seconds of torch / engine, all together: {torchs['runtime'].sum() / ours['runtime'].sum():.1f}")
    pairs = [(keys["cpu"][i, 1], keys["cpu"][i, 2]) for i, seed in keys["cpu"] if seed == 1 and (i, 2) in keys["cpu"]]
    one, other = by_device["cpu"]["valid_acc"][np.array(pairs)].astype(np.float64).T
    spread = (one - other).std(ddof=1)
    print(f"two seeds of torch, {len(pairs)} configs: standard deviation of the difference {spread:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
