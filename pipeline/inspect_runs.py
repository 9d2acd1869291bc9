"""The commands `status`, `verify` and `merge` of `python -m pipeline.collect`; they print JSON.

The status has counts of configs and runs, the rate, the cost, and an estimate of the remaining work.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.errors import InvalidArgument, InvalidTable
from jahs.files.runs import (
    last_rows,
    read_configs,
    read_profile,
    read_protocol,
    read_runs,
)
from jahs.files.tables import rows_of, take
from jahs.schema import SOURCES
from pipeline.merge import merge
from pipeline.sampling import group_positions, run_seeds
from pipeline.verify import retrain, verify
from workshop.command import FailedResult, add_data_dir, new_parser, run_command
from workshop.numbered import FIDELITY_GROUPS, N_GROUPS

_WANTED_CONFIGS: Final = 2000


def main(argv: Sequence[str]) -> int:
    """Run `status`, `verify` or `merge`; return the exit status."""
    about = "Show the status of a folder of runs, check it, or merge other folders into it."
    parser = new_parser("pipeline.collect", about, example="status out/digits")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("status", help="counts per fidelity group, rate, cost, estimate of the remaining work")
    check = commands.add_parser("verify", help="check every row; exit status 1 if anything is wrong")
    check.add_argument("--retrain", type=int, default=0, metavar="K", help="train K random runs again and compare")
    check.add_argument("--seed", type=int, default=0, help="seed that selects these runs (default: %(default)s)")
    add_data_dir(check)
    join = commands.add_parser("merge", help="add the runs of other folders and compact them")
    for command in (show, check, join):
        command.add_argument("folder", type=Path, help="folder of runs")
    join.add_argument("others", type=Path, nargs="*", help="folders to add")
    given = parser.parse_args(argv)
    work = {"status": lambda: status(given.folder), "verify": lambda: _verify(given), "merge": lambda: _merge(given)}
    return run_command("pipeline.collect", work[given.command])


def _merge(given: argparse.Namespace) -> dict[str, object]:
    n_runs, n_left_out = merge(given.folder, given.others)
    return {"folder": str(given.folder), "n_runs": n_runs, "n_left_out": n_left_out}


def _verify(given: argparse.Namespace) -> object:
    if given.retrain < 0:
        raise InvalidArgument(f"retrain={given.retrain} must be a number of runs >= 0")
    faults = verify(given.folder)
    lines: list[str] = []
    if given.retrain and not faults:
        lines, faults = retrain(given.folder, given.retrain, seed=given.seed, data_dir=given.data_dir)
    verdict = "sound" if not faults else f"{len(faults)} fault{'s' * (len(faults) > 1)}"
    report = {"verdict": verdict, "faults": faults, "retrained": lines}
    return FailedResult(report) if faults else report


def status(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return counts per fidelity group, cost so far, and an estimate of the remaining work.

    Means and estimate are for the processor with the most runs; the estimate, for its fastest device.
    """
    runs, configs = read_runs(path), read_configs(path)
    last = last_rows(runs)
    trained = Counter(last["config_id"].tolist())
    is_trained = np.isin(configs["config_id"], last["config_id"])
    if n_strange := len(trained) - int(is_trained.sum()):
        raise InvalidTable(f"{path}: {n_strange} configs have runs but are not in configs.parquet")
    groups = np.bincount(group_positions(take(configs, is_trained)), minlength=N_GROUPS)
    timed = take(last, np.isfinite(last["runtime"]))
    processor = Counter(timed["machine"].tolist()).most_common(1)
    timed = take(timed, np.isin(timed["machine"], [machine for machine, _ in processor]))
    mean_s = {str(d): float(timed["runtime"][timed["device"] == d].mean()) for d in np.unique(timed["device"])}
    recorded = rows_of(configs, last["config_id"])["config_index"].tolist()
    wanted = {(number, seed) for number in range(_WANTED_CONFIGS) for seed in run_seeds(number)}
    n_left = len(wanted - {*zip(recorded, last["seed"].tolist(), strict=True)})
    of_configs = Counter(configs["source"][is_trained].tolist())
    of_runs = Counter(rows_of(configs, last["config_id"])["source"].tolist())
    return {
        "protocol": read_protocol(path).digest,
        "n_configs": len(trained),
        "n_runs": len(last["seed"]),
        "n_repeated_configs": sum(n > 1 for n in trained.values()),
        "n_diverged_runs": int((last["status"] == "diverged").sum()),
        "n_profiled": len(read_profile(path)["config_id"]),
        "per_source": {
            source: {"n_configs": of_configs[source], "n_runs": of_runs[source]}
            for source in dict.fromkeys((*SOURCES, *of_runs))
            if source in of_runs
        },
        "configs_per_group": {
            f"N={n} W={w} Resolution={r:g}": count
            for (n, w, r), count in zip(FIDELITY_GROUPS, groups.tolist(), strict=True)
        },
        "runs_per_hour": _rate(path),
        "core_hours": float(np.nansum(last["runtime"])) / 3600,
        "mean_core_seconds": mean_s,
        "core_hours_left": n_left * min(mean_s.values()) / 3600 if mean_s else None,
    }


def _rate(path: Path) -> float | None:
    """Return runs per hour over the last hour's shards, or None."""
    times = sorted(shard.stat().st_mtime for shard in (path / "new").glob("*.parquet"))
    recent = [moment for moment in times if moment > time.time() - 3600]
    if len(recent) < 2 or recent[-1] == recent[0]:
        return None
    return (len(recent) - 1) / (recent[-1] - recent[0]) * 3600
