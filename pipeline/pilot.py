"""Compare recorded runs of a laptop task with the real landscape: do they rank configs in the same order?

    python -m pipeline.pilot --runs data/TASK/runs --landscape releases/cifar10 --save
    python -m pipeline.pilot --runs data/TASK/runs --landscape releases/cifar10 --cells CSV --write-cells cells.jsonl

It reports on the uniform configs of a folder (from number `--start` on, if given), and with --save writes the report
beside the folder for `pipeline.describe`. To try a protocol before collecting, write it into a task file and collect
some uniform configs: `python -m pipeline.collect --task FILE.json --start 1107000 --stop 1107081 --pairs 30`. Unknown
and undefined values are null.

`--cells` compares runs of the source `cells` with NAS-Bench-201's accuracies, CSV. `--write-cells` writes the list that
`python -m pipeline.collect --configs cells.jsonl --source cells` trains: full size, default hyperparameters.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from jahs.errors import InvalidArgument
from jahs.files.hashing import sha256_file
from jahs.files.runs import is_timed, read_configs, read_profile, read_protocol, read_runs, timing_machine
from jahs.files.sealed_json import sealed_text
from jahs.files.tables import Table, take
from jahs.queries.benchmark import Benchmark
from jahs.schema import CONFIG_KEYS, OPS
from workshop.command import new_parser, run_command
from workshop.folders import write_text
from workshop.measured import last_rows, rows_of, trained_with_both
from workshop.ranks import kendall_tau
from workshop.real_landscape import (
    N_CELLS,
    cell_configs,
    check_path,
    compare_cells,
    compare_with_landscape,
    known,
    read_cell_accuracies,
)
from workshop.resampling import bootstrap_agreement

_SEEDS: Final = (0, 1)
_N_RESAMPLES: Final = 2000
_CELLS: Final = "cells"  # the source of NAS-Bench-201 cells
_CELL_KEY: Final = 201
_N_CELLS: Final = 60  # cells of a list

GATE: Final = MappingProxyType({"rho": 0.85, "resolution": 0.5, "seed_tau": 0.82, "core_seconds": 60.0})
"""Requirements of a protocol: rho at epoch 200, share of the real Resolution effect, tau of seeds, mean cost."""


def read_last_epochs(path: Path) -> Table:
    """Read the last epoch of every run with its config; `runtime` is NaN except on one processor."""
    runs, configs = read_runs(path), read_configs(path)
    runs["runtime"] = np.where(is_timed(runs, timing_machine(runs, read_profile(path))), runs["runtime"], np.nan)
    last = last_rows(runs)
    return {
        **rows_of(configs, last["config_id"]),
        **last,
        "valid_acc": last["valid_acc"].astype(np.float64),
        "runtime": last["runtime"].astype(np.float64),
    }


def write_cells(path: Path) -> None:
    """Write a list of uniform cells, without repetition, at full size with default hyperparameters."""
    numbers = np.random.Philox(key=_CELL_KEY).random_raw(4 * _N_CELLS + 16) % np.uint64(N_CELLS)
    configs = cell_configs([*dict.fromkeys(numbers.tolist())][:_N_CELLS])
    write_text(path, "".join(f"{json.dumps(config)}\n" for config in configs))


def report(measured: Table, landscape: Benchmark) -> dict[str, Any]:  # Any: JSON
    """Return agreement with the real landscape (one training of each uniform config), between seeds, cost, the gate."""
    uniform = take(measured, measured["source"] == "uniform")
    first = take(uniform, uniform["seed"] == _SEEDS[0])
    finished = take(first, first["status"] == "finished")
    facts = compare_with_landscape({key: finished[key] for key in CONFIG_KEYS}, finished["valid_acc"], landscape)
    facts["n_diverged_runs"] = int(np.sum(uniform["status"] != "finished"))
    facts["seeds"] = seed_agreement(uniform)
    cost = first["runtime"][np.isfinite(first["runtime"])]
    facts["mean_cpu_time_s"] = float(cost.mean()) if len(cost) else None
    facts["gate"] = _gate(facts)
    return facts


def seed_agreement(measured: Table) -> dict[str, float | None]:
    """Return tau between the first two seeds with its 95 % bootstrap interval, and the mean difference in points.

    All values but the number of configs are null if fewer than two configs finished with both seeds.
    """
    x, y = (runs["valid_acc"] for runs in trained_with_both(measured, _SEEDS))
    if len(x) < 2:
        return {"n_configs": len(x), **dict.fromkeys(("tau", "tau_low", "tau_high", "mean_abs_difference"))}
    tau = bootstrap_agreement(kendall_tau, x, y, n_resamples=_N_RESAMPLES)
    return {
        "n_configs": len(x),
        "tau": known(tau.value),
        "tau_low": known(tau.low),
        "tau_high": known(tau.high),
        "mean_abs_difference": float(np.abs(x - y).mean()),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = new_parser(
        "pipeline.pilot",
        "Compare recorded runs with the real landscape.",
        example="--runs data/cifar10_mini/runs --landscape releases/cifar10",
        more="`jahs import` makes the landscape of JAHS-Bench-201's surrogates.",
    )
    parser.add_argument("--runs", type=Path, metavar="FOLDER", required=True, help="the recorded runs")
    parser.add_argument("--landscape", type=Path, required=True, help="imported release of JAHS-Bench-201's cifar10")
    parser.add_argument("--start", type=int, help="number of the first config (default: all configs)")
    parser.add_argument("--cells", type=Path, metavar="CSV", help="NAS-Bench-201's accuracies, to compare cells with")
    parser.add_argument("--write-cells", type=Path, metavar="FILE", help="write a list of cells to train, JSON lines")
    parser.add_argument("--save", action="store_true", help="save the report beside FOLDER")
    args = parser.parse_args(argv)
    return run_command("pipeline.pilot", lambda: _answer(args))


def _answer(args: argparse.Namespace) -> dict[str, Any]:  # Any: JSON
    landscape = Benchmark("cifar10", release=args.landscape)
    published = None if args.cells is None else read_cell_accuracies(args.cells)
    measured = read_last_epochs(args.runs)
    if args.start is not None:
        number = measured["config_index"]
        if not (number >= args.start).any():
            raise InvalidArgument(f"no config has a number from {args.start} on; lower --start")
        measured = take(measured, (number < 0) | (number >= args.start))
    facts = report(measured, landscape)
    is_cell = (measured["source"] == _CELLS) & (measured["status"] == "finished") & (measured["seed"] == 0)
    cells = take(measured, is_cell)
    if published is not None and len(cells["seed"]):
        ops = np.stack([cells[key] for key in OPS], axis=1)
        facts["cells"] = compare_cells(ops, cells["valid_acc"], published)
    if args.write_cells is not None:
        write_cells(args.write_cells)
    if args.save:
        protocol = read_protocol(args.runs).digest
        digests = {"landscape": sha256_file(args.landscape / "manifest.json"), "protocol": protocol}
        write_text(check_path(args.runs), sealed_text({**facts, **digests}))
    return facts


def _gate(facts: Mapping[str, Any]) -> dict[str, bool | None]:  # Any: JSON
    """Return which conditions of `GATE` hold; None where a figure is not known."""
    rho = {epoch: agreement["rho"] for epoch, agreement in facts["epochs"].items()}
    ratio, tau, cost = facts["resolution"]["ratio"], facts["seeds"]["tau"], facts["mean_cpu_time_s"]
    is_closest = None if None in rho.values() else rho["200"] > max(rho["20"], rho["3"])
    return {
        "rho at epoch 200": None if rho["200"] is None else rho["200"] >= GATE["rho"],
        "rho at epoch 200 above rho at 20 and 3": is_closest,
        "Resolution effect": None if ratio is None else ratio >= GATE["resolution"],
        "tau between seeds": None if tau is None else tau >= GATE["seed_tau"],
        "core-seconds a run": None if cost is None else cost <= GATE["core_seconds"],
    }


if __name__ == "__main__":
    sys.exit(main())
