"""One metric's search with NePS: its space, one worker, and what a folder holds.

    FOLDER/search.json   what is searched; a folder is never continued with anything else
    FOLDER/rows.npz      training and validation rows, so that every worker reads the same
    FOLDER/evaluations/  a file for each evaluation that has ended, whole or absent
    FOLDER/neps/         NePS's own records, through which workers agree; made anew from evaluations at each start

Workers are processes on one folder, and any of them may be killed at any moment. NePS writes some of its records in
place, so a killed worker can leave them half-written; they are made anew at each start. Finished evaluations count,
interrupted ones are lost, and the same settings on the same rows always give the same score.
"""

from __future__ import annotations

import fcntl
import json
import logging
import math
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument, ProtocolMismatch
from jahs.files.atomic import write_beside
from jahs.files.hashing import digest_bytes, digest_facts
from jahs.files.strict_json import parse_json
from jahs.tasks.definitions import Task
from jahs.tasks.own import task_recorded_as
from surrogate.data.rows import Rows
from surrogate.models.model import ForestSettings, fit_surrogate
from surrogate.models.searched import Range, Searched, neps_space
from workshop.ranks import kendall_tau

SEARCH_FORMAT: Final = 1
OPTIMIZERS: Final = ("pibo", "bayesian_optimization", "random_search")
"""pibo: Bayesian optimisation with priors, as in the paper."""

FORESTS: Final[Searched] = {
    "max_depth": Range(1, 15, 6, is_integer=True),
    "min_child_weight": Range(1, 10, 1, is_integer=True),
    "colsample_bytree": Range(0.001, 1.0, 1.0),  # XGBoost refuses 0; one column is drawn at least
    "learning_rate": Range(0.01, 0.5, 0.3, is_log=True),  # below it 500 trees do not reach the values
    "colsample_bylevel": Range(0.001, 1.0, 1.0),
    "sigmoid_k": Range(0.01, 2.0, 1.0, is_log=True),
}
"""The paper's search space."""

_ARRAYS: Final = ("X", "y", "config_id", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedSettings:
    """One setting that was tried; `tau` is None where the fit failed."""

    number: int
    settings: ForestSettings
    tau: float | None
    seconds: float | None


def start_search(folder: Path, facts: Mapping[str, object], parts: Mapping[str, Rows]) -> None:
    """Write what a search needs, or check that the folder's search is this one.

    Raises:
        ProtocolMismatch: the folder holds another search.
        CorruptFile: its search.json cannot be read.
    """
    arrays = {f"{part}_{name}": getattr(parts[part], name) for part in ("train", "valid") for name in _ARRAYS}
    rows = digest_bytes(b"".join(np.ascontiguousarray(values).tobytes() for values in arrays.values()))
    wanted = {**facts, "format": SEARCH_FORMAT, "rows": rows}
    recorded = folder / "search.json"
    if recorded.exists():
        try:
            found = _read_json(recorded)
            differing = [
                f"{key}: {found.get(key)!r}, not {value!r}" for key, value in wanted.items() if found.get(key) != value
            ]
        except AttributeError as err:
            raise CorruptFile(f"{recorded} does not hold an object; give a new folder") from err
        if differing:
            raise ProtocolMismatch(f"{folder} holds another search ({'; '.join(differing)}); give a new folder")
        return
    folder.mkdir(parents=True, exist_ok=True)
    with write_beside(folder / "rows.npz") as beside, beside.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    with write_beside(recorded) as beside:
        beside.write_text(json.dumps(wanted, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_rows(folder: Path) -> tuple[str, Task, dict[str, Rows]]:
    """Return a search's metric, task and rows."""
    facts = _read_json(folder / "search.json")
    with np.load(folder / "rows.npz", allow_pickle=False) as arrays:
        parts = {part: Rows(**{name: arrays[f"{part}_{name}"] for name in _ARRAYS}) for part in ("train", "valid")}
    return facts["metric"], task_recorded_as(facts["task"]), parts


def validation_tau(metric: str, of_task: Task, parts: Mapping[str, Rows], settings: ForestSettings) -> float:
    """Fit on the training rows; return Kendall's tau on all validation rows."""
    fitted = fit_surrogate(metric, parts["train"], of_task, settings=settings)
    valid = parts["valid"]
    return kendall_tau(fitted.measured(valid), fitted.predict(valid.X))


def settings_of(proposed: Mapping[str, Any], *, n_trees: int) -> ForestSettings:  # Any: NePS's values
    """Return the settings of a point of the search space."""
    return ForestSettings(
        n_trees=n_trees,
        max_depth=int(proposed["max_depth"]),
        min_child_weight=int(proposed["min_child_weight"]),
        colsample_bytree=float(proposed["colsample_bytree"]),
        colsample_bylevel=float(proposed["colsample_bylevel"]),
        learning_rate=float(proposed["learning_rate"]),
        slope=float(proposed["sigmoid_k"]),
    )


def work(folder: Path, *, evaluations: int, optimizer: str, n_trees: int, parent: int) -> None:
    """Evaluate proposals until the folder has `evaluations`; the body of one worker process.

    It shares the hold of the search on the folder above, and ends with the process `parent`, which started it: once it
    has the hold and `parent` is there, no other search can begin before it has ended.
    """
    import torch

    torch.set_num_threads(1)
    metric, of_task, parts = read_rows(folder)

    def stop_alone() -> None:
        if os.getppid() != parent:
            sys.exit("the search has ended; its worker stops")

    def score(point: Mapping[str, Any]) -> float:  # Any: NePS's values
        stop_alone()
        return validation_tau(metric, of_task, parts, settings_of(point, n_trees=n_trees))

    with _shared(folder.parent):
        stop_alone()
        spend(folder, FORESTS, score, evaluations=evaluations, optimizer=optimizer)


def spend(
    folder: Path,
    searched: Searched,
    score: Callable[[Mapping[str, Any]], float],  # Any: NePS's values
    *,
    evaluations: int,
    optimizer: str,
) -> None:
    """Score proposals until the folder has `evaluations`, and record each; a NaN is worse than any score."""
    import neps

    logging.getLogger("neps").setLevel(logging.WARNING)

    def evaluate(**proposed: Any) -> dict[str, Any]:  # Any: NePS's values
        point = {name: value.item() if hasattr(value, "item") else value for name, value in proposed.items()}
        started = time.process_time()
        tau = score(point)
        seconds = round(time.process_time() - started, 3)
        _record(folder, {"point": point, "tau": None if math.isnan(tau) else tau, "seconds": seconds})
        return {"objective_to_minimize": _objective(tau)}

    neps.run(
        evaluate_pipeline=evaluate,
        pipeline_space=neps_space(searched, has_priors=optimizer == "pibo"),
        root_directory=folder / "neps",
        total_evaluations_to_spend=evaluations,
        optimizer=optimizer,  # type: ignore[arg-type]  # one of OPTIMIZERS
    )


def history(folder: Path) -> list[TriedSettings]:
    """Return every finished evaluation, in order."""
    if not (folder / "search.json").exists():
        return []
    n_trees = _read_json(folder / "search.json")["n_trees"]
    return [
        TriedSettings(
            number=record["number"],
            settings=settings_of(record["point"], n_trees=n_trees),
            tau=record["tau"],
            seconds=record["seconds"],
        )
        for record in evaluated(folder)
    ]


def start_again(folder: Path, *, optimizer: str, searched: Searched = FORESTS) -> None:
    """Give NePS new records that hold every evaluation that has ended; no worker may be running.

    Also where none has ended: NePS writes them in place, and workers that start together would read half of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, while NePS imports it
        import neps

    shutil.rmtree(folder / "neps", ignore_errors=True)
    done = [(record["point"], {"objective_to_minimize": _objective(record["tau"])}) for record in evaluated(folder)]
    neps.import_trials(
        done,  # type: ignore[arg-type]  # a plain dict is what NePS's typed one is
        folder / "neps",
        neps_space(searched, has_priors=optimizer == "pibo"),
        optimizer=optimizer,  # type: ignore[arg-type]  # one of OPTIMIZERS
    )


@contextmanager
def the_only_search(folder: Path) -> Iterator[None]:
    """Hold the folder for one search; its workers share the hold, so that it lasts until the last of them has ended.

    Raises:
        InvalidArgument: another search, or a worker that outlived one, has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as err:
            raise InvalidArgument(f"a search is running in {folder}; wait for it, or give another folder") from err
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def _shared(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def _objective(tau: float | None) -> float:
    """Return the objective of NePS; an undefined tau, as of constant answers, is worse than any other."""
    return 1.0 if tau is None or math.isnan(tau) else -tau


def _read_json(path: Path) -> Any:  # Any: JSON
    try:
        return parse_json(path.read_bytes())
    except ValueError as err:
        raise CorruptFile(f"{path} cannot be read as JSON: {err}; give a new folder") from err


def evaluated(folder: Path) -> list[dict[str, Any]]:  # Any: JSON
    """Return the point, tau, seconds and number of every evaluation that has ended, in order."""
    found = [_read_json(path) for path in sorted((folder / "evaluations").glob("*.json"))]
    return sorted(found, key=lambda record: record["number"])  # stable: equal numbers stay in order of their digests


def _record(folder: Path, content: dict[str, Any]) -> None:  # Any: JSON
    place = folder / "evaluations"
    place.mkdir(exist_ok=True)
    number = len(list(place.glob("*.json"))) + 1  # of two that end at once both may get the same
    with write_beside(place / f"{digest_facts(content['point'])}.json") as beside:
        beside.write_text(json.dumps({**content, "number": number}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def as_record(evaluation: TriedSettings) -> dict[str, Any]:  # Any: JSON
    """Return an evaluation as JSON."""
    return {
        "number": evaluation.number,
        "settings": asdict(evaluation.settings),
        "tau": evaluation.tau,
        "seconds": evaluation.seconds,
    }
