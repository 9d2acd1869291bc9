"""The commands `status`, `verify` and `merge` of `python -m pipeline.collect`; they print JSON.

The status has counts of configs and runs, the rate, the cost, and an estimate of the remaining work. Modules that train
are imported where they are needed: torch takes seconds to load.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidArgument, InvalidTable, ProtocolMismatch, first_of
from jahs.files.runs import VISITS, committed_faults, read_configs, read_profile, read_protocol, read_runs
from jahs.files.tables import Table, parquet_files, take
from jahs.schema import SOURCES
from jahs.spaces.seeds import read_seed
from pipeline.data import load_images
from pipeline.native.build import software
from pipeline.protocol import EPOCH_FIELDS, REPRODUCED
from pipeline.runs import RunsFolder
from pipeline.sampling import group_positions, run_seeds
from pipeline.verify import each_run, folder_task, profiled_by, verify
from workshop.command import FailedResult, add_data_dir, new_parser, run_command
from workshop.machine import ON_PROCESSOR, processor_model
from workshop.measured import last_rows, read_proxies, read_visits, rows_of
from workshop.numbered import FIDELITY_GROUPS, N_GROUPS
from workshop.resampling import within_configs

_WANTED_CONFIGS: Final = 2000
_DETERMINED: Final = (*REPRODUCED, "status")

_log = logging.getLogger(__name__)


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


def retrain(path: Path, n_runs: int, *, seed: int = 0, data_dir: Path | None = None) -> tuple[list[str], list[str]]:
    """Train `n_runs` random finished CPU runs again; return a line about each, and the faults.

    On the same processor model and software, every accuracy and loss must be bit-identical; elsewhere the last epoch
    must lie within three standard deviations of the difference between two seeds, taken from the folder's repeats.

    Raises:
        InvalidArgument: a negative seed.
        InvalidTable: the folder has fewer finished CPU runs.
    """
    from pipeline.train import train

    seed = read_seed(seed)
    task, runs, folder = folder_task(path), read_runs(path), RunsFolder(path)
    candidates = [r for r in each_run(runs) if r["device"][0] in ON_PROCESSOR and r["status"][0] == "finished"]
    if len(candidates) < n_runs:
        raise InvalidTable(f"{path} has {len(candidates)} finished runs on a CPU, and {n_runs} are to be trained again")
    positions = np.random.default_rng(seed).permutation(len(candidates))[:n_runs]
    sets = load_images(task, data_dir=data_dir)
    spread = _seed_spread(runs)
    lines, faults = [], []
    for position in positions:
        old = candidates[position]
        [named] = folder.names(old["config_id"][:1].tolist())
        config = folder.config(named)
        device, seed = str(old["device"][0]), int(old["seed"][0])
        new = train(config, task, sets[config["Resolution"]], seed=seed, device=device).epochs.astype(np.float32)
        name = f"config {named} seed {seed}"
        differences = {
            field: np.abs(new[:, EPOCH_FIELDS.index(field)] - old[field]) if len(new) == len(old["epoch"]) else None
            for field in REPRODUCED
        }
        if old["machine"][0] == processor_model() and old["torch_version"][0] == software(device, task.batch_size):
            rule = "same processor model and software: bit-identical"
            faulty = [field for field, gap in differences.items() if gap is None or bool(np.any(gap != 0))]
        elif not spread:
            rule = "another processor or software: not judged, because no config has two seeds"
            faulty = [field for field, gap in differences.items() if gap is None]
        else:
            rule = "another processor or software: within three standard deviations of two seeds' difference"
            limits = {field: 3 * np.sqrt(2) * spread[field] for field in differences}
            faulty = [field for field, gap in differences.items() if gap is None or not float(gap[-1]) <= limits[field]]
        lines.append(f"{name}: {rule}: {'differs in ' + ', '.join(faulty) if faulty else 'reproduced'}")
        faults += [lines[-1]] if faulty else []
    return lines, faults


def _seed_spread(runs: Table) -> dict[str, float]:
    """Return the pooled standard deviation between seeds at the last epoch; {} if no config is repeated."""
    last = last_rows(runs)
    finished = take(last, last["status"] == "finished")
    spread = {}
    for field in REPRODUCED:
        _, _, freedom, squares = within_configs(finished["config_id"], finished[field].astype(np.float64))
        if (is_repeated := freedom > 0).any():
            spread[field] = float(np.sqrt((squares[is_repeated] / freedom[is_repeated]).mean()))
    return spread


def status(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return counts per fidelity group, cost so far, and an estimate of the remaining work.

    Means and estimate are for the processor with the most runs. The estimate uses the mean cost of uniform configs on
    its fastest device, since all that are left are uniform.
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
    mean_s = _mean_seconds(timed)
    uniform_s = _mean_seconds(take(timed, rows_of(configs, timed["config_id"])["source"] == SOURCES[0]))
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
        "core_hours_left": n_left * min(uniform_s.values()) / 3600 if uniform_s else None,
    }


def _mean_seconds(timed: Table) -> dict[str, float]:
    """Return the mean runtime of each device."""
    return {str(d): float(timed["runtime"][timed["device"] == d].mean()) for d in np.unique(timed["device"])}


def _rate(path: Path) -> float | None:
    """Return runs per hour over the last hour's shards, or None."""
    times = []
    for shard in parquet_files(path / "new"):
        with suppress(FileNotFoundError):  # it was compacted meanwhile
            times.append(shard.stat().st_mtime)
    recent = sorted(moment for moment in times if moment > time.time() - 3600)
    if len(recent) < 2 or recent[-1] == recent[0]:
        return None
    return (len(recent) - 1) / (recent[-1] - recent[0]) * 3600


def merge(path: Path, others: Sequence[Path]) -> tuple[int, int]:
    """Put the runs, the visits and the proxies of other folders into `path` and compact it.

    A run that several folders have is kept once, from the folder that is named first. The profile is then from the
    processor that visited the most configs; a warning says if this changes the processor.

    Returns:
        The number of runs in `path` now, and the number of duplicates that were left out.

    Raises:
        ProtocolMismatch, CorruptFile, InvalidTable: a folder holds another protocol, or cannot be read, or has a
            profile without its visits, or two folders have a run that differs although the same processor and torch
            trained it; nothing was changed.
    """
    from pipeline.profile import merge_visits
    from pipeline.proxies import merge_proxies

    folder = RunsFolder(path)
    if faults := [
        f"{root / fault}; restore the file from a copy" for root in (path, *others) for fault in committed_faults(root)
    ]:
        raise CorruptFile("\n".join(faults))
    for other in others:
        if (digest := read_protocol(other).digest) != folder.protocol:
            raise ProtocolMismatch(
                f"{other} has protocol {digest}, but {path} has {folder.protocol}; they cannot be merged"
            )
    parts = [(read_configs(other), each_run(read_runs(other)), read_visits(other)) for other in others]
    proxies = [read_proxies(other) for other in others]
    for read in (read_visits, read_profile, read_proxies):
        read(path)  # what cannot be read is refused before anything is changed
    _refuse_unvisited(path, others)
    _refuse_contradictions({path: each_run(read_runs(path))} | dict(zip(others, (r for _, r, _ in parts), strict=True)))
    for configs, _, _ in parts:
        folder.add_configs(configs)
    n_left_out = folder.compact([run for _, runs, _ in parts for run in runs])
    before = profiled_by(read_profile(path))
    merge_visits(path, [visits for _, _, visits in parts])
    merge_proxies(path, proxies)
    after = profiled_by(read_profile(path))
    if before and before != after:
        _log.warning("the profile and runtimes are now from %s, not from %s", ", ".join(after), ", ".join(before))
    return len(folder.recorded()), n_left_out


def _refuse_unvisited(path: Path, others: Sequence[Path]) -> None:
    """Refuse profiled configs that the merged visits lack: the profile is made from visits, so it would lose them."""
    visited = [read_visits(other)["config_id"] for other in others]
    has_more = any(len(ids) for ids in visited)
    all_visited = np.concatenate([read_visits(path)["config_id"], *visited])
    faults = [
        f"{folder}: {n_lost} configs of profile.parquet have no visits, so the merged profile would lack them; restore "
        f"{VISITS} from a copy, or visit the configs again with `python -m pipeline.profile`"
        for folder in ((path, *others) if has_more else others)  # without more visits, the profile of `path` stays
        if (n_lost := int((~np.isin(read_profile(folder)["config_id"], all_visited)).sum()))
    ]
    if faults:
        raise InvalidTable("\n".join(faults))


def _refuse_contradictions(folders: Mapping[Path, Sequence[Table]]) -> None:
    """Refuse different runs by the same processor and torch build: they must have the same bits, so one is wrong."""
    first: dict[tuple[object, ...], tuple[Path, Table]] = {}
    faults = []
    for folder, runs in folders.items():
        for run in runs:
            if run["device"][0] not in ON_PROCESSOR:
                continue
            key = tuple(run[name][0].item() for name in ("config_id", "seed", "machine", "torch_version"))
            where, known = first.setdefault(key, (folder, run))
            if known is not run and (differs := [name for name in _DETERMINED if not _is_same(known[name], run[name])]):
                faults.append(
                    f"config_id={key[0]:016x} seed={key[1]}: {where} and {folder} differ in {', '.join(differs)}, but "
                    f"{key[2]} with torch {key[3]} trained both"
                )
    if faults:
        advice = "verify --retrain shows which folder is right; leave the other one out, or delete the run from it"
        raise InvalidTable("\n".join([*first_of(faults), advice]))


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:  # Any: each column has a type of its own
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
