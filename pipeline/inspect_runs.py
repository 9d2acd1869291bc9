"""Look at folders of runs: how much is there (`status`), is it sound (`verify`), and put folders together (`merge`)."""

from __future__ import annotations

import argparse
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from jahs.columns import config_ids
from jahs.errors import CorruptFile, InvalidTable, ProtocolMismatch
from jahs.files.index import read_index
from jahs.files.tables import Table, has_digests, read_table, take
from jahs.metrics import ACCURACIES
from jahs.runs import (
    TIMES,
    committed_faults,
    each_run_once,
    is_timed,
    last_rows,
    profile_of_visits,
    read_configs,
    read_profile,
    read_protocol,
    read_runs,
    read_shards,
    read_visits,
    timing_machine,
    visits_of_profile,
)
from jahs.schema import CONFIG_KEYS, RUN_COLUMNS, SOURCES
from jahs.tasks import RESOLUTIONS, Task
from pipeline.candidates import trained_task
from pipeline.data import load_images
from pipeline.protocol import protocol_digest
from pipeline.runs import RunsFolder
from pipeline.sampling import FIDELITY_GROUPS, N_GROUPS, config_table, group_positions, run_seeds
from pipeline.train import EPOCH_FIELDS, check_seed, train
from pipeline.visits import merge_visits
from workshop.command import Failed, run_command
from workshop.machine import processor_model

__all__ = ["main", "merge", "retrain", "status", "verify"]

_log = logging.getLogger(__name__)
_LOSSES: Final = ("train_loss", "valid_loss", "test_loss")
_REPRODUCED: Final = tuple(name for name in EPOCH_FIELDS if name != "runtime")
_DETERMINED: Final = (*_REPRODUCED, "status")
_MOST_LISTED: Final = 20
_WANTED_CONFIGS: Final = 2000


def folder_task(path: Path) -> Task:
    """Return the task of a folder, after checking that its protocol is the one that this code has.

    Raises:
        ProtocolMismatch: it is not; lists what differs.
    """
    protocol = read_protocol(path)
    chosen = trained_task(protocol.facts["task"]["name"])
    digest = protocol_digest(chosen)
    if digest != protocol.digest:
        raise ProtocolMismatch(
            f"{path} was collected under protocol {protocol.digest}, but task {chosen.name!r} is now {digest}; "
            f"check out the version that collected it, or collect into another folder"
        )
    return chosen


def status(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return counts per fidelity group, cost so far, and an estimate of what is left on the processor of runtimes."""
    runs, configs = read_runs(path), read_configs(path)
    last = last_rows(runs)
    trained = Counter(last["config_id"].tolist())
    is_trained = np.isin(configs["config_id"], last["config_id"])
    if n_strange := len(trained) - int(is_trained.sum()):
        raise InvalidTable(f"{path}: {n_strange} configs have runs but are not in configs.parquet")
    groups = np.bincount(group_positions(take(configs, is_trained)), minlength=N_GROUPS)
    timed = last["runtime"][is_timed(last, timing_machine(runs, read_profile(path)))]
    n_runs_wanted = sum(len(run_seeds(number)) for number in range(_WANTED_CONFIGS))
    sources = _per_source(take(configs, is_trained), trained)
    n_numbered = sources.get("uniform", {"n_runs": 0})["n_runs"]
    mean_s = float(timed.mean()) if len(timed) else None
    return {
        "protocol": read_protocol(path).digest,
        "n_configs": len(trained),
        "n_runs": len(last["seed"]),
        "n_repeated_configs": sum(n > 1 for n in trained.values()),
        "n_diverged_runs": int((last["status"] == "diverged").sum()),
        "n_profiled": len(read_profile(path)["config_id"]),
        "per_source": sources,
        "configs_per_group": groups.tolist(),
        "runs_per_hour": _rate(path),
        "core_hours": float(np.nansum(last["runtime"])) / 3600,
        "mean_core_seconds": mean_s,
        "core_hours_left": mean_s and max(0.0, (n_runs_wanted - n_numbered) * mean_s / 3600),
    }


def _per_source(configs: Table, n_runs: Mapping[int, int]) -> dict[str, dict[str, int]]:
    """How many configs, and how many of their runs, each source has."""
    counts = {source: {"n_configs": 0, "n_runs": 0} for source in SOURCES if source in configs["source"]}
    for identity, source in zip(configs["config_id"].tolist(), configs["source"].tolist(), strict=True):
        of_source = counts.setdefault(source, {"n_configs": 0, "n_runs": 0})
        of_source["n_configs"] += 1
        of_source["n_runs"] += n_runs[identity]
    return counts


def verify(path: Path) -> list[str]:
    """Return every fault of a folder of runs; none means that it is sound.

    A folder of an earlier version has no index, which is a warning: nobody would notice if its measurements changed.
    """
    chosen = folder_task(path)
    faults = [f"{shard.relative_to(path)}: a damaged shard was set aside" for shard in path.glob("damaged/*.parquet")]
    if damaged := [*committed_faults(path), *_single_faults(path)]:
        return [*faults, *damaged[:_MOST_LISTED]]  # what they hold counts for nothing
    shards, configs = read_shards(path), read_configs(path)
    runs = each_run_once(shards)
    if n_twice := sum(len(shard["epoch"]) for shard in shards) - len(runs["epoch"]):
        faults.append(f"{n_twice} rows are stored twice; `pipeline.collect merge {path}` stores them once")
    if others := sorted(set(runs["protocol"].tolist()) - {read_protocol(path).digest}):
        faults.append(f"there are rows of another protocol: {', '.join(others)}")
    faults += _config_faults(configs)
    if strange := set(runs["config_id"].tolist()) - set(configs["config_id"].tolist()):
        faults.append(f"{len(strange)} configs have runs but are not in configs.parquet, e.g. {min(strange)}")
    faults += _profile_faults(read_profile(path), read_visits(path))
    for run in _each_run(runs):
        faults += _run_faults(run, chosen)
        if len(faults) > _MOST_LISTED:
            return [*faults[:_MOST_LISTED], "there may be more"]
    return faults


def retrain(path: Path, n_runs: int, *, seed: int = 0, data_dir: Path | None = None) -> tuple[list[str], list[str]]:
    """Train `n_runs` random finished CPU runs again; return a line about each, and the faults.

    On the same processor model and torch build every accuracy and loss must be the same bits; elsewhere the last epoch
    must lie within three standard deviations of the difference between two seeds, taken from the folder's repeats.

    Raises:
        InvalidArgument: a negative seed.
        InvalidTable: the folder has fewer finished CPU runs.
    """
    check_seed(seed)
    chosen = folder_task(path)
    runs = read_runs(path)
    folder = RunsFolder(path)
    candidates = [r for r in _each_run(runs) if r["device"][0] == "cpu" and r["status"][0] == "finished"]
    if len(candidates) < n_runs:
        raise InvalidTable(f"{path} has {len(candidates)} finished runs on a CPU, and {n_runs} are to be trained again")
    chosen_runs = np.random.default_rng(seed).permutation(len(candidates))[:n_runs]
    sets = load_images(chosen, data_dir=data_dir)
    spread = _seed_spread(runs)
    lines, faults = [], []
    for position in chosen_runs:
        old = candidates[position]
        [named] = folder.names(old["config_id"][:1].tolist())
        config = folder.config(named)
        new = train(config, chosen, sets[config["Resolution"]], seed=int(old["seed"][0])).epochs.astype(np.float32)
        name = f"config {named} seed {old['seed'][0]}"
        differences = {
            field: np.abs(new[:, EPOCH_FIELDS.index(field)] - old[field]) if len(new) == len(old["epoch"]) else None
            for field in _REPRODUCED
        }
        if old["machine"][0] == processor_model() and old["torch_version"][0] == torch.__version__:
            rule = "same processor and torch build: the same bits"
            bad = [field for field, gap in differences.items() if gap is None or bool(np.any(gap != 0))]
        else:
            rule = "another processor or torch build: within three standard deviations of two seeds' difference"
            most = {field: 3 * np.sqrt(2) * spread[field] for field in differences}
            bad = [field for field, gap in differences.items() if gap is None or not float(gap[-1]) <= most[field]]
        lines.append(f"{name}: {rule}: {'differs in ' + ', '.join(bad) if bad else 'reproduced'}")
        faults += [lines[-1]] if bad else []
    return lines, faults


def merge(path: Path, others: Sequence[Path]) -> tuple[int, int]:
    """Put the runs and the visits of other folders into `path` and compact it.

    A run that several folders trained is kept once, from the folder that is named first. The profile is then that of
    the processor which visited the most configs; that it is another one than before is said by a warning.

    Returns:
        The number of runs in `path` now, and of runs that were left out because they were there already.

    Raises:
        ProtocolMismatch, CorruptFile, InvalidTable: a folder holds another protocol, or cannot be read, or two folders
            have a run that differs although the same processor and torch trained it; nothing was changed.
    """
    folder = RunsFolder(path)
    if faults := [fault for each in (path, *others) for fault in _prefixed(each, committed_faults(each))]:
        raise CorruptFile("\n".join(faults))
    for other in others:
        if (found := read_protocol(other).digest) != folder.protocol:
            raise ProtocolMismatch(
                f"{other} is of protocol {found}, {path} of {folder.protocol}; they cannot be merged"
            )
    read = [(read_configs(other), _each_run(read_runs(other)), read_visits(other)) for other in others]
    _refuse_contradictions({path: _each_run(read_runs(path))} | dict(zip(others, (r for _, r, _ in read), strict=True)))
    for configs, _, _ in read:
        folder.add_configs(configs)
    n_left_out = folder.compact([run for _, runs, _ in read for run in runs])
    before = _profiled_by(read_profile(path))
    merge_visits(path, [visits for _, _, visits in read])
    after = _profiled_by(read_profile(path))
    if before and before != after:
        _log.warning("the profile was of %s, and is of %s now: so are runtimes", ", ".join(before), ", ".join(after))
    return len(folder.recorded()), n_left_out


def _prefixed(path: Path, faults: Sequence[str]) -> list[str]:
    return [f"{path / fault}; restore the file from a copy" for fault in faults]


def _refuse_contradictions(folders: Mapping[Path, Sequence[Table]]) -> None:
    """Refuse runs of which one must be wrong, for a processor and a torch measure the same bits again."""
    first: dict[tuple[object, ...], tuple[Path, Table]] = {}
    faults = []
    for folder, runs in folders.items():
        for run in runs:
            if run["device"][0] != "cpu":
                continue
            key = tuple(run[name][0].item() for name in ("config_id", "seed", "machine", "torch_version"))
            where, known = first.setdefault(key, (folder, run))
            if known is not run and (differs := [name for name in _DETERMINED if not _is_same(known[name], run[name])]):
                faults.append(
                    f"config_id={key[0]:016x} seed={key[1]}: {where} and {folder} differ in {', '.join(differs)}, but "
                    f"{key[2]} with torch {key[3]} trained both"
                )
    if faults:
        more = [f"... {len(faults)} runs in all"] if len(faults) > _MOST_LISTED else []
        advice = "verify --retrain tells which folder is right; leave the other one out, or delete the run from it"
        raise InvalidTable("\n".join([*faults[:_MOST_LISTED], *more, advice]))


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:  # Any: each column has a type of its own
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _single_faults(path: Path) -> list[str]:
    """Single runs that are damaged, or that neither the index nor a digest of their own vouches for."""
    if (files := read_index(path)) is None:
        advice = f"`python -m pipeline.collect merge {path}` makes one"
        _log.warning("%s has no index, so damage to its measurements may go unnoticed; %s", path, advice)
    faults = []
    for shard in sorted((path / "new").glob("*.parquet")):
        name = shard.relative_to(path).as_posix()
        try:
            if files is None or name in files or has_digests(shard):
                read_table(shard, RUN_COLUMNS)
            else:
                faults.append(f"{name} carries no digest: it was put there or edited by other means")
        except (CorruptFile, InvalidTable) as err:
            faults.append(str(err))
    return faults


def _profile_faults(profile: Table, visits: Table) -> list[str]:
    """Whether the profile is what its visits make; nothing where visits are not known."""
    if len(where := _profiled_by(profile)) > 1:
        return [f"profile.parquet: times of {' and of '.join(where)} do not compare"]
    if not len(visits["visit"]):
        return []
    made = profile_of_visits(visits_of_profile(visits, profile))
    _, here, there = np.intersect1d(profile["config_id"], made["config_id"], return_indices=True)
    n_repeats, n_visited = profile["n_repeats"][here], made["n_repeats"][there]
    is_wrong = n_repeats > n_visited  # a pass under way has more
    for name in TIMES:
        least, told = made[name][there], profile[name][here]
        is_wrong |= (told < least) | ((told > least) & (n_repeats == n_visited))
    n_unvisited = len(profile["config_id"]) - len(here)
    return [
        f"profile.parquet: {n} {what}"
        for n, what in (
            (int(is_wrong.sum()), "configs do not have the least of their repeats"),
            (n_unvisited, "configs were not visited"),
        )
        if n
    ]


def _profiled_by(profile: Table) -> list[str]:
    """What measured the profile."""
    pairs = zip(profile["machine"].tolist(), profile["torch_version"].tolist(), strict=True)
    return [f"{machine} with torch {version}" for machine, version in sorted({*pairs})]


def _config_faults(configs: Table) -> list[str]:
    """Whether every config is what its number and its id say."""
    columns = {key: configs[key] for key in CONFIG_KEYS}
    faults = []
    wrong = np.flatnonzero(config_ids(columns) != configs["config_id"])
    if len(wrong):
        faults.append(f"configs.parquet: {len(wrong)} ids do not belong to their configs, first in row {wrong[0]}")
    numbers = configs["config_index"]
    drawn = numbers >= 0
    if drawn.any():
        again = config_table(0, int(numbers.max()) + 1)
        wrong = np.flatnonzero(drawn & (again["config_id"][np.maximum(numbers, 0)] != configs["config_id"]))
        if len(wrong):
            faults.append(
                f"configs.parquet: {len(wrong)} configs are not those of their numbers, first in row {wrong[0]}"
            )
    if unknown := sorted({*configs["source"].tolist()} - {*SOURCES}):
        faults.append(f"configs.parquet: source {', '.join(unknown)} is none of {', '.join(SOURCES)}")
    if len(np.unique(configs["config_id"])) != len(configs["config_id"]):
        faults.append("configs.parquet: a config stands there more than once")
    return faults


def _run_faults(run: Table, chosen: Task) -> list[str]:
    """Whether one run's rows are complete and in range."""
    name = f"config_id={run['config_id'][0]} seed={run['seed'][0]}"
    n_rows = len(run["epoch"])
    faults = []
    if not np.array_equal(run["epoch"], np.arange(1, n_rows + 1)):
        faults.append(f"{name}: epochs are not 1..{n_rows}")
    faults += [
        f"{name}: {column} changes within the run"
        for column in ("status", "device", "machine", "torch_version")
        if len(set(run[column].tolist())) != 1
    ]
    faults += [f"{name}: {fault}" for fault in _ending_faults(run, chosen)]
    accuracies = np.stack([run[field] for field in ACCURACIES])
    if not ((accuracies >= 0) & (accuracies <= 100)).all():
        faults.append(f"{name}: an accuracy is outside 0..100")
    runtime = run["runtime"]
    if run["device"][0] == "cpu":
        if not (np.diff(runtime, prepend=np.float32(0)) > 0).all():
            faults.append(f"{name}: runtime does not increase with every epoch")
    elif not np.isnan(runtime).all():
        faults.append(f"{name}: runtime of a run on {run['device'][0]} must be absent")
    return faults


def _ending_faults(run: Table, chosen: Task) -> list[str]:
    """Whether a run ended as its status says."""
    losses = np.stack([run[field] for field in _LOSSES])
    n_rows = len(run["epoch"])
    faults = []
    match run["status"][0]:
        case "finished":
            if n_rows != chosen.max_epoch:
                faults.append(f"finished after {n_rows} epochs, not {chosen.max_epoch}")
        case "diverged":
            if np.isfinite(losses[:, -1]).all():
                faults.append("is marked diverged, but the losses of its last epoch are finite")
            losses = losses[:, :-1]
        case other:
            return [f"status {other!r} is not finished or diverged"]
    if not (np.isfinite(losses).all() and (losses >= 0).all()):
        faults.append("a loss is negative or not finite")
    return faults


def _each_run(runs: Table) -> list[Table]:
    """Split a table that is sorted by config and seed into runs."""
    if not len(runs["epoch"]):
        return []
    starts = np.flatnonzero(np.append(True, (np.diff(runs["config_id"]) != 0) | (np.diff(runs["seed"]) != 0)))
    stops = [*starts[1:], len(runs["epoch"])]
    return [{name: values[a:b] for name, values in runs.items()} for a, b in zip(starts, stops, strict=True)]


def _seed_spread(runs: Table) -> dict[str, float]:
    """Standard deviation between seeds at the last epoch, pooled over the repeated configs."""
    last = last_rows(runs)
    finished = take(last, last["status"] == "finished")
    spread = {}
    for field in _REPRODUCED:
        by_config: dict[int, list[float]] = {}
        for identity, value in zip(finished["config_id"].tolist(), finished[field].tolist(), strict=True):
            by_config.setdefault(identity, []).append(value)
        variances = [np.var(values, ddof=1) for values in by_config.values() if len(values) > 1]
        spread[field] = float(np.sqrt(np.mean(variances))) if variances else float("nan")
    return spread


def _rate(path: Path) -> float | None:
    """Runs per hour over the shards that are not compacted yet."""
    times = sorted(shard.stat().st_mtime for shard in (path / "new").glob("*.parquet"))
    recent = [moment for moment in times if moment > time.time() - 3600]
    if len(recent) < 2 or recent[-1] == recent[0]:
        return None
    return (len(recent) - 1) / (recent[-1] - recent[0]) * 3600


def main(argv: Sequence[str]) -> int:
    """Run `status`, `verify` or `merge`; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.collect")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("status", help="counts per group, rate, estimate")
    check = commands.add_parser("verify", help="check every row; exit 1 if anything is wrong")
    check.add_argument("--retrain", type=int, default=0, metavar="K", help="train K random runs again and compare")
    check.add_argument("--seed", type=int, default=0, help="which runs are trained again")
    check.add_argument("--data-dir", type=Path)
    join = commands.add_parser("merge", help="put runs together and compact them")
    for command in (show, check, join):
        command.add_argument("folder", type=Path)
        command.add_argument("--json", action="store_true", help="for machines")
    join.add_argument("others", type=Path, nargs="*")
    args = parser.parse_args(argv)
    return run_command("pipeline.collect", lambda: _dispatch(args))


def _dispatch(args: argparse.Namespace) -> object:
    if args.command == "status":
        facts = status(args.folder)
        as_lines = {"per_source": _source_lines(facts), "configs_per_group": _group_lines(facts)}
        return facts if args.json else _as_text({**facts, **as_lines})
    if args.command == "merge":
        n_runs, n_left_out = merge(args.folder, args.others)
        merged = {"folder": str(args.folder), "n_runs": n_runs, "n_left_out": n_left_out}
        return merged if args.json else _as_text(merged)
    if args.retrain < 0:
        raise InvalidTable(f"retrain={args.retrain} is not a number of runs")
    faults = verify(args.folder)
    lines: list[str] = []
    if args.retrain and not faults:
        lines, faults = retrain(args.folder, args.retrain, seed=args.seed, data_dir=args.data_dir)
    verdict = "sound" if not faults else f"{len(faults)} faults"
    found = {"verdict": verdict, "faults": faults, "retrained": lines}
    result = found if args.json else _as_text(found)
    return Failed(result) if faults else result


def _source_lines(facts: dict[str, Any]) -> list[str]:  # Any: JSON
    """Configs and runs of each source as a table."""
    rows = [(name, counts["n_configs"], counts["n_runs"]) for name, counts in facts["per_source"].items()]
    return [f"{name:12} {n_configs:>8} {n_runs:>8}" for name, n_configs, n_runs in [("", "configs", "runs"), *rows]]


def _group_lines(facts: dict[str, Any]) -> list[str]:  # Any: JSON
    """Configs per fidelity group as a table: a row for each N and W, a column for each Resolution."""
    n_resolutions = len(RESOLUTIONS)
    lines = ["  N   W" + "".join(f"{resolution:>8}" for resolution in RESOLUTIONS)]
    for first in range(0, N_GROUPS, n_resolutions):
        n, width, _ = FIDELITY_GROUPS[first]
        counts = facts["configs_per_group"][first : first + n_resolutions]
        lines.append(f"{n:>3} {width:>3}" + "".join(f"{count:>8}" for count in counts))
    return lines


def _as_text(facts: dict[str, Any]) -> str:  # Any: JSON
    lines = []
    for name, value in facts.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            lines += [f"{name}:", *(f"  {line}" for line in value)]
        else:
            lines.append(f"{name:22} {round(value, 2) if isinstance(value, float) else value}")
    return "\n".join(lines)
