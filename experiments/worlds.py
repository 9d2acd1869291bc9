"""Two worlds over the same recorded configs: recorded trainings, and cross-validated predictions with training noise.

    DIR/worlds/<task>.npz    configs; means of both worlds, (n_configs, n_epochs); each recorded run; the noise model

Both worlds answer with one training: a recorded one, or the prediction with a draw of the release's noise. Only
recorded configs can be asked; `FromPool` in `experiments.repetitions` lets any optimiser propose them. They are those
with a finished run on the processor of the runtimes (`jahs.files.runs.timing_machine`).
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.packs import MANIFEST, is_pack, read_manifest
from jahs.comparison.logs import Floats
from jahs.errors import CorruptFile, InvalidArgument, MissingData, NotRecorded
from jahs.files.atomic import write_beside
from jahs.files.runs import is_timed
from jahs.files.tables import take
from jahs.models.noise import NoiseModel
from jahs.release import RecordedTable
from jahs.schema import CONFIG_KEYS, RUN_COLUMNS
from jahs.spaces.columns import Configs, config_ids, rows
from jahs.spaces.configs import Config, Sampler
from jahs.spaces.encoding import decode_columns, encode
from jahs.spaces.fidelities import read_budget
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.space import Space
from jahs.tasks.definitions import Task, task
from jahs.tasks.metrics import METRICS, Metric
from splits.folds import k_folds
from surrogate.data.measurements import Measurements
from surrogate.data.rows import assemble
from surrogate.judging.agreement import agreement
from surrogate.models.boosting import UNTUNED, ForestSettings
from surrogate.models.model import fit_surrogate

WorldName = Literal["table", "left_out"]

METRIC_NAMES: Final = ("valid_acc", "test_acc", "runtime")
WORLD_NAMES: Final[tuple[WorldName, ...]] = ("table", "left_out")
_WORLDS_FORMAT: Final = 2
_FEWEST: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worlds:
    """The answers of both worlds."""

    task: Task
    X: NDArray[np.float32]  # encoded configs, (n_configs, 14)
    # Means by world and metric, (n_configs, n_epochs): over the recorded runs of each config, and predicted.
    answers: Mapping[WorldName, Mapping[str, Floats]]
    runs: Mapping[str, Floats]  # the recorded runs by metric, (n_runs, n_epochs), grouped by config
    first: NDArray[np.int64]  # number of each config's first run, and finally the number of all runs, (n_configs + 1,)
    noise: NoiseModel
    n_folds: int  # number of folds of the cross-validation


class World(Sampler):
    """The part of a benchmark that simulations use, restricted to recorded configs."""

    def __init__(self, worlds: Worlds, name: WorldName) -> None:
        self.task = worlds.task
        self.name = name
        self.space = Space()
        self.max_epoch = worlds.task.max_epoch
        self.fidelities: Mapping[str, tuple[float, ...]] = {"epoch": tuple(range(1, self.max_epoch + 1))}
        self.full: Mapping[str, float] = {"epoch": self.max_epoch}
        self.metrics: Mapping[str, Metric] = {metric: METRICS[metric] for metric in METRIC_NAMES}
        self._worlds = worlds
        self._places = _places(worlds.X)
        coded = np.column_stack([worlds.X, np.ones(len(worlds.X), dtype=np.float32)])
        self.configs: Final = rows(decode_columns(coded)[0])
        self._ids = config_ids(self.configs)
        self._rows = {identity: row for row, identity in enumerate(self._ids.tolist())}

    def _sample(self, n: int, seed: int | None) -> list[Config]:
        """Return random recorded configs, without repetition if there are enough."""
        rng, n_all = np.random.default_rng(seed), len(self.configs)
        order = np.concatenate([rng.permutation(n_all) for _ in range(-(-n // n_all))])[:n]
        return [self.configs[row].copy() for row in order.tolist()]

    def fidelity(self, at: object = None) -> dict[str, float]:
        """Return the fidelity with its epoch rounded, half to even."""
        return {"epoch": self.max_epoch if at is None else read_budget(at, self.max_epoch)}

    def nearest(self, config: Config, *, without: Collection[int] = ()) -> Config:
        """Return the nearest recorded config, the first of equally near ones.

        A different choice counts 1, a step of N, W or Resolution 1/2, and the range of a float 1 on its log scale.

        Args:
            without: ids of configs to leave out; if these are all configs, none is left out.
        """
        place = _places(encode([config], 1)[:, :-1])
        distances = np.where(_IS_CHOICE, place != self._places, np.abs(place - self._places)).sum(axis=1)
        is_out = np.isin(self._ids, np.array([*without], dtype=np.uint64))
        if not is_out.all():
            distances[is_out] = np.inf
        return self.configs[int(distances.argmin())].copy()

    def query_many(
        self,
        configs: Configs,
        *,
        each_at: NDArray[np.int64] | None = None,
        seed: int | None = None,
        metrics: Sequence[str] | None = None,
    ) -> dict[str, Floats]:
        """Return metrics of one training of each config, (n,) each, at an epoch for each, as simulations request them.

        A seed chooses among the recorded runs of a config, most of which have one, or among as many draws of the noise.
        """
        if seed is None:
            raise InvalidArgument("seed=None asks for means, but most configs were trained once; give a seed")
        ids = config_ids(configs)
        if unknown := [identity for identity in ids.tolist() if identity not in self._rows]:
            raise NotRecorded(f"{len(unknown)} configs are not recorded, first {unknown[0]:016x}; see World.configs")
        at_rows = np.array([self._rows[identity] for identity in ids.tolist()], dtype=np.intp)
        epochs = np.full(len(at_rows), self.max_epoch) if each_at is None else each_at
        names = tuple(metrics or METRIC_NAMES)
        first, numbers = self._worlds.first[at_rows], seed % np.diff(self._worlds.first)[at_rows]
        if self.name == "table":
            return {name: self._worlds.runs[name][first + numbers, epochs - 1] for name in names}
        X = np.column_stack([self._worlds.X[at_rows], epochs.astype(np.float32)])
        means = {name: self._worlds.answers[self.name][name][at_rows, epochs - 1] for name in names}
        return self._worlds.noise.draw(means, X, ids, numbers)


def build_worlds(
    recorded: RecordedTable, of_task: Task, noise: NoiseModel, *, n_folds: int = 5, settings: ForestSettings = UNTUNED
) -> Worlds:
    """Return measured values and cross-validated predictions of every recorded config.

    Args:
        noise: the model of the training noise, from the same release.
        n_folds: number of folds; each is predicted by models fitted to the others.
    """
    measured = measurements_of(recorded, of_task)
    ids, first, runs = _recorded_runs(measured, of_task.max_epoch)
    if len(ids) < _FEWEST:
        raise MissingData(
            f"{of_task.name}: {len(ids)} configs have a finished run on the processor of the runtimes; "
            f"{_FEWEST} are needed"
        )
    n_runs = np.diff(first)[:, None]
    table = {name: np.add.reduceat(values, first[:-1], axis=0) / n_runs for name, values in runs.items()}
    configs = take(measured.configs, np.searchsorted(measured.configs["config_id"], ids))
    X = encode({key: configs[key] for key in CONFIG_KEYS}, 1)
    left_out = {name: np.empty_like(table[name]) for name in METRIC_NAMES}
    folds = list(k_folds(configs, n_folds, seed=0))
    for name in METRIC_NAMES:
        rows = assemble(name, measured)
        for _, held_out in folds:
            training = rows.take(~np.isin(rows.config_id, ids[held_out]))
            model = fit_surrogate(name, training, of_task, settings=settings)
            queries = np.repeat(X[held_out], of_task.max_epoch, axis=0)
            queries[:, -1] = np.tile(np.arange(1, of_task.max_epoch + 1), len(held_out))
            left_out[name][held_out] = model.predict(queries).reshape(len(held_out), of_task.max_epoch)
    answers: dict[WorldName, dict[str, Floats]] = {"table": table, "left_out": left_out}
    return Worlds(task=of_task, X=X[:, :-1], answers=answers, runs=runs, first=first, noise=noise, n_folds=n_folds)


def recorded_runtime(recorded: RecordedTable, of_task: Task) -> float:
    """Return the mean runtime in seconds of a full evaluation over the recorded configs: the unit of time in worlds."""
    _, first, runs = _recorded_runs(measurements_of(recorded, of_task), of_task.max_epoch)
    last = runs["runtime"][:, -1]
    return float((np.add.reduceat(last, first[:-1]) / np.diff(first)).mean())


def write_worlds(path: Path, worlds: Worlds) -> None:
    """Write both worlds, completely or not at all."""
    arrays: dict[str, NDArray[Any]] = {  # Any: each has its own type
        f"{world}.{name}": values for world in WORLD_NAMES for name, values in worlds.answers[world].items()
    }
    arrays |= {f"run.{name}": values for name, values in worlds.runs.items()}
    arrays |= {"first": worlds.first, "noise": np.array(json.dumps(worlds.noise.to_dict()))}
    header = np.array([_WORLDS_FORMAT, worlds.n_folds], dtype=np.int64)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_beside(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, header=header, X=worlds.X, **arrays)  # type: ignore[arg-type]  # arrays by name


def read_worlds(path: Path, task_name: str) -> Worlds:
    """Read both worlds."""
    if not path.is_file():
        raise MissingData(f"{path} does not exist; python -m experiments.run truth builds it")
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            version, n_folds = file["header"].tolist()
            if version != _WORLDS_FORMAT:
                raise CorruptFile(f"{path}: format {version}; this version reads {_WORLDS_FORMAT}")
            answers = {world: {name: file[f"{world}.{name}"] for name in METRIC_NAMES} for world in WORLD_NAMES}
            return Worlds(
                task=task(task_name),
                X=file["X"],
                answers=answers,
                runs={name: file[f"run.{name}"] for name in METRIC_NAMES},
                first=file["first"],
                noise=NoiseModel.from_dict(json.loads(str(file["noise"]))),
                n_folds=n_folds,
            )
    except CorruptFile:
        raise
    except Exception as err:  # zip, zlib, lzma, numpy and the system each have errors of their own
        raise CorruptFile(f"{path} cannot be read: {err}; remove it, and it is built again") from err


def quality_of_worlds(study: Path, task_name: str) -> dict[str, Any]:  # Any: JSON
    """Return facts about the worlds of a task as JSON, computed from the worlds or read from the study's pack."""
    if is_pack(study):
        return dict(read_manifest(study / MANIFEST)["worlds"][task_name])
    worlds = read_worlds(worlds_path(study, task_name), task_name)
    scores = {name: agreement(name, *(worlds.answers[of][name][:, -1] for of in WORLD_NAMES)) for name in METRIC_NAMES}
    found = [[name, score["tau"], score["r2"]] for name, score in scores.items()]
    return {"n_folds": worlds.n_folds, "n_configs": len(worlds.X), "agreement": found}


def worlds_path(study: Path, task_name: str) -> Path:
    """Return the path of a task's worlds in the folder of a study."""
    return study / "worlds" / f"{task_name}.npz"


@functools.lru_cache(maxsize=8)
def open_world(path: Path, task_name: str, name: WorldName) -> World:
    """Return a world; it is read once per process."""
    return World(read_worlds(path, task_name), name)


def measurements_of(recorded: RecordedTable, of_task: Task) -> Measurements:
    """Return the recorded runs of a release as measurements to fit."""
    configs = take(recorded.configs, np.argsort(recorded.configs["config_id"], kind="stable"))
    protocol = str(recorded.runs["protocol"][0]) if len(recorded.runs["protocol"]) else ""
    return Measurements(task=of_task, protocol=protocol, configs=configs, runs=recorded.runs, profile=recorded.profile)


def _recorded_runs(
    measured: Measurements, max_epoch: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], dict[str, Floats]]:
    """Return ascending ids of configs with finished timed runs, `Worlds.first`, and the runs, (n_runs, max_epoch)."""
    runs = {name: measured.runs[name] for name in RUN_COLUMNS}
    rows = take(runs, (runs["status"] == "finished") & is_timed(runs, measured.timing_machine))
    rows = take(rows, np.lexsort((rows["epoch"], rows["seed"], rows["config_id"])))
    ids, first = np.unique(rows["config_id"], return_index=True)
    first = np.append(first, len(rows["config_id"]))
    if np.any(first % max_epoch):
        raise CorruptFile("a finished run must have every epoch")
    values = {name: rows[name].astype(np.float64).reshape(-1, max_epoch) for name in METRIC_NAMES}
    return ids.astype(np.uint64), (first // max_epoch).astype(np.int64), values


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
