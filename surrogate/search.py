"""One metric's search with NePS: its space, one worker, and what a folder holds.

    FOLDER/search.json   what is searched; a folder is never continued with anything else
    FOLDER/rows.npz      training and validation rows, so that every worker reads the same
    FOLDER/neps/         NePS's own records; workers agree through them

Workers are processes on one folder; each may end at any moment, as by kill -9. What it was evaluating is given back
when the search is started again, and evaluated once more: the same settings on the same rows give the same score.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.atomic import write_beside
from jahs.errors import CorruptFile, InvalidArgument, ProtocolMismatch
from jahs.hashing import digest_bytes
from jahs.tasks import Task, task
from surrogate.dataset import Rows
from surrogate.model import Settings, fit_surrogate
from surrogate.scores import kendall_tau

__all__ = [
    "OPTIMIZERS",
    "SEARCH_FORMAT",
    "Evaluation",
    "as_record",
    "give_back",
    "history",
    "read_rows",
    "settings_of",
    "start_search",
    "the_only_search",
    "validation_tau",
    "work",
]

SEARCH_FORMAT: Final = 1
OPTIMIZERS: Final = ("pibo", "bayesian_optimization", "random_search")
"""pibo: Bayesian optimisation with priors, as in the paper."""

_SMALLEST_SHARE: Final = 0.001  # XGBoost refuses 0; one column is drawn at least
_ARRAYS: Final = ("X", "y", "config_id", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One setting that was tried; `tau` is None where the fit failed."""

    number: str
    settings: Settings
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
            found = json.loads(recorded.read_bytes())
            differing = [
                f"{key}: {found.get(key)!r}, not {value!r}" for key, value in wanted.items() if found.get(key) != value
            ]
        except (ValueError, AttributeError) as err:
            raise CorruptFile(f"{recorded} cannot be read: {err}; give a new folder") from err
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
    facts = json.loads((folder / "search.json").read_bytes())
    with np.load(folder / "rows.npz", allow_pickle=False) as arrays:
        parts = {part: Rows(**{name: arrays[f"{part}_{name}"] for name in _ARRAYS}) for part in ("train", "valid")}
    return facts["metric"], task(facts["task"]), parts


def validation_tau(metric: str, of_task: Task, parts: Mapping[str, Rows], settings: Settings) -> float:
    """Fit on the training rows; return Kendall's tau on all validation rows."""
    fitted = fit_surrogate(metric, parts["train"], of_task, settings=settings)
    valid = parts["valid"]
    measured = valid.y * valid.epoch if fitted.target == "per_epoch" else valid.y
    return kendall_tau(measured, fitted.predict(valid.X))


def settings_of(proposed: Mapping[str, Any], *, n_trees: int) -> Settings:  # Any: NePS's values
    """The settings that a point of the space stands for."""
    return Settings(
        n_trees=n_trees,
        max_depth=int(proposed["max_depth"]),
        min_child_weight=int(proposed["min_child_weight"]),
        colsample_bytree=float(proposed["colsample_bytree"]),
        colsample_bylevel=float(proposed["colsample_bylevel"]),
        learning_rate=float(proposed["learning_rate"]),
        slope=float(proposed["sigmoid_k"]),
    )


def work(folder: Path, *, evaluations: int, optimizer: str, n_trees: int) -> None:
    """Evaluate proposals until the folder has `evaluations`; the body of one worker process."""
    import neps
    import torch

    torch.set_num_threads(1)
    logging.getLogger("neps").setLevel(logging.WARNING)
    metric, of_task, parts = read_rows(folder)
    parent = os.getppid()

    def evaluate(**proposed: Any) -> dict[str, Any]:  # Any: NePS's values
        if os.getppid() != parent:
            sys.exit("the search has ended; its worker stops")
        started = time.process_time()
        settings = settings_of(proposed, n_trees=n_trees)
        tau = validation_tau(metric, of_task, parts, settings)
        seconds = time.process_time() - started
        return {"objective_to_minimize": -tau, "info_dict": {"seconds": seconds}}

    with _shared(folder):
        neps.run(
            evaluate_pipeline=evaluate,
            pipeline_space=_space(has_priors=optimizer == "pibo"),
            root_directory=folder / "neps",
            total_evaluations_to_spend=evaluations,
            optimizer=optimizer,  # type: ignore[arg-type]  # one of OPTIMIZERS
            objective_value_on_error=1.0,
            ignore_errors=True,
        )


def history(folder: Path) -> list[Evaluation]:
    """Every evaluation that has ended, in the order in which they were proposed."""
    if not (folder / "neps").is_dir():
        return []
    found = []
    n_trees = json.loads((folder / "search.json").read_bytes())["n_trees"]
    for number, trial in sorted(_state(folder).lock_and_read_trials().items(), key=lambda pair: int(pair[0])):
        if trial.report is not None:
            is_good = trial.report.reported_as == "success" and trial.report.objective_to_minimize is not None
            seconds = (trial.report.extra or {}).get("seconds")
            found.append(
                Evaluation(
                    number=number,
                    settings=settings_of(trial.config, n_trees=n_trees),
                    tau=-float(trial.report.objective_to_minimize) if is_good else None,
                    seconds=None if seconds is None else round(float(seconds), 3),
                )
            )
    return found


def give_back(folder: Path) -> int:
    """Put what ended workers were evaluating back in the queue; return how many there were."""
    configs = folder / "neps" / "configs"
    if not configs.is_dir():
        return 0
    for trial in configs.glob("config_*"):
        if not all((trial / name).is_file() for name in ("config.yaml", "metadata.yaml")):
            shutil.rmtree(trial)  # its worker ended while it was writing the proposal
    state = _state(folder)
    stuck = state.lock_and_get_current_evaluating_trials()
    for trial in stuck:
        state.lock_and_reset_trial_by_id(trial.id)
    return len(stuck)


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


def _space(*, has_priors: bool) -> Any:  # Any: NePS builds its space from a class
    """The paper's space; NePS refuses priors where the optimiser would not look at them."""
    import neps

    def prior(value: float) -> dict[str, Any]:  # Any: NePS's keywords
        return {"prior": value, "prior_confidence": "low"} if has_priors else {}

    class Space(neps.PipelineSpace):
        max_depth = neps.Integer(1, 15, **prior(6))
        min_child_weight = neps.Integer(1, 10, **prior(1))
        colsample_bytree = neps.Float(_SMALLEST_SHARE, 1.0, **prior(1.0))
        learning_rate = neps.Float(0.001, 0.5, log=True, **prior(0.3))
        colsample_bylevel = neps.Float(_SMALLEST_SHARE, 1.0, **prior(1.0))
        sigmoid_k = neps.Float(0.01, 2.0, log=True, **prior(1.0))

    return Space()


def _state(folder: Path) -> Any:  # Any: NePS's own class
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, while NePS imports it
        from neps.state import NePSState

    return NePSState.create_or_load(folder / "neps", load_only=True)


def as_record(evaluation: Evaluation) -> dict[str, Any]:  # Any: JSON
    """An evaluation as JSON holds it."""
    return {
        "number": evaluation.number,
        "settings": asdict(evaluation.settings),
        "tau": evaluation.tau,
        "seconds": evaluation.seconds,
    }
