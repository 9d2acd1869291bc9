"""Search for settings with NePS: search spaces, and a folder that survives a kill at any moment.

    FOLDER/search.json   the facts of the search; a folder is never continued with another one
    FOLDER/evaluations/  a file for each evaluation that has ended, whole or absent
    FOLDER/neps/         NePS's own records, made anew from the evaluations at each start

Finished evaluations count; one that was interrupted is lost. NePS writes its records in place, so a kill can leave them
half-written. The same settings on the same rows always give the same score.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument, ProtocolMismatch
from jahs.files.atomic import hold
from jahs.files.hashing import digest_bytes, digest_facts
from jahs.files.strict_json import parse_json
from surrogate.data.rows import ROW_ARRAYS, Rows
from workshop.folders import write_text

SEARCH_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `lower` to `upper`, both included; `default` is the prior's mode."""

    lower: float
    upper: float
    default: float
    is_log: bool = False
    is_integer: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values; the first is the default."""

    values: tuple[str | bool, ...]


Searched: TypeAlias = Mapping[str, Range | Choice]  # the settings of a search by name
Point: TypeAlias = Mapping[str, Any]  # Any: NePS's values
"""A value for every setting of a search."""


def default_point(searched: Searched) -> dict[str, Any]:  # Any: NePS's values
    """Return the default of every setting."""
    return {
        name: domain.values[0] if isinstance(domain, Choice) else (int if domain.is_integer else float)(domain.default)
        for name, domain in searched.items()
    }


def search(
    folder: Path,
    searched: Searched,
    score: Callable[[Mapping[str, Any]], float],  # Any: NePS's values
    *,
    facts: Mapping[str, object],
    parts: Mapping[str, Rows],
    evaluations: int,
    optimizer: str,
) -> list[dict[str, Any]]:  # Any: JSON
    """Score proposals until the folder has `evaluations` records, and return all of them; see `evaluated`.

    The same scores lead to the same proposals, unless a search was interrupted in between.

    Args:
        score: the higher, the better; NaN is worse than any number.
        facts: facts that identify the search, besides its rows.
        parts: the training and validation rows.
        optimizer: as NePS names it.

    Raises:
        ProtocolMismatch: the folder holds another search.
        CorruptFile: one of its files cannot be read.
        InvalidArgument: another process searches in it.
    """
    with alone(folder):
        _begin(folder, facts, parts)
        if len(records := evaluated(folder)) < evaluations:
            _run_neps(folder, searched, score, records, evaluations=evaluations, optimizer=optimizer)
        return evaluated(folder)


def evaluated(folder: Path) -> list[dict[str, Any]]:  # Any: JSON
    """Return the point, tau, seconds and number of every evaluation that has ended, in order; tau is None for NaN."""
    records = [_read_json(path) for path in sorted((folder / "evaluations").glob("*.json"))]
    return sorted(records, key=lambda record: record["number"])  # stable: equal numbers stay in order of their digests


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder, made if it does not exist, for one search."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        try:
            hold(file)
        except BlockingIOError as err:
            raise InvalidArgument(f"a search is running in {folder}; wait for it, or give another folder") from err
        yield


def _begin(folder: Path, facts: Mapping[str, object], parts: Mapping[str, Rows]) -> None:
    """Record the facts of the search, or check that the folder has the same ones."""
    arrays = [np.ascontiguousarray(getattr(parts[part], name)) for part in ("train", "valid") for name in ROW_ARRAYS]
    rows = digest_bytes(b"".join(values.tobytes() for values in arrays))
    wanted = {**facts, "format": SEARCH_FORMAT, "rows": rows}
    path = folder / "search.json"
    if not path.exists():
        write_text(path, json.dumps(wanted, indent=2, sort_keys=True) + "\n")
        return
    recorded = _read_json(path)
    if not isinstance(recorded, dict):
        raise CorruptFile(f"{path} does not hold an object; give a new folder")
    differing = [
        f"{key}: {recorded.get(key)!r}, not {value!r}" for key, value in wanted.items() if recorded.get(key) != value
    ]
    if differing:
        raise ProtocolMismatch(f"{folder} holds another search ({'; '.join(differing)}); give a new folder")


def _run_neps(
    folder: Path,
    searched: Searched,
    score: Callable[[Mapping[str, Any]], float],  # Any: NePS's values
    records: list[dict[str, Any]],  # Any: JSON
    *,
    evaluations: int,
    optimizer: str,
) -> None:
    """Import the finished evaluations into a new folder of NePS, and let NePS propose the rest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, while NePS imports it
        import neps
    import torch

    torch.set_num_threads(1)
    logging.getLogger("neps").setLevel(logging.WARNING)
    space = _neps_space(searched, has_priors=optimizer == "pibo")

    def evaluate(**proposed: Any) -> dict[str, Any]:  # Any: NePS's values
        point = {name: value.item() if hasattr(value, "item") else value for name, value in proposed.items()}
        started = time.process_time()
        tau = score(point)
        seconds = round(time.process_time() - started, 3)
        _record(folder, {"point": point, "tau": None if math.isnan(tau) else tau, "seconds": seconds})
        return {"objective_to_minimize": _objective(tau)}

    shutil.rmtree(folder / "neps", ignore_errors=True)
    trials: Any = [(r["point"], {"objective_to_minimize": _objective(r["tau"])}) for r in records]  # Any: NePS's
    with torch.random.fork_rng(devices=[]):  # NePS draws from torch's global generator
        torch.manual_seed(len(records))  # a resumed search must not repeat its proposals
        neps.import_trials(
            trials,
            folder / "neps",
            space,
            optimizer=optimizer,  # type: ignore[arg-type]  # the name of an optimiser of NePS
        )
        neps.run(
            evaluate_pipeline=evaluate,
            pipeline_space=space,
            root_directory=folder / "neps",
            total_evaluations_to_spend=evaluations,
            optimizer=optimizer,  # type: ignore[arg-type]  # the name of an optimiser of NePS
        )


def _neps_space(searched: Searched, *, has_priors: bool) -> Any:  # Any: NePS builds its space from a class
    """Return NePS's space; it refuses priors with optimisers that ignore them."""
    import neps

    def parameter_of(domain: Range | Choice) -> Any:  # Any: NePS's parameters
        default: Any = 0 if isinstance(domain, Choice) else domain.default
        prior = {"prior": default, "prior_confidence": "low"} if has_priors else {}
        if isinstance(domain, Choice):
            return neps.Categorical(domain.values, **prior)
        kind = neps.Integer if domain.is_integer else neps.Float
        return kind(domain.lower, domain.upper, log=domain.is_log, **prior)  # type: ignore[arg-type]  # ints are floats

    return type("Space", (neps.PipelineSpace,), {name: parameter_of(domain) for name, domain in searched.items()})()


def _objective(tau: float | None) -> float:
    """Return the objective of NePS; an undefined tau, as of constant answers, is worse than any other."""
    return 1.0 if tau is None or math.isnan(tau) else -tau


def _record(folder: Path, content: dict[str, Any]) -> None:  # Any: JSON
    place = folder / "evaluations"
    place.mkdir(exist_ok=True)
    number = len(list(place.glob("*.json"))) + 1
    record = json.dumps({**content, "number": number}, indent=2, sort_keys=True) + "\n"
    write_text(place / f"{digest_facts(content['point'])}.json", record)


def _read_json(path: Path) -> Any:  # Any: JSON
    try:
        return parse_json(path.read_bytes())
    except ValueError as err:
        raise CorruptFile(f"{path} cannot be read as JSON: {err}; give a new folder") from err
