"""The content of a folder of runs, for tables and plots, and whether cheap trainings rank configs as expensive ones do.

`_ABOUT_VALUES` of the page explains how values of N, W and Resolution are compared through additive models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable
from jahs.files.runs import Protocol, is_timed, read_configs, read_protocol, read_runs, timing_machine
from jahs.files.tables import Table, sort_by, take
from jahs.models.cost import n_macs
from jahs.schema import CONFIG_KEYS, OPS
from jahs.spaces.columns import Columns
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.space import space
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES
from pipeline.protocol import recorded_task
from pipeline.sampling import group_positions
from workshop.measured import last_rows, read_profile_visits, rows_of, trained_with_both, without_final
from workshop.ranks import kendall_tau, kendall_tau_within
from workshop.real_landscape import read_check

NOISY: Final = (*ACCURACIES, "train_loss", "valid_loss", "test_loss", "runtime")
"""The metrics whose noise between seeds is shown."""

FEWEST: Final = 60
"""Configs that each value requires for a comparison."""

_N_RANDOM: Final = 2000  # random configs that models rank
_N_HALVINGS: Final = 10
_SEED: Final = 0  # seed of the random configs and the halves
_RIDGE: Final = 3.0
_FEWEST_OF_GROUP: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredRuns:
    """A folder of runs.

    Attributes:
        task, protocol: task and protocol of the trainings.
        runs: every row outside the final test set, sorted by config, seed and epoch.
        n_final: runs of the final test set.
        last: the last row of every run.
        machine: the processor that runtimes were measured on; None if no run was on a CPU.
        profile: the quiet profile; no rows if there is none yet.
        visits: every repeat that the profile is made of; no rows if only the profile is known.
        configs: rows of the config table, by id, for every config with a finished run.
        group: the position of each config's fidelity group in `FIDELITY_GROUPS`.
        macs: multiply-adds of each config.
        curves: every metric of `NOISY` by epoch, (n_configs, max_epoch), for the first finished seed of each config.
        group_of_any: the group of every config with a run, finished or not, by its id.
        landscape: the saved comparison with the real landscape (`pipeline.pilot --save`), or None.
    """

    task: Task
    protocol: Protocol
    runs: Table
    n_final: int
    last: Table
    machine: str | None
    profile: Table
    visits: Table
    configs: Table
    group: NDArray[np.int64]
    macs: NDArray[np.float64]
    curves: dict[str, NDArray[np.float64]]
    group_of_any: dict[int, int]
    landscape: Mapping[str, Any] | None  # Any: JSON

    @property
    def n_configs(self) -> int:
        """The number of configs with a run, finished or not."""
        return len(self.group_of_any)

    @property
    def final(self) -> NDArray[np.float64]:
        """Validation accuracy of each config of `configs` at the last epoch."""
        return self.curves["valid_acc"][:, -1]

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Core-seconds of each run of `last`, finished or not; NaN for runs that were not on a CPU."""
        return self.last["runtime"].astype(np.float64)

    @property
    def is_timed(self) -> NDArray[np.bool_]:
        """A mask of the runs of `last` on the processor `machine`."""
        return is_timed(self.last, self.machine)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedNoise:
    """Difference of two trainings of a config at the last epoch; for runtime, two on the same processor."""

    metric: str
    n_configs: int  # configs with two finished runs
    tau: float  # Kendall's tau between two seeds; the mean over pairs of seeds, weighted by shared configs
    mean_difference: float  # mean absolute difference; for runtime in percent


def read_measured(path: Path) -> MeasuredRuns:
    """Read a folder of runs without the final test set: it must not influence choices of the page's readers.

    Raises:
        InvalidTable: no run has finished, or a config with runs is not in the config table.
        UnknownName: its task does not exist.
    """
    protocol = read_protocol(path)
    task = recorded_task(protocol.facts)
    runs, configs = read_runs(path), sort_by(read_configs(path), ("config_id",))
    if strange := set(runs["config_id"].tolist()) - set(configs["config_id"].tolist()):
        raise InvalidTable(f"{path}: {len(strange)} configs have runs but are not in configs.parquet")
    runs, n_final = without_final(runs, configs)
    last = last_rows(runs)
    finished = take(last, last["status"] == "finished")
    if not len(finished["seed"]):
        raise InvalidTable(f"{path}: no run has finished yet; collect some first")
    ids, first = np.unique(finished["config_id"], return_index=True)
    curves = take(runs, np.isin(runs["config_id"], ids) & (runs["status"] == "finished"))
    curves = take(curves, curves["seed"] == rows_of(take(finished, first), curves["config_id"])["seed"])
    n_epochs = int(finished["epoch"].max())
    if len(curves["epoch"]) != len(ids) * n_epochs:
        raise InvalidTable(f"{path}: finished runs differ in their number of epochs; python -m pipeline.collect verify")
    trained = take(configs, np.isin(configs["config_id"], runs["config_id"]))
    group_of_any = dict(zip(trained["config_id"].tolist(), group_positions(trained).tolist(), strict=True))
    profile, visits = read_profile_visits(path)
    finished_configs = take(configs, np.isin(configs["config_id"], ids))
    return MeasuredRuns(
        task=task,
        protocol=protocol,
        runs=runs,
        n_final=n_final,
        last=last,
        machine=timing_machine(runs, profile),
        profile=profile,
        visits=visits,
        configs=finished_configs,
        group=group_positions(finished_configs),
        macs=np.asarray(n_macs(encode({key: finished_configs[key] for key in CONFIG_KEYS}, 1), task), dtype=np.float64),
        curves={name: curves[name].astype(np.float64).reshape(len(ids), n_epochs) for name in NOISY},
        group_of_any=group_of_any,
        landscape=read_check(path, protocol=protocol.digest),
    )


def seed_noise(measured: MeasuredRuns) -> list[SeedNoise]:
    """Return the noise of every metric; empty if no two runs of a config finished."""
    finished = take(measured.last, measured.last["status"] == "finished")
    seeds = np.unique(finished["seed"]).tolist()
    noises = []
    for metric in NOISY:
        runs = take(finished, is_timed(finished, measured.machine)) if metric == "runtime" else finished
        runs = take(runs, np.isfinite(runs[metric]))
        taus, differences = [], []
        shared: Counter[int] = Counter()
        for pair in combinations(seeds, 2):
            one, other = trained_with_both(runs, pair)
            x, y = (each[metric].astype(np.float64) for each in (one, other))
            shared.update(one["config_id"].tolist())
            differences.append(100 * np.abs(np.log(x / y)) if metric == "runtime" else np.abs(x - y))
            if not np.isnan(tau := kendall_tau(x, y)):
                taus.append((len(x), tau))
        if not shared:
            continue
        weight = sum(n for n, _ in taus)
        noises.append(
            SeedNoise(
                metric=metric,
                n_configs=len(shared),
                tau=sum(n * tau for n, tau in taus) / weight if weight else float("nan"),
                mean_difference=float(np.concatenate(differences).mean()),
            )
        )
    return noises


def epoch_agreement(measured: MeasuredRuns) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Kendall's tau of validation accuracy between every epoch and the last one.

    Returns:
        Tau over all configs, and within fidelity groups, weighted by pairs; NaN if no group has four configs.
    """
    curves, last = measured.curves["valid_acc"], measured.final
    within = [kendall_tau_within(values, last, measured.group, fewest=_FEWEST_OF_GROUP) for values in curves.T]
    return np.array([kendall_tau(values, last) for values in curves.T]), np.array(within)


def value_agreement(measured: MeasuredRuns, key: str) -> NDArray[np.float64] | None:
    """Return tau between the values of a fidelity, (3, 3); the diagonal compares halves. None: too few configs."""
    choices = PARAMETERS[key].choices
    members = [np.flatnonzero(measured.configs[key] == choice) for choice in choices]
    if min(map(len, members)) < FEWEST:
        return None
    features = _features(space().sample_columns(_N_RANDOM, seed=_SEED))
    predictions = [features @ _fit(measured, rows) for rows in members]
    taus = np.full((len(choices), len(choices)), np.nan)
    for i, j in combinations(range(len(choices)), 2):
        taus[i, j] = taus[j, i] = kendall_tau(predictions[i], predictions[j])
    chance = np.random.default_rng(_SEED)
    for i, rows in enumerate(members):
        half_taus = []
        for _ in range(_N_HALVINGS):
            order = chance.permutation(rows)
            halves = [features @ _fit(measured, order[half::2]) for half in (0, 1)]
            half_taus.append(kendall_tau(*halves))
        taus[i, i] = float(np.mean(half_taus))
    return taus


def _fit(measured: MeasuredRuns, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the coefficients of the features in a ridge regression with an intercept for each fidelity group."""
    F = _features(dict(take(measured.configs, rows)))
    intercepts = (measured.group[rows][:, None] == np.arange(27)).astype(np.float64)
    X, y = np.hstack([F, intercepts]), measured.final[rows]
    coefficients = np.linalg.solve(X.T @ X + _RIDGE * np.eye(X.shape[1]), X.T @ (y - y.mean()))
    return np.asarray(coefficients[: F.shape[1]])


def _features(configs: Columns) -> NDArray[np.float64]:
    """Return the features of the additive model, (n_configs, 40)."""
    columns = [configs[key] == choice for key in (*OPS, "Activation") for choice in PARAMETERS[key].choices]
    columns.append(configs["TrivialAugment"])
    for key in ("LearningRate", "WeightDecay"):
        rate = np.log10(configs[key].astype(np.float64))
        low, high = np.log10(PARAMETERS[key].lower), np.log10(PARAMETERS[key].upper)
        centred = (2 * rate - low - high) / (high - low)
        columns += [centred**power for power in (1, 2, 3)]
    return np.column_stack(columns).astype(np.float64)
