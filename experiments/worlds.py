"""Two worlds over the same recorded configs: measured values, and cross-validated predictions.

    DIR/worlds/<task>.npz    configs, and for each world and metric an array (n_configs, n_epochs)

Any config gets the answer of the nearest recorded config, the same one in both worlds, so optimisers search both
unchanged. The recorded configs are those with a finished run on the processor of the runtimes
(`jahs.files.runs.timing_machine`). Measured values are means over seeds.
"""

from __future__ import annotations

import functools
import io
import lzma
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast, overload

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.packs import MANIFEST, is_pack, read_manifest
from jahs.errors import CorruptFile, InvalidArgument, MissingData
from jahs.files.atomic import write_beside
from jahs.files.runs import is_timed
from jahs.files.tables import take
from jahs.queries.queryable import At, Queryable
from jahs.release import RecordedTable
from jahs.schema import CONFIG_KEYS, RUN_COLUMNS
from jahs.spaces.columns import Configs
from jahs.spaces.configs import Config
from jahs.spaces.encoding import encode
from jahs.spaces.fidelities import read_budget, read_epoch, read_epochs
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.space import Space
from jahs.tasks.definitions import Task, task
from jahs.tasks.metrics import METRICS, Metric
from splits.folds import k_folds
from surrogate.data.measurements import Measurements
from surrogate.data.rows import assemble
from surrogate.models.model import ForestSettings, fit_surrogate

__all__ = [
    "METRIC_NAMES",
    "WORLD_NAMES",
    "World",
    "Worlds",
    "build_worlds",
    "open_world",
    "quality_of_worlds",
    "read_worlds",
    "worlds_path",
    "write_worlds",
]

Floats = NDArray[np.float64]
WorldName = Literal["table", "left_out"]

METRIC_NAMES: Final = ("valid_acc", "test_acc", "runtime")
WORLD_NAMES: Final[tuple[WorldName, ...]] = ("table", "left_out")
_UNREADABLE: Final = (
    OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError,
    RuntimeError,
)  # fmt: skip
"""Errors that numpy raises for damaged zip archives."""

_WORLDS_FORMAT: Final = 1
_FEWEST: Final = 50
_SETTINGS: Final = ForestSettings(n_trees=300, learning_rate=0.1)
_BLOCK: Final = 256  # proposals compared with every recorded config at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worlds:
    """The answers of both worlds.

    Attributes:
        task: the task.
        X: encoded configs, (n_configs, 14).
        answers: by world and metric, (n_configs, n_epochs).
        n_folds: number of folds of the cross-validation.
    """

    task: Task
    X: NDArray[np.float32]
    answers: Mapping[WorldName, Mapping[str, Floats]]
    n_folds: int

    def agreement(self, metric: str) -> tuple[float, float]:
        """Return Kendall's tau and R2 between the worlds at the last epoch: the quality of the held-out predictions."""
        table, left_out = (self.answers[name][metric][:, -1] for name in WORLD_NAMES)
        residual = float(((table - left_out) ** 2).sum() / ((table - table.mean()) ** 2).sum())
        return float(stats.kendalltau(table, left_out).statistic), 1 - residual


class World:
    """The part of a benchmark that simulations use, answered with the nearest recorded config."""

    def __init__(self, worlds: Worlds, name: WorldName) -> None:
        self.task = worlds.task
        self.name = name
        self.space = Space()
        self.max_epoch = worlds.task.max_epoch
        self.fidelities: Mapping[str, tuple[float, ...]] = {"epoch": tuple(range(1, self.max_epoch + 1))}
        self.full: Mapping[str, float] = {"epoch": self.max_epoch}
        self.metrics: Mapping[str, Metric] = {metric: METRICS[metric] for metric in METRIC_NAMES}
        self._answers = worlds.answers[name]
        self._places = _places(worlds.X)

    @overload
    def sample(self, n: None = None, *, seed: int | None) -> Config: ...
    @overload
    def sample(self, n: int, *, seed: int | None) -> list[Config]: ...
    def sample(self, n: int | None = None, *, seed: int | None) -> Config | list[Config]:
        """Return random configs of the joint space."""
        return self.space.sample(n, seed=seed)

    def fidelity(self, at: object = None) -> dict[str, float]:
        """Return the fidelity with its epoch rounded, half to even."""
        return {"epoch": self.max_epoch if at is None else read_budget(at, self.max_epoch)}

    def nearest(self, configs: Configs) -> NDArray[np.intp]:
        """Return the rows of the nearest recorded configs, (n,); the first of equally near ones.

        A different choice counts 1, a step of N, W or Resolution 1/2, and the range of a float 1 on its log scale.
        """
        asked = _places(encode(configs, 1)[:, :-1])
        found = np.empty(len(asked), dtype=np.intp)
        for at in range(0, len(asked), _BLOCK):
            block = asked[at : at + _BLOCK, None]
            apart = np.where(_IS_CHOICE, block != self._places, np.abs(block - self._places))
            found[at : at + _BLOCK] = apart.sum(axis=2).argmin(axis=1)
        return found

    def query_many(
        self,
        configs: Configs,
        *,
        at: At | Sequence[At] | None = None,
        each_at: Sequence[At] | NDArray[np.integer] | None = None,
        seed: int | NDArray[np.integer] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> dict[str, Floats]:
        """Return metrics of the nearest recorded configs, (n,) each: at one epoch, or at one for each.

        Raises:
            InvalidArgument: a seed is given; means have no training noise.
        """
        if seed is not None:
            raise InvalidArgument(f"seed={seed!r} must be None: recorded means have no training noise to draw")
        rows = self.nearest(configs)
        last = self.max_epoch
        one = last if at is None else read_epoch(at, last)
        epochs = np.full(len(rows), one) if each_at is None else read_epochs(each_at, last)
        return {name: self._answers[name][rows, epochs - 1] for name in metrics or METRIC_NAMES}


def build_worlds(
    recorded: RecordedTable, of_task: Task, *, n_folds: int = 5, seed: int = 0, settings: ForestSettings | None = None
) -> Worlds:
    """Return measured values and cross-validated predictions of every recorded config.

    Args:
        recorded: the recorded runs of a release.
        of_task: their task.
        n_folds: number of folds; models fitted on the others predict each.
        seed: seeds the folds.
        settings: settings of the models.

    Raises:
        MissingData: too few configs have a finished run with a runtime.
    """
    measured = _measurements_of(recorded, of_task)
    ids, table = _recorded_means(measured, of_task.max_epoch)
    if len(ids) < _FEWEST:
        raise MissingData(
            f"{of_task.name}: {len(ids)} configs have a finished run on the processor of the runtimes; "
            f"{_FEWEST} are needed"
        )
    configs = take(measured.configs, np.searchsorted(measured.configs["config_id"], ids))
    X = encode({key: configs[key] for key in CONFIG_KEYS}, 1)
    left_out = {name: np.empty_like(table[name]) for name in METRIC_NAMES}
    folds = list(k_folds(configs, n_folds, seed=seed))
    for name in METRIC_NAMES:
        rows = assemble(name, measured)
        for _, held_out in folds:
            kept = rows.take(~np.isin(rows.config_id, ids[held_out]))
            model = fit_surrogate(name, kept, of_task, settings=settings or _SETTINGS)
            asked = np.repeat(X[held_out], of_task.max_epoch, axis=0)
            asked[:, -1] = np.tile(np.arange(1, of_task.max_epoch + 1), len(held_out))
            left_out[name][held_out] = model.predict(asked).reshape(len(held_out), of_task.max_epoch)
    return Worlds(task=of_task, X=X[:, :-1], answers={"table": table, "left_out": left_out}, n_folds=n_folds)


def write_worlds(path: Path, worlds: Worlds) -> None:
    """Write both worlds, completely or not at all."""
    arrays = {f"{world}.{name}": values for world in WORLD_NAMES for name, values in worlds.answers[world].items()}
    header = np.array([_WORLDS_FORMAT, worlds.n_folds], dtype=np.int64)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_beside(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, header=header, X=worlds.X, **arrays)  # type: ignore[arg-type]  # arrays by name


def read_worlds(path: Path, task_name: str) -> Worlds:
    """Read both worlds.

    Raises:
        MissingData: the file does not exist.
        CorruptFile: the file is damaged, or has another format.
    """
    if not path.is_file():
        raise MissingData(f"{path} does not exist; python -m experiments.run truth builds it")
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            version, n_folds = file["header"].tolist()
            if version != _WORLDS_FORMAT:
                raise CorruptFile(f"{path}: format {version}; this version reads {_WORLDS_FORMAT}")
            answers = {world: {name: file[f"{world}.{name}"] for name in METRIC_NAMES} for world in WORLD_NAMES}
            return Worlds(task=task(task_name), X=file["X"], answers=answers, n_folds=n_folds)
    except _UNREADABLE as err:
        if isinstance(err, CorruptFile):
            raise
        raise CorruptFile(f"{path} cannot be read: {err}; remove it, and it is built again") from err


def quality_of_worlds(study: Path, task_name: str) -> dict[str, Any]:  # Any: JSON
    """Return what a page says about the worlds of a task, as JSON; from its worlds, or from the pack of the study.

    Raises:
        MissingData, CorruptFile: see `read_worlds`.
    """
    if is_pack(study):
        return dict(read_manifest(study / MANIFEST)["worlds"][task_name])
    worlds = read_worlds(worlds_path(study, task_name), task_name)
    agreement = [[name, *worlds.agreement(name)] for name in METRIC_NAMES]
    return {"n_folds": worlds.n_folds, "n_configs": len(worlds.X), "agreement": agreement}


def worlds_path(study: Path, task_name: str) -> Path:
    """Return the path of a task's worlds in the folder of a study."""
    return study / "worlds" / f"{task_name}.npz"


@functools.lru_cache(maxsize=8)
def open_world(path: Path, task_name: str, name: WorldName) -> Queryable:
    """Return a world; it is read once per process."""
    return cast("Queryable", World(read_worlds(path, task_name), name))  # simulations use `query_many` alone


def _measurements_of(recorded: RecordedTable, of_task: Task) -> Measurements:
    """Return the recorded runs of a release as measurements to fit."""
    configs = take(recorded.configs, np.argsort(recorded.configs["config_id"], kind="stable"))
    protocol = str(recorded.runs["protocol"][0]) if len(recorded.runs["protocol"]) else ""
    return Measurements(task=of_task, protocol=protocol, configs=configs, runs=recorded.runs, profile=recorded.profile)


def _recorded_means(measured: Measurements, max_epoch: int) -> tuple[NDArray[np.uint64], dict[str, Floats]]:
    """Return ascending ids of configs with finished timed runs, and means over seeds, (n_configs, max_epoch)."""
    runs = {name: measured.runs[name] for name in RUN_COLUMNS}
    rows = take(runs, (runs["status"] == "finished") & is_timed(runs, measured.timing_machine))
    rows = take(rows, np.lexsort((rows["epoch"], rows["seed"], rows["config_id"])))
    ids, first, counts = np.unique(rows["config_id"], return_index=True, return_counts=True)
    if np.any(counts % max_epoch):
        raise CorruptFile("a finished run must have every epoch")
    means = {
        name: np.add.reduceat(rows[name].astype(np.float64).reshape(-1, max_epoch), first // max_epoch, axis=0)
        / (counts // max_epoch)[:, None]
        for name in METRIC_NAMES
        if len(ids)
    }
    return ids.astype(np.uint64), means


_IS_CHOICE: Final = np.array([PARAMETERS[key].kind not in {"float", "ordinal"} for key in CONFIG_KEYS])


def _places(X: NDArray[np.float32]) -> Floats:
    """Return encoded configs scaled for distances: floats in 0..1 on their log scale, ordinals in steps of 1/2."""
    places = X.astype(np.float64)
    for j, key in enumerate(CONFIG_KEYS):
        parameter = PARAMETERS[key]
        if parameter.kind == "float":
            span = np.log(parameter.upper / parameter.lower)
            places[:, j] = np.log(places[:, j] / parameter.lower) / span
        elif parameter.kind == "ordinal":
            codes = np.array(parameter.codes, dtype=np.float64)
            places[:, j] = np.searchsorted(codes, places[:, j]) / (len(codes) - 1)
    return places
