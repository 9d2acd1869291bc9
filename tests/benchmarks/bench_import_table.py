"""What an import of recorded runs needs, by the number of their rows.

    python -m tests.benchmarks.bench_import_table --models 6750 13500 --work FOLDER

Makes `metric_data` of one task with whole runs of 200 epochs, its rows shuffled and on three sides, and imports it in a
process of its own. JAHS-Bench-201 states no number of rows; 270,000 runs are the most that its protocol can have given,
and what is printed for them goes on in a straight line from the two largest sizes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from tests.pickle_writer import dumps
from tests.published_files import make_frame
from tests.published_tables import SIDES, TASK, make_columns

MOST_MODELS = 270_000


def build(folder: Path, n_models: int) -> None:
    """Write raw and the three sides, shuffled, not compressed."""
    columns = make_columns(n_models)
    order = np.random.default_rng(0).permutation(len(columns["features", "epoch"]))
    folder.mkdir(parents=True)

    def write(name: str, rows: np.ndarray, labels: np.ndarray | None) -> None:
        table = {key: values[rows] for key, values in columns.items() if labels is None or key[0] != "sampling_index"}
        (folder / f"{name}.pkl.gz").write_bytes(dumps(make_frame(table, labels), 4))

    write("raw", order, None)
    ends = (np.array([0, 0.7, 0.85, 1.0]) * len(order)).astype(int)
    for name, begin, end in zip(SIDES, ends[:-1], ends[1:], strict=True):
        write(name, order[begin:end], np.arange(begin, end))


def do_import(folder: Path) -> dict[str, float]:
    """Import in this process, and say what it took."""
    from jahs.published.table import import_table  # here, so that nothing else counts

    begin = time.process_time()
    import_table(folder, folder.parent / "out")
    peaks = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()
    return {"cpu_s": time.process_time() - begin, "peak_mb": int(peaks[0]) / 1024}


def main() -> None:
    """Measure each size, print a line for each, and one for the most there can be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="an empty or absent folder")
    parser.add_argument("--models", type=int, nargs="+", default=[6750, 13_500], help="runs, of 200 rows each")
    parser.add_argument("--import-only", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.import_only:
        print(json.dumps(do_import(arguments.import_only)))
        return
    found: list[tuple[int, float]] = []
    for n_models in sorted(arguments.models):
        folder = arguments.work / str(n_models) / TASK.name
        build(folder, n_models)
        command = [sys.executable, "-m", __spec__.name, "--work", str(arguments.work), "--import-only", str(folder)]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(
            f"{n_models * TASK.max_epoch} rows: {result['cpu_s']:.1f} s of CPU, {result['peak_mb']:.0f} MB", flush=True
        )
        found.append((n_models, result["peak_mb"]))
        shutil.rmtree(folder.parent)
    if len(found) > 1:
        (n, mb), (more, more_mb) = found[-2:]
        most = more_mb + (more_mb - mb) / (more - n) * (MOST_MODELS - more)
        print(f"{MOST_MODELS * TASK.max_epoch} rows, in a straight line: {most:.0f} MB")


if __name__ == "__main__":
    main()
