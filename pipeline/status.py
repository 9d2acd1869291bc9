"""The status of a folder of runs: counts of configs and runs, rate, cost, and an estimate of what is left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.errors import InvalidTable
from jahs.files.runs import (
    last_rows,
    read_configs,
    read_profile,
    read_protocol,
    read_runs,
)
from jahs.files.tables import Table, take
from jahs.schema import SOURCES
from pipeline.sampling import group_positions, run_seeds
from workshop.numbered import FIDELITY_GROUPS, N_GROUPS

_WANTED_CONFIGS: Final = 2000


def status(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return counts per fidelity group, cost so far, and an estimate of what is left.

    Both means and estimate refer to the processor of most runs; the estimate to its fastest device.
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
    n_runs_wanted = sum(len(run_seeds(number)) for number in range(_WANTED_CONFIGS))
    sources = _per_source(take(configs, is_trained), trained)
    n_numbered = sources.get("uniform", {"n_runs": 0})["n_runs"]
    return {
        "protocol": read_protocol(path).digest,
        "n_configs": len(trained),
        "n_runs": len(last["seed"]),
        "n_repeated_configs": sum(n > 1 for n in trained.values()),
        "n_diverged_runs": int((last["status"] == "diverged").sum()),
        "n_profiled": len(read_profile(path)["config_id"]),
        "per_source": sources,
        "configs_per_group": {
            f"N={n} W={w} Resolution={r:g}": count
            for (n, w, r), count in zip(FIDELITY_GROUPS, groups.tolist(), strict=True)
        },
        "runs_per_hour": _rate(path),
        "core_hours": float(np.nansum(last["runtime"])) / 3600,
        "mean_core_seconds": mean_s,
        "core_hours_left": max(0, n_runs_wanted - n_numbered) * min(mean_s.values()) / 3600 if mean_s else None,
    }


def _per_source(configs: Table, n_runs: Mapping[int, int]) -> dict[str, dict[str, int]]:
    """Count configs and runs of each source."""
    counts = {source: {"n_configs": 0, "n_runs": 0} for source in SOURCES if source in configs["source"]}
    for identity, source in zip(configs["config_id"].tolist(), configs["source"].tolist(), strict=True):
        of_source = counts.setdefault(source, {"n_configs": 0, "n_runs": 0})
        of_source["n_configs"] += 1
        of_source["n_runs"] += n_runs[identity]
    return counts


def _rate(path: Path) -> float | None:
    """Return runs per hour over the last hour's shards, or None."""
    times = sorted(shard.stat().st_mtime for shard in (path / "new").glob("*.parquet"))
    recent = [moment for moment in times if moment > time.time() - 3600]
    if len(recent) < 2 or recent[-1] == recent[0]:
        return None
    return (len(recent) - 1) / (recent[-1] - recent[0]) * 3600
