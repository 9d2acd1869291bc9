"""How far the C engine and a GPU end from torch on the CPU, in trainings of the same configs with the same seeds.

The folders hold runs of several devices; the spread between two seeds of torch is printed beside the differences.

Run: python -m tests.benchmarks.device_twins data/candidates/{native,cuda}/runs data/cifar10_mini/runs
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from jahs.files.runs import last_rows, read_runs
from jahs.files.tables import concatenate
from jahs.schema import RUN_COLUMNS
from workshop.machine import NATIVE

METRICS = ("valid_acc", "test_acc", "train_acc", "valid_loss")


def main(folders) -> int:
    runs = concatenate([last_rows(read_runs(Path(folder))) for folder in folders], RUN_COLUMNS)
    rows = {device: _by_run(runs, device) for device in sorted(set(runs["device"].tolist()))}
    torch_rows = rows.pop("cpu")
    for device, ours in rows.items():
        shared = sorted(torch_rows.keys() & ours.keys())
        for metric in METRICS if len(shared) > 1 else ():
            mine, torchs = (runs[metric][[of[key] for key in shared]].astype(np.float64) for of in (ours, torch_rows))
            gap = mine - torchs
            print(
                f"{device} minus torch on the CPU, {len(shared)} configs and seeds, {metric}: mean {gap.mean():+.3f} "
                f"(standard error {gap.std(ddof=1) / len(gap) ** 0.5:.3f}), standard deviation {gap.std(ddof=1):.3f}"
            )
        if device == NATIVE and shared:
            times = [runs["runtime"][[of[key] for key in shared]].sum() for of in (torch_rows, ours)]
            print(f"CPU seconds of torch / engine, all together: {times[0] / times[1]:.1f}")
    pairs = [(row, torch_rows[i, 2]) for (i, seed), row in torch_rows.items() if seed == 1 and (i, 2) in torch_rows]
    gap = np.subtract(*runs["valid_acc"][np.array(pairs)].astype(np.float64).T)
    print(f"two seeds of torch, {len(pairs)} configs: standard deviation of valid_acc {gap.std(ddof=1):.2f}")
    return 0


def _by_run(runs, device):
    """Return the row of each (config_id, seed) that the device trained."""
    keys = zip(runs["config_id"].tolist(), runs["seed"].tolist(), runs["device"].tolist(), strict=True)
    return {(identity, seed): row for row, (identity, seed, by) in enumerate(keys) if by == device}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
