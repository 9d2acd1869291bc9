"""The pack of a study: all trials of all its logs as Parquet, small enough to ship (docs/formats.md).

The packs of a season share one table of rates: with the same seed, optimisers sample the same configs in many studies.
The rest can be computed again: the release answers every trial's metrics from its config, fidelity and seed, and a run
of the repetition makes the log whose digest is recorded. `python -m experiments.report DIR` makes the page of the study
from its pack, byte for byte the same as from its logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from experiments.study import Repetition, TaskFacts
from jahs.comparison.logs import FINISHED, Floats, TrialLog
from jahs.errors import CorruptFile, MissingData, ProtocolMismatch
from jahs.files.sealed_json import read_sealed
from jahs.files.strict_json import parse_json
from jahs.files.tables import Table, read_table, take
from jahs.schema import CONFIG_COLUMNS, CONFIG_KEYS
from jahs.spaces.columns import rows
from jahs.spaces.configs import Config

MANIFEST: Final = "manifest.json"
RATES: Final = ("LearningRate", "WeightDecay")
"""Keys whose values are in a table of their own: many configs share them, and each takes eight bytes."""

RATES_FILE: Final = "rates.parquet"
"""Table of all rates of a season, beside its packs. It only grows. A pack refers to the first `n` rates, and its
manifest has their sha256."""

RATES_COLUMNS: Final[Mapping[str, str]] = MappingProxyType({"rate": "float64"})

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "logs.parquet": {
            "task": "string",
            "arm": "string",
            "refit": "int16",  # -1: the release itself
            "seed": "int32",
            "n_trials": "int32",
            "ended": "string",
            "clock": "float64",
            "settings": "string",  # settings of the optimiser, as JSON
            "digest": "string",  # first 16 digits of the sha256 of the log
        },
        "configs.parquet": {
            **{f"{key}_step": "int32" for key in RATES},  # row of the rate, delta-encoded
            **{key: CONFIG_COLUMNS[key] for key in CONFIG_KEYS if key not in RATES},
        },
        "asked.parquet": {"config_step": "int32"},  # row of each config of a log, in order, delta-encoded
        "trials.parquet": {
            "back": "int32",  # 0: a config that is new in the log; 1: the newest one before, 2: the one before that
            "epoch": "int16",
            "N": "int8",
            "W": "int8",
            "Resolution": "float32",
            "status": "string",
        },
        "ends.parquet": {"log": "int32", "trial": "int32", "end": "float64", "valid_acc": "float64"},
    }
)
"""The columns of each table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContent:
    """The content of one log that a page needs."""

    repetition: Repetition
    # Ends and observed metrics of trials at the highest fidelity, without the trials; a pack has the validation
    # accuracies of those that matter.
    found: TrialLog
    configs: tuple[Config, ...]  # configs of these trials
    # n_trials, n_finished: number of trials of the log, and of those that finished: others failed, were stopped, or
    # were cut off at the end of the budget.
    n_trials: int
    n_finished: int
    settings: object  # settings of the optimiser, as in the log


def season_of(tasks: Mapping[str, TaskFacts]) -> str:
    """Return the season of a study: the names of its tasks, each with the number of its release."""
    return "_".join(f"{name}-{facts.version}" for name, facts in sorted(tasks.items()))


def is_pack(path: Path) -> bool:
    """Return whether a folder is a pack."""
    return (path / MANIFEST).is_file()


def read_manifest(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return the manifest of a pack."""
    content = read_sealed(path)
    if missing := sorted({"files", "rates", "season", "study.json", "worlds"} - set(content)):
        raise CorruptFile(
            f"{path} lacks {', '.join(missing)}: it was damaged, or an older version wrote it; restore it from a copy, "
            "or remove its folder and pack the study again"
        )
    return content


def check_season(path: Path, season: str, releases: Mapping[str, str]) -> None:
    """Refuse a folder of packs in which another study used other releases, whatever their numbers."""
    faults = []
    for other in sorted(path.glob(f"*/{MANIFEST}")):
        said = read_manifest(other)
        of_other = {task: facts["release"] for task, facts in said["study.json"]["tasks"].items()}
        faults += [
            f"{other.parent}: {task} is release {of_other[task][:16]}, not {release[:16]}"
            for task, release in releases.items()
            if task in of_other and of_other[task] != release
        ]
    if faults:
        raise ProtocolMismatch(
            "\n".join([f"{path} cannot mix seasons; pack {season} into another folder, or remove these", *faults])
        )


def read_packed_table(path: Path) -> Table:
    """Return a table of a pack; its sha256 must be the manifest's."""
    listed = read_manifest(path.parent / MANIFEST)["files"]
    return read_table(path, COLUMNS[path.name], sha256=[listed.get(path.name)])


def read_rates(season: Path) -> Floats:
    """Return all rates of a season."""
    path = season / RATES_FILE
    if not path.is_file():
        raise MissingData(f"{path} does not exist: the packs of a season share it; restore it from a copy")
    return read_table(path, RATES_COLUMNS)["rate"]


def rates_digest(rates: Floats) -> str:
    """Return the sha256 of rates, as a manifest has it."""
    return sha256(rates.astype("<f8").tobytes()).hexdigest()


def rates_of_pack(path: Path, rates: Floats) -> Floats:
    """Return the rates that a pack uses, the first ones of its season; refuse those of another table."""
    said = read_manifest(path / MANIFEST)["rates"]
    if rates_digest(rates[: said["n"]]) != said["sha256"]:
        raise CorruptFile(
            f"{path.resolve().parent / RATES_FILE} does not begin with the rates of {path}; restore both from a copy"
        )
    return rates[: said["n"]]


def read_packed_tables(path: Path) -> tuple[Table, Table, Table, Table]:
    """Return the logs, configs, trials and ends of a pack; refuse tables that do not belong together.

    Trials have the row of their config as `config`.
    """
    wrong = CorruptFile(f"{path}: the tables do not belong together; restore the folder from a copy")
    logs, packed, asked, trials, ends = (read_packed_table(path / name) for name in COLUMNS)
    rates = rates_of_pack(path, read_rates(path.resolve().parent))
    first, back = first_trials(logs), trials["back"]
    if first[-1] != len(back):
        raise wrong
    n_new = np.concatenate([[0], np.cumsum(back == 0)])  # number of asked configs before each trial, and finally of all
    row_of, place = np.cumsum(asked["config_step"], dtype=np.int64), n_new[1:] - np.maximum(back, 1)
    rate_of = {key: np.cumsum(packed[f"{key}_step"], dtype=np.int64) for key in RATES}
    if (
        n_new[-1] != len(row_of)
        or np.any((back < 0) | (place < np.repeat(n_new[first[:-1]], logs["n_trials"])))
        or np.any((row_of < 0) | (row_of >= len(packed["N"])))
        or np.any(first[ends["log"]] + ends["trial"] >= first[ends["log"] + 1])
        or np.any(np.diff(ends["log"]) < 0)
        or any(np.any((row < 0) | (row >= len(rates))) for row in rate_of.values())
    ):
        raise wrong
    configs = {key: rates[rate_of[key]] if key in RATES else packed[key] for key in CONFIG_KEYS}
    return logs, configs, {**trials, "config": row_of[place]}, ends


def first_trials(logs: Table) -> NDArray[np.int64]:
    """Return the number of each log's first trial, and finally the number of all trials, (n_logs + 1,)."""
    return np.concatenate([[0], np.cumsum(logs["n_trials"], dtype=np.int64)])


def read_pack(path: Path) -> Iterator[LogContent]:
    """Yield every log of a pack.

    Raises:
        MissingData, CorruptFile, UnknownFormat: the pack is incomplete, damaged, or has another format.
    """
    logs, configs, trials, ends = read_packed_tables(path)
    first = first_trials(logs)
    own = np.searchsorted(ends["log"], np.arange(len(logs["seed"]) + 1))
    at = first[ends["log"]] + ends["trial"]
    asked, place = np.unique(trials["config"][at], return_inverse=True)
    known = rows(take(configs, asked))
    n_finished = np.diff(np.concatenate([[0], np.cumsum(trials["status"] == FINISHED)])[first])
    columns = (logs[name].tolist() for name in ("task", "arm", "refit", "seed", "n_trials", "settings"))
    for number, (task, arm, refit, seed, n_trials, settings) in enumerate(zip(*columns, strict=True)):
        part = slice(own[number], own[number + 1])
        yield LogContent(
            repetition=Repetition(task=task, arm=arm, seed=seed, refit=None if refit < 0 else refit),
            found=full_log(ends["end"][part], ends["valid_acc"][part]),
            configs=tuple(known[row] for row in place[part].tolist()),
            n_trials=n_trials,
            n_finished=int(n_finished[number]),
            settings=parse_json(settings.encode()),
        )


def full_log(end: Floats, accuracy: Floats) -> TrialLog:
    """Return the log of trials at the highest fidelity without the trials, from their ends and observed metrics."""
    is_full = np.ones(len(end), dtype=np.bool_)
    return TrialLog(trials=(), end=end, is_full=is_full, metrics={"valid_acc": accuracy})
