"""What an import of recorded runs of official size needs.

    python -m tests.benchmarks.bench_import_table --work FOLDER

Makes `metric_data` of one task with whole runs of 200 epochs and imports it in a process of its own. Durations and
losses are drawn at random, so that they compress as badly as measurements; rows are shuffled, stored whole and again in
three sides, and compressed as pandas does. JAHS-Bench-201 does not state its number of rows, but both archives have
1.65 GB for three tasks. Three tables of the default size take more than that, without any surrogate.
"""

from __future__ import annotations

import argparse
import gzip
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

N_TASKS = 3


def build(folder: Path, n_models: int) -> None:
    """Write raw and the three sides, shuffled and compressed."""
    columns = make_columns(n_models)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(columns["features", "epoch"]))
    for group, label in columns:
        if group == "labels" and label.endswith(("duration", "loss", "latency", "runtime")):
            columns[group, label] *= rng.uniform(1, 1 + 1e-6, len(order))
    folder.mkdir(parents=True)

    def write(name: str, rows: np.ndarray, labels: np.ndarray | None) -> None:
        table = {key: values[rows] for key, values in columns.items() if labels is None or key[0] != "sampling_index"}
        with gzip.open(folder / f"{name}.pkl.gz", "wb", compresslevel=6) as file:
            file.write(dumps(make_frame(table, labels), 4))

    write("raw", order, None)
    ends = (np.array([0, 0.7, 0.85, 1.0]) * len(order)).astype(int)
    for name, begin, end in zip(SIDES, ends[:-1], ends[1:], strict=True):
        write(name, order[begin:end], np.arange(begin, end))


def do_import(folder: Path) -> dict[str, float]:
    """Import in this process, and say what it took."""
    from jahs.published.table import import_table  # here, so that nothing else counts

    begin = time.process_time()
    out = folder.parent / "out"
    import_table(folder, out)
    n_bytes = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()
    return {"cpu_s": time.process_time() - begin, "peak_mb": int(peak[0]) / 1024, "out_mb": n_bytes / 1e6}


def main() -> None:
    """Make a table, import it, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="an empty or absent folder")
    parser.add_argument("--models", type=int, default=16_000, help="runs, of 200 rows each")
    parser.add_argument("--import-only", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.import_only:
        print(json.dumps(do_import(arguments.import_only)))
        return
    folder = arguments.work / TASK.name
    build(folder, arguments.models)
    size = sum(file.stat().st_size for file in folder.iterdir())
    command = [sys.executable, "-m", __spec__.name, "--work", str(arguments.work), "--import-only", str(folder)]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(f"{arguments.models * TASK.max_epoch} rows, {N_TASKS * size / 1e9:.2f} GB for {N_TASKS} tasks")
    print(f"import: {result['cpu_s']:.1f} s of CPU, {result['peak_mb']:.0f} MB of memory", end=", ")
    print(f"{result['out_mb']:.0f} MB kept")
    shutil.rmtree(arguments.work)


if __name__ == "__main__":
    main()
