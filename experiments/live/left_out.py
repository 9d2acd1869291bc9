"""Each optimiser of the study `live` on a surrogate that was fitted to the trainings of the others, but to none of its.

This is the leave-one-optimizer-out study of NAS-Bench-301. A model is fitted to the record of the study's release and
to every full training that the optimiser did not ask for, and another one, by which the first is judged, to the record
alone. Both predict the optimiser's trainings; the first also answers its runs, with drawn noise.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from experiments.folder import StudyFolder
from experiments.live.beside import MEASURED, N_RUNS, SurrogateWorld, read_arrays, simulate, write_arrays
from experiments.live.declared import RELEASE, RUNS, left_out_path, log_path, read_trajectory
from experiments.study import TaskFacts
from experiments.worlds import measurements_of
from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.logs import Floats
from jahs.errors import CorruptFile
from jahs.files.runs import read_configs, read_runs
from jahs.files.tables import concatenate
from jahs.queries.benchmark import Benchmark
from jahs.release import RecordedTable
from jahs.schema import CONFIG_COLUMNS, CONFIG_KEYS, RUN_COLUMNS
from jahs.spaces.columns import config_ids
from jahs.spaces.configs import Config, config_id
from jahs.spaces.encoding import encode
from surrogate.data.measurements import Measurements
from surrogate.data.rows import assemble
from surrogate.models.boosting import UNTUNED
from surrogate.models.model import Surrogate, fit_surrogate

_MAIN: Final = "valid_acc"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeftOut:
    """An optimiser on the surrogate that was not fitted to its trainings."""

    curves: Floats  # (n_seeds, n_runs, n_evaluations), see `experiments.live.declared.curve`
    # The validation accuracy that this surrogate predicts, by id of each config that the optimiser trained.
    with_others: Mapping[int, float]
    with_record: Mapping[int, float]  # the same by the model that was fitted to the record of the release alone


class LeftOutWorld(SurrogateWorld):
    """Models with the noise of a release, on the clock of the study.

    Some optimisers ask for each epoch of a training, so a config is predicted once, at every epoch.
    """

    def __init__(self, bench: Benchmark, models: Mapping[str, Surrogate]) -> None:
        super().__init__(bench)
        self._models, self._noise = models, release_of(bench).noise
        self._curves: dict[int, dict[str, Floats]] = {}

    def _answer(self, configs: Sequence[Config], epochs: NDArray[np.int64], seed: int | None) -> dict[str, Floats]:
        assert seed is not None, "a run draws noise"
        ids = config_ids(configs)
        curves = [self._curve(*each) for each in zip(ids.tolist(), configs, strict=True)]
        means = {
            name: np.array([curve[name][epoch - 1] for curve, epoch in zip(curves, epochs.tolist(), strict=True)])
            for name in self._models
        }
        drawn: dict[str, Floats] = self._noise.draw(means, encode(configs, epochs), ids, seed)
        return drawn

    def _curve(self, identity: int, config: Config) -> dict[str, Floats]:
        """Return the predicted means of a config, (max_epoch,) for each metric."""
        if identity not in self._curves:
            X = encode([config] * self.max_epoch, np.arange(1, self.max_epoch + 1))
            self._curves[identity] = {name: model.predict(X) for name, model in self._models.items()}
        return self._curves[identity]


def run_left_out(folder: StudyFolder, arm: str) -> None:
    """Fit the models of one optimiser, run it, and write the result."""
    ((task, facts),) = folder.tasks.items()
    bench = open_benchmark(task, folder.path / RELEASE)
    ids, own = _trained_configs(folder, task, arm, bench.max_epoch)
    with_others = measurements_of(_with_trainings(bench, folder.path / RUNS), bench.task)
    models = {name: _fit(name, with_others, without=ids) for name in MEASURED}
    X = encode(own, bench.max_epoch)
    world = LeftOutWorld(bench, models)
    curves = [
        simulate(world, folder.study.arm(arm), facts, seed=seed, n_runs=N_RUNS) for seed in range(folder.study.n_seeds)
    ]
    write_arrays(
        left_out_path(folder.path, arm),
        facts,
        curves=np.stack(curves),
        ids=ids,
        with_others=models[_MAIN].predict(X),
        with_record=_fit_to_record(folder.path / RELEASE, task, facts.release).predict(X),
    )


def _trained_configs(
    folder: StudyFolder, task: str, arm: str, max_epoch: int
) -> tuple[NDArray[np.uint64], list[Config]]:
    """Return the different configs that an optimiser trained to the last epoch, and their ids."""
    logs = [read_trajectory(log_path(folder.path, task, arm, seed)) for seed in range(folder.study.n_seeds)]
    found = {
        config_id(trial.config): trial.config
        for log in logs
        for trial in (log.trials if log else ())
        if trial.fidelity["epoch"] == max_epoch
    }
    return np.array([*found], dtype=np.uint64), [*found.values()]


def _with_trainings(bench: Benchmark, runs: Path) -> RecordedTable:
    """Return the record of a release together with the trainings of the study."""
    table = release_of(bench).table
    columns = {name: CONFIG_COLUMNS[name] for name in ("config_id", *CONFIG_KEYS)}
    return RecordedTable(
        configs=concatenate([table.configs, read_configs(runs)], columns),
        runs=concatenate([table.runs, read_runs(runs)], RUN_COLUMNS),
        profile=table.profile,
    )


@functools.lru_cache(maxsize=1)
def _fit_to_record(path: Path, task: str, release: str) -> Surrogate:  # noqa: ARG001  # the digest tells releases apart
    """Return the model that was fitted to the record of a release alone, the same for every optimiser."""
    bench = open_benchmark(task, path)
    return _fit(_MAIN, measurements_of(release_of(bench).table, bench.task), without=np.empty(0, np.uint64))


def _fit(name: str, measured: Measurements, *, without: NDArray[np.uint64]) -> Surrogate:
    """Return the model of a metric that was fitted to measurements, without the configs of these ids."""
    rows = assemble(name, measured)
    return fit_surrogate(name, rows.take(~np.isin(rows.config_id, without)), measured.task, settings=UNTUNED)


def read_left_out(path: Path, facts: TaskFacts) -> LeftOut | None:
    """Read what `run_left_out` wrote; None if there is no file. Refuse a file of another release."""
    if (arrays := read_arrays(path, facts)) is None:
        return None
    try:
        ids = arrays["ids"].tolist()
        others, record = (dict(zip(ids, arrays[name].tolist(), strict=True)) for name in ("with_others", "with_record"))
        return LeftOut(curves=arrays["curves"], with_others=others, with_record=record)
    except (KeyError, ValueError) as err:
        raise CorruptFile(f"{path} lacks predictions: {err}; remove it, and it is simulated again") from err
