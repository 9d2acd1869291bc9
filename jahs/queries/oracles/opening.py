"""Open an oracle: choose its kind and its folder.

kind="live" needs `pipeline`, which the wheel lacks, and other packages have that name, too. So the package is located
before any of its code runs: it must lie beside this `jahs` in a checkout of the project.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final, get_args

from jahs.errors import (
    CorruptFile,
    InvalidArgument,
    MissingData,
    MissingDependency,
    ProtocolMismatch,
    UnknownName,
    reading,
)
from jahs.files.hashing import sha256_file
from jahs.files.runs import read_configs, read_profile, read_protocol, read_runs, run_shards
from jahs.models.forest import EngineKind
from jahs.queries.oracles.oracle import Kind, Oracle
from jahs.queries.oracles.repaired import RepairedOracle
from jahs.queries.oracles.surrogate import SurrogateOracle
from jahs.queries.oracles.table import TableOracle
from jahs.release import RecordedTable, Release, find_release, read_release
from jahs.release.manifest import MANIFEST, read_manifest
from jahs.spaces.parameters import is_integer, show
from jahs.tasks.definitions import Task
from jahs.tasks.definitions import task as task_called
from jahs.tasks.own import TASK_NAME, task_of_protocol

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_ANSWER_FILES: Final = ("protocol.json", "configs.parquet", "profile.parquet")
"""The files besides the runs that answers of a folder of runs depend on; the last one may be missing."""

_ROOT = Path(__file__).resolve().parents[3]
_ADVICE = (
    "clone the project, install its workshops (pip install -e '.[workshops]') and run from the checkout; "
    "kind='surrogate' answers without it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleRequest:
    """The arguments of `jahs.Benchmark` that select the oracle."""

    task: str
    kind: Kind
    engine: EngineKind  # engine of a surrogate
    release: Path | None  # a folder in place of the usual ones
    save_dir: Path | None  # a folder that is searched before the usual ones
    sha256: str | None = None  # required value of `OpenedOracle.sha256`; None: any
    refit: int | None = None  # number of the refit that answers; None: the models themselves
    model: str | None = None  # family whose models answer where it has any; None: the release's own


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedOracle:
    """An oracle and where it comes from."""

    oracle: Oracle
    description: str  # its source, in a few words
    folder: Path | None = None  # the folder that was opened
    release: Release | None = None  # its release, if the folder is one
    sha256: str | None = None  # digest of everything that answers depend on; None if there is no such digest
    table: RecordedTable | None = None  # its recorded runs, if the folder holds runs


def open_oracle(request: OracleRequest) -> OpenedOracle:
    """Open the requested oracle; see `jahs.Benchmark`."""
    _check(request)
    if request.kind == "live":
        return OpenedOracle(oracle=open_live(task_called(request.task)), description="trains on this machine")
    if (runs := _runs_folder(request)) is not None:
        return _open_runs(runs, request)
    folder = _find(request)
    release = read_release(folder)
    if release.task.name != task_called(request.task).name:
        raise ProtocolMismatch(f"{folder} is a release of {release.task.name}, not of {request.task}")
    _check_digest(request, release.sha256, folder)  # before any other file is parsed
    description = f"{release.facts.get('version', 'no version')}, {folder}"
    oracle: Oracle
    if request.kind == "table":
        oracle = TableOracle(release.table, release.task)
    else:
        release.check_task()
        refit = read_refit(request.refit, release)
        model_oracle = SurrogateOracle(release, engine=request.engine, refit=refit, model=request.model)
        oracle = RepairedOracle(model_oracle) if model_oracle.costs == "repaired" else model_oracle
        variant = "" if request.refit is None else f", refit {request.refit}"
        variant += "" if request.model is None else f", {request.model}"
        description = f"{description}{variant}, {model_oracle.engine} engine"
    return OpenedOracle(oracle=oracle, description=description, folder=folder, release=release, sha256=release.sha256)


def _check(request: OracleRequest) -> None:
    """Refuse arguments that do not exist or do not fit together."""
    if not isinstance(request.engine, str) or request.engine not in get_args(EngineKind):
        kinds = ", ".join(map(repr, get_args(EngineKind)))
        raise UnknownName(f"engine {show(request.engine)} does not exist; there are {kinds}")
    if request.sha256 is not None and not (isinstance(request.sha256, str) and _SHA256.fullmatch(request.sha256)):
        raise InvalidArgument(
            f"sha256={show(request.sha256)} is not 64 lower-case hex digits; `jahs verify --json` prints them"
        )
    for name, choice in (("refit", request.refit), ("model", request.model)):
        if choice is not None and request.kind != "surrogate":
            raise InvalidArgument(f"{name}={show(choice)}: kind={request.kind!r} has no models; leave {name} out")
    if request.refit is not None and request.model is not None:
        raise InvalidArgument(
            f"refit={show(request.refit)} and model={show(request.model)}: refits are of the release's own models; "
            "leave one of them out"
        )
    for name, value in (("release", request.release), ("sha256", request.sha256)):
        if request.kind == "live" and value is not None:
            raise InvalidArgument(f"{name}={value}: kind='live' trains, and reads no release; leave it out")


def _check_digest(request: OracleRequest, sha256: str, folder: Path) -> None:
    if request.sha256 not in {None, sha256}:
        raise ProtocolMismatch(
            f"{folder} has sha256 {sha256}, but sha256={request.sha256} was required; give the folder of the required "
            "release, or leave sha256 out"
        )


def read_refit(refit: object, release: Release) -> int | None:
    """Return the number of the requested refit, or None; UnknownName if it does not exist."""
    if refit is None:
        return None
    if not is_integer(refit):
        raise InvalidArgument(f"refit={show(refit)} is not an integer; give the number of a refit, or None")
    n = release.refits.n_refits
    if not 0 <= refit < n:
        raise UnknownName(f"refit={refit} does not exist; {release!r} has the refits 0 to {n - 1}")
    return int(refit)


def _find(request: OracleRequest) -> Path:
    """Return the release's folder; the error for a missing one says how to get the published data of the task."""
    try:
        return find_release(request.task, request.release, save_dir=request.save_dir)
    except MissingData as err:
        from jahs.published import fetching, sources  # only if a release is missing: they load readers of archives

        if request.release is not None or request.task not in sources.PUBLISHED_TASKS:
            raise
        what = "table" if request.kind == "table" else "surrogates"
        raise MissingData(f"{err}\n{fetching.how_to_get(request.task, what)}") from err


def sha256_of(request: OracleRequest) -> str | None:
    """Return the `OpenedOracle.sha256` that opening would give now, without opening."""
    if request.kind == "live":
        return None
    if (runs := _runs_folder(request)) is not None:
        return _sha256_of_runs(runs)
    return read_manifest(find_release(request.task, request.release, save_dir=request.save_dir)).sha256


def _runs_folder(request: OracleRequest) -> Path | None:
    """Return the folder of runs that a table is read from, None if it is read from a release."""
    if request.kind != "table" or request.release is None:
        return None
    places = [request.release]
    with reading(request.release):
        if TASK_NAME.fullmatch(request.task) and not (request.release / MANIFEST).is_file():
            places.append(request.release / request.task)
        return next((place for place in places if (place / "protocol.json").is_file()), None)


def _open_runs(folder: Path, request: OracleRequest) -> OpenedOracle:
    """Open a folder of runs in the format of `jahs.files.runs`, which requires pyarrow."""
    protocol = read_protocol(folder)
    try:
        task = task_of_protocol(protocol.facts)
    except (InvalidArgument, UnknownName) as err:
        raise CorruptFile(f"{folder / 'protocol.json'}: {err}") from err
    if task.name != task_called(request.task).name:
        raise ProtocolMismatch(f"{folder} has runs of {task.name}, not of {request.task}")
    _check_digest(request, sha256 := _sha256_of_runs(folder), folder)
    table = RecordedTable(configs=read_configs(folder), runs=read_runs(folder), profile=read_profile(folder))
    return OpenedOracle(
        oracle=TableOracle(table, task), description=f"runs, {folder}", folder=folder, sha256=sha256, table=table
    )


def _sha256_of_runs(folder: Path) -> str:
    files = [*(folder / name for name in _ANSWER_FILES), *run_shards(folder)]
    digests = []
    for file in files:
        with reading(file):
            if file.is_file():
                digests.append(sha256_file(file))
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def open_live(task: Task, *, root: Path = _ROOT) -> Oracle:
    """Return the oracle that trains, `pipeline.live.LiveOracle`.

    MissingDependency says what to do if this `jahs`, which lies in `root`, is not part of a checkout, `pipeline` is
    absent or another package of that name, or one of its dependencies is not installed.
    """
    init = root / "pipeline" / "__init__.py"
    pyproject = root / "pyproject.toml"
    if not init.is_file() or not pyproject.is_file() or not _is_jahs_project(pyproject):
        raise MissingDependency(
            f"kind='live' trains networks, which requires a checkout, and {root} is not one; {_ADVICE}"
        )
    try:
        spec = find_spec("pipeline")  # looks up a top-level package without running it
    except ValueError:  # a module that was put into sys.modules by hand
        spec = None
    if spec is None or spec.origin is None:
        raise MissingDependency(
            f"kind='live': Python does not find the package pipeline; run from {root}, which has it"
        )
    if Path(spec.origin).resolve() != init:
        raise MissingDependency(
            f"kind='live': the pipeline that Python finds is {spec.origin}, not {init.parent}; it was not imported. "
            f"Run from {root}, and without the other one on the path"
        )
    try:
        oracle: Oracle = import_module("pipeline.live").LiveOracle(task)
    except ModuleNotFoundError as err:
        raise MissingDependency(f"kind='live' needs {err.name}: pip install -e '.[workshops]' in {root}") from err
    return oracle


def _is_jahs_project(pyproject: Path) -> bool:
    text = pyproject.read_text(encoding="utf-8", errors="replace")
    return re.search(r'^name = "jahs"$', text, re.MULTILINE) is not None
