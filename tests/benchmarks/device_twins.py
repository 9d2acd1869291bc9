"""How far torch on the CPU, the C engine and a GPU end from each other, in trainings of the same configs and seeds.

The folders hold runs of several devices; the spread between two seeds of torch is printed beside the differences.

Run: python -m tests.benchmarks.device_twins data/candidates/{native,cuda}/runs data/cifar10_mini/runs
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np

from jahs.files.runs import read_runs
from jahs.files.tables import concatenate
from jahs.schema import RUN_COLUMNS
from workshop.machine import NATIVE
from workshop.measured import last_rows

METRICS = ("valid_acc", "test_acc", "train_acc", "valid_loss")


def main(folders) -> int:
    runs = concatenate([last_rows(read_runs(Path(folder))) for folder in folders], RUN_COLUMNS)
    rows = {device: _by_run(runs, device) for device in sorted(set(runs["device"].tolist()))}
    torch_rows = rows["cpu"]
    for other, device in itertools.combinations(sorted(rows, key=lambda name: (name != "cpu", name != NATIVE)), 2):
        shared = sorted(rows[other].keys() & rows[device].keys())
        places = [[rows[each][key] for key in shared] for each in (device, other)]
        for metric in METRICS if len(shared) > 1 else ():
            gap = np.subtract(*(runs[metric][place].astype(np.float64) for place in places))
            print(
                f"{device} minus {other}, {len(shared)} configs and seeds, {metric}: mean {gap.mean():+.3f} (standard "
                f"error {gap.std(ddof=1) / len(gap) ** 0.5:.3f}), standard deviation {gap.std(ddof=1):.3f}, median "
                f"{np.median(gap):+.3f}"
            )
        if (other, device) == ("cpu", NATIVE) and shared:
            ours, torchs = (runs["runtime"][place].sum() for place in places)
            print(f"CPU seconds of torch / engine, all together: {torchs / ours:.1f}")
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
