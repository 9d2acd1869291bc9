"""Pack the logs of a study for shipping: `python -m experiments.pack DIR --out data/studies`."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from experiments.folder import StudyFolder, check_same, read_folder
from experiments.packs import (
    COLUMNS,
    MANIFEST,
    RATES,
    RATES_COLUMNS,
    RATES_FILE,
    check_season,
    first_trials,
    full_log,
    is_pack,
    rates_digest,
    rates_of_pack,
    read_manifest,
    read_packed_table,
    read_packed_tables,
    read_rates,
    season_of,
)
from experiments.report.results import read_own_log
from experiments.study import Repetition, TaskFacts
from experiments.worlds import WORLD_NAMES, quality_of_worlds
from jahs.comparison.logs import FINISHED, Floats
from jahs.comparison.steps import incumbents
from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.files.atomic import change_folder
from jahs.files.sealed_json import sealed_text
from jahs.files.strict_json import parse_json
from jahs.files.tables import Table, require_pyarrow, write_table
from jahs.schema import CONFIG_KEYS
from jahs.simulate import Log
from jahs.spaces.columns import rows, validate_columns
from jahs.spaces.parameters import LARGEST
from workshop.command import new_parser, run_command
from workshop.folders import held_folder, writing
from workshop.progress import Progress

_SPLIT: Final = ("float64", "int32", "int8")
"""Types whose bytes a pack stores in planes: floats hardly occur twice, differences mostly have three equal bytes,
and zstd packs the codes of a choice better than a dictionary of them."""


class _Tables:
    """The columns of a pack, log by log."""

    def __init__(self, *, has_several: bool) -> None:
        self._has_several = has_several
        self._rows: dict[tuple[object, ...], int] = {}  # row of each config
        self._logs: list[tuple[object, ...]] = []
        self._places: dict[int, int] = {}  # place of each config among those of the log
        self._asked_rows = array("i")
        self._back = array("i")
        self._fidelities: dict[tuple[object, ...], int] = {}
        self._fidelity_of_trial = array("H")
        self._ends: list[tuple[float, ...]] = []

    def add(self, own: Repetition, log: Log, digest: str) -> None:
        """Append a log."""
        header, ending = cast("dict[str, Any]", log.header), cast("dict[str, Any]", log.ending)  # Any: JSON
        full = header["view"]["fidelities"]
        self._places = {}
        ends: list[tuple[float, ...]] = []  # place, end and accuracy of trials at the highest fidelity
        for place, trial in enumerate(log.trials):
            config, fidelity = cast("dict[str, Any]", trial.config), trial.fidelity  # Any: values of keys
            asked = (fidelity["epoch"], *(fidelity.get(name, config[name]) for name in LARGEST), trial.status)
            self._add_trial(tuple(config.values()), asked)
            if trial.status == FINISHED and all(fidelity[name] == highest for name, highest in full.items()):
                ends.append((place, trial.end, trial.metrics.get("valid_acc", np.nan)))
        _, times, accuracy = np.reshape(ends, (-1, 3)).T
        best = set(incumbents(full_log(times, accuracy)).rows.tolist())
        if self._has_several:
            ends = [(*end, value if i in best else np.nan) for i, (*end, value) in enumerate(ends)]
        else:
            ends = [ends[i] for i in sorted(best)]
        self._ends += [(len(self._logs), *found) for found in ends]
        settings = json.dumps(header.get("optimizer_settings"), sort_keys=True)
        end = ending["ended"], ending["clock"]
        self._logs.append((*_key_of(own), len(log.trials), *end, settings, digest))

    def add_packed(self, path: Path, task: str) -> None:
        """Append the logs of a pack that are of this task."""
        logs, configs, trials, ends = read_packed_tables(path)
        own_logs: dict[int, int] = {}  # number of each log, there and here
        settings = [tuple(config.values()) for config in rows(configs)]
        first = first_trials(logs).tolist()
        row_of_trial = trials["config"].tolist()
        asked = [trial[1:] for trial in _records(trials, "trials.parquet")]
        for number, facts in enumerate(_records(logs, "logs.parquet")):
            if facts[0] != task:
                continue
            own_logs[number] = len(self._logs)
            self._logs.append(facts)
            self._places = {}
            for trial in range(first[number], first[number + 1]):
                self._add_trial(settings[row_of_trial[trial]], asked[trial])
        found = _records(ends, "ends.parquet")
        self._ends += [(own_logs[number], *end) for number, *end in found if number in own_logs]

    def _add_trial(self, config: tuple[object, ...], asked: tuple[object, ...]) -> None:
        """Append a trial: its config, and the epoch, sizes and status."""
        row, n_before = self._rows.setdefault(config, len(self._rows)), len(self._places)
        place = self._places.setdefault(row, n_before)
        if place == n_before:
            self._asked_rows.append(row)
        self._back.append(n_before - place)
        self._fidelity_of_trial.append(self._fidelities.setdefault(asked, len(self._fidelities)))

    def tables(self, known_rates: Floats) -> tuple[dict[str, Table], Floats]:
        """Return the tables, and the known rates followed by those that are new; refuse an invalid config."""
        configs = validate_columns(
            {key: np.array(values) for key, values in zip(CONFIG_KEYS, zip(*self._rows, strict=True), strict=True)}
        )
        rates = {rate: row for row, rate in enumerate(known_rates.tolist())}
        rate_of = [[rates.setdefault(rate, len(rates)) for rate in configs[key].tolist()] for key in RATES]
        fidelity_of = np.array(self._fidelity_of_trial)
        fidelities = [np.array(values)[fidelity_of] for values in zip(*self._fidelities, strict=True)]
        found: dict[str, Sequence[Any]] = {  # Any: each column has a type of its own
            "logs.parquet": list(zip(*self._logs, strict=True)),
            "configs.parquet": [
                *(np.diff(row, prepend=0) for row in rate_of),
                *(values for key, values in configs.items() if key not in RATES),
            ],
            "asked.parquet": [np.diff(self._asked_rows, prepend=0)],
            "trials.parquet": [self._back, *fidelities],
            "ends.parquet": list(zip(*self._ends, strict=True)) or [[]] * 4,
        }
        tables = {
            name: {
                column: np.asarray(values) if dtype == "string" else np.asarray(values).astype(dtype)
                for (column, dtype), values in zip(COLUMNS[name].items(), found[name], strict=True)
            }
            for name in COLUMNS
        }
        return tables, np.array([*rates])


def _records(table: Table, name: str) -> Iterator[tuple[Any, ...]]:  # Any: each column has a type of its own
    return zip(*(table[column].tolist() for column in COLUMNS[name]), strict=True)


def pack(path: Path, out: Path, *, other: Path | None = None) -> Path:
    """Write the pack of a study to `out/<season>/<study>`, completely or not at all, and return its folder.

    New rates are added to the table that the packs of the season share. So packs of one season that were written in
    two folders cannot be put into one.

    Args:
        path: folder of a study, finished or not; the pack has its finished repetitions.
        other: a pack of the same study; the new pack also has the tasks of `other` that `path` lacks. A study need not
            run again on a task whose release has not changed.

    Raises:
        MissingData: the folder is not a study, or has no finished repetition.
        CorruptFile: a log or the other pack is damaged, was cut short or belongs to another study.
        ProtocolMismatch: the season has a study that used another release, or the other pack has other arms or
            seeds.
        InvalidArgument: `out` cannot be written, or has a pack with more repetitions, or files of something else.
    """
    require_pyarrow()
    folder = read_folder(path)
    taken = _tasks_to_take(folder, other) if other else {}
    tasks = {**folder.tasks, **taken}
    season = season_of(tasks)
    target = (out / season / folder.study.name).resolve()
    check_season(target.parent, season, {task: facts.release for task, facts in tasks.items()})
    tables = _Tables(has_several=bool(folder.study.combinations))
    finished = folder.finished()
    kept = {key for key in _keys_in(other) if key[0] in taken} if other else set()
    _check_target(target, kept.union(map(_key_of, finished)))
    progress, n_read = Progress(len(finished), f"pack {folder.study.name}"), 0
    for task in sorted(tasks):
        if other and task in taken:
            tables.add_packed(other, task)
        # Repetitions that share configs lie side by side, which packs well; the release comes before its refits.
        for own in sorted(finished, key=lambda own: (own.seed, folder.arms.index(own.arm))):
            if own.task == task:
                log, digest = read_own_log(folder, own), sha256((path / own.path).read_bytes()).hexdigest()[:16]
                tables.add(own, log, digest)
                n_read += 1
                progress.update(n_read, own.path)
    progress.close()
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with held_folder(target.parent), change_folder(target) as beside:
            known = _known_rates(target)
            found, rates = tables.tables(known)
            files = {}
            for name, table in found.items():
                write_table(beside / name, table, COLUMNS[name], **_small(COLUMNS[name]))
                files[name] = sha256((beside / name).read_bytes()).hexdigest()
            has_worlds = any(folder.study.arm(name).world in WORLD_NAMES for name in folder.arms)
            worlds = {task: quality_of_worlds(path, task) for task in folder.tasks if has_worlds}
            recorded = parse_json((path / "study.json").read_bytes())
            if other and taken:
                said = read_manifest(other / MANIFEST)
                worlds |= {task: quality for task, quality in said["worlds"].items() if task in taken}
                recorded["tasks"] |= {task: said["study.json"]["tasks"][task] for task in taken}
                before = [entry for entry in said["study.json"]["made_with"] if entry not in recorded["made_with"]]
                recorded["made_with"] = before + recorded["made_with"]
            facts = {
                "files": files,
                "rates": {"n": len(rates), "sha256": rates_digest(rates)},
                "season": season,
                "worlds": worlds,
            }
            if len(rates) > len(known):
                write_table(target.parent / RATES_FILE, {"rate": rates}, RATES_COLUMNS, **_small(RATES_COLUMNS))
            (beside / MANIFEST).write_text(sealed_text({**facts, "study.json": recorded}), encoding="utf-8")
    return target


def _small(columns: Mapping[str, str]) -> dict[str, Any]:  # Any: settings of pyarrow
    """Return the settings with which a table takes longer to write and has fewer bytes."""
    split = [name for name, dtype in columns.items() if dtype in _SPLIT]
    dictionaries = [name for name in columns if name not in split]
    return {"compression_level": 19, "use_byte_stream_split": split, "use_dictionary": dictionaries}


def _known_rates(target: Path) -> Floats:
    """Return the rates of a season; refuse a table that is not that of every other pack."""
    others = [path.parent for path in sorted(target.parent.glob(f"*/{MANIFEST}")) if path.parent != target]
    if not others and not (target.parent / RATES_FILE).exists():
        return np.empty(0)
    rates = read_rates(target.parent)
    for other in others:
        rates_of_pack(other, rates)
    return rates


def _key_of(own: Repetition) -> tuple[object, ...]:
    """Return task, arm, refit and seed of a repetition, as logs.parquet has them."""
    return own.task, own.arm, -1 if own.refit is None else own.refit, own.seed


def _keys_in(path: Path) -> set[tuple[object, ...]]:
    """Return the same of every repetition of a pack."""
    return {facts[:4] for facts in _records(read_packed_table(path / "logs.parquet"), "logs.parquet")}


def _check_target(target: Path, kept: set[tuple[object, ...]]) -> None:
    """Refuse a folder that holds something else than a pack, or a pack with other repetitions than those `kept`."""
    found = sorted(path.name for path in target.iterdir()) if target.is_dir() else [target.name] * target.exists()
    lost = [name for name in found if name not in (*COLUMNS, MANIFEST)]
    if is_pack(target) and not lost:
        lost = sorted("/".join(map(str, key)) for key in _keys_in(target) - kept)
    if lost:
        names = f"{', '.join(lost[:3])}{f' and {len(lost) - 3} more' * (len(lost) > 3)}"
        raise InvalidArgument(f"{target} would be replaced and lose {names}; choose another folder, or remove it first")


def _tasks_to_take(folder: StudyFolder, other: Path) -> dict[str, TaskFacts]:
    """Return the tasks that a pack of the same study has and the folder lacks."""
    packed = read_folder(other)
    check_same(packed, folder.study, {}, otherwise=f"cannot be added to {folder.path}")
    if (packed.arms, packed.n_seeds) != (folder.arms, folder.n_seeds):
        raise ProtocolMismatch(
            f"{other} has {packed.n_seeds} seeds of {', '.join(packed.arms)}; {folder.path} has {folder.n_seeds} of "
            f"{', '.join(folder.arms)}; run the study again on all tasks"
        )
    return {task: facts for task, facts in packed.tasks.items() if task not in folder.tasks}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Pack all trials of a study as Parquet, from which its page can be made again."
    parser = new_parser("experiments.pack", about, example="out/joint --out data/studies")
    parser.add_argument("folder", type=Path, help="a folder written by python -m experiments.run")
    parser.add_argument("--out", type=Path, required=True, help="folder of seasons, such as data/studies")
    parser.add_argument("--other", type=Path, help="a pack of the study; its tasks that the folder lacks are added")
    given = parser.parse_args(argv)

    def work() -> object:
        if given.folder.resolve() in given.out.resolve().parents:
            raise InvalidArgument(f"--out {given.out} must not be inside {given.folder}")
        target = pack(given.folder, given.out, other=given.other)
        n_bytes = {file.name: file.stat().st_size for file in sorted(target.iterdir())}
        shared = {RATES_FILE: (target.parent / RATES_FILE).stat().st_size}
        return {"pack": str(target), "bytes": n_bytes, "total": sum(n_bytes.values()), "shared by the season": shared}

    return run_command("experiments.pack", work)


if __name__ == "__main__":
    sys.exit(main())
