"""A live study: trained trajectories, the runs on the surrogate beside them, and how far both agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.critical_differences import rank_agreement
from experiments.folder import StudyFolder, read_folder
from experiments.live.beside import read_arrays
from experiments.live.declared import (
    CORNER,
    RELEASE,
    beside_path,
    curve,
    left_out_path,
    log_path,
    n_evaluations_of,
    read_trajectory,
)
from experiments.live.left_out import LeftOut, read_left_out
from experiments.study import Arm
from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import CorruptFile, MissingData, ProtocolMismatch
from jahs.files.tables import Table
from jahs.queries.benchmark import Benchmark
from jahs.simulate import Trial
from jahs.spaces.configs import config_id
from surrogate.data.measurements import check_release, read_measurements
from workshop.measured import last_rows
from workshop.resampling import percentile_interval, within_configs

_ROUNDING: Final = 1e-9
_N_DRAWS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveResults:
    """A live study, finished or not."""

    folder: StudyFolder
    task: str
    bench: Benchmark  # the release stored with the trainings
    n_done: Floats  # full evaluations spent, (n_arms, n_seeds), for the arms of the study
    # The incumbent's validation error after each evaluation, (n_arms, n_seeds, n_evaluations); NaN beyond the progress
    # of a trajectory.
    curves: Floats
    # The same for runs on the surrogate, by arm and number of the refit (None: the release itself), (n_seeds, n_runs,
    # n_evaluations). Only complete ones, with every seed.
    beside: Mapping[tuple[str, int | None], Floats]
    left_out: Mapping[str, LeftOut]  # the arms that were run on a surrogate that was not fitted to their trainings
    # The full trainings of each arm and seed, in the order of proposals.
    trained: Mapping[tuple[str, int], tuple[Trial, ...]]
    noise: CornerNoise  # between trainings

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The optimisers of the study."""
        return self.folder.study.arms

    def seeds_at(self, n_evaluations: int, arms: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the seeds with which all these arms have spent that many evaluations."""
        return np.flatnonzero((self.n_done[arms] >= n_evaluations).all(axis=0))

    def furthest(self, arm: int) -> tuple[int, NDArray[np.intp]]:
        """Return the whole evaluations of an arm's furthest seeds, and these seeds."""
        reached = np.floor(self.n_done[arm] + _ROUNDING)
        return int(reached.max()), np.flatnonzero(reached == reached.max())

    def has_beside(self, refit: int | None) -> NDArray[np.intp]:
        """Return the numbers of the arms that were run on the release, or on a refit."""
        return np.array([i for i, arm in enumerate(self.arms) if (arm.name, refit) in self.beside], dtype=np.intp)


def read_live(path: Path, *, runs: Path | None = None) -> LiveResults:
    """Read the folder of a live study; refuse one without a training, or whose release may have seen some of them.

    Args:
        runs: a folder of runs whose repeated trainings measure the noise; None: the record of the release.
    """
    folder = read_folder(path)
    ((task, facts),) = folder.tasks.items()
    study, bench = folder.study, open_benchmark(task, (path / RELEASE).absolute())
    if (digest := release_of(bench).sha256) != facts.release:
        raise ProtocolMismatch(f"{path / RELEASE} is release {digest[:16]}, but the study used {facts.release[:16]}")
    n_done = np.zeros((len(study.arms), study.n_seeds))
    curves = np.full((*n_done.shape, study.n_evaluations), np.nan)
    trained: dict[tuple[str, int], tuple[Trial, ...]] = {}
    for (i, arm), seed in product(enumerate(study.arms), range(study.n_seeds)):
        source = log_path(path, task, arm.name, seed)
        if (log := read_trajectory(source)) is None:
            continue
        if log.header.get("arm_digest") != study.digest_of(arm.name):
            raise CorruptFile(f"{source} is the log of another study; remove it")
        n_done[i, seed] = n_evaluations_of(log, facts)
        reached = int(n_done[i, seed] + _ROUNDING)
        curves[i, seed, :reached] = curve(log.trials, facts, bench.max_epoch)[:reached]
        trained[arm.name, seed] = tuple(
            trial
            for trial in log.trials
            if trial.status == "finished" and trial.fidelity["epoch"] == bench.max_epoch and trial.metrics
        )
    if not n_done.any():
        raise MissingData(f"{path} has no training yet; python -m experiments.run live begins")
    refuse_seen(bench, {config_id(training.config) for trainings in trained.values() for training in trainings})
    beside: dict[tuple[str, int | None], Floats] = {}
    for refit, arm in product((None, *range(facts.n_refits)), study.arms):
        read = [read_arrays(beside_path(path, arm.name, seed, refit), facts) for seed in range(study.n_seeds)]
        available = [arrays["curves"] for arrays in read if arrays is not None]
        if len(available) == study.n_seeds:
            beside[arm.name, refit] = np.stack(available)
    left_out = {arm.name: read_left_out(left_out_path(path, arm.name), facts) for arm in study.arms}
    for name, found in left_out.items():
        own = {config_id(each.config) for (by, _), run in trained.items() if by == name for each in run}
        if found is not None and not own <= found.with_others.keys():
            raise ProtocolMismatch(
                f"{left_out_path(path, name)} was made before all trainings were there; remove it, and "
                "`python -m experiments.run live --beside` makes it again"
            )
    return LiveResults(
        folder=folder,
        task=task,
        bench=bench,
        n_done=n_done,
        curves=curves,
        beside=beside,
        left_out={name: found for name, found in left_out.items() if found is not None},
        trained=trained,
        noise=recorded_noise(bench, runs),
    )


def distinct(trainings: Iterable[Trial]) -> list[Trial]:
    """Return each training once: a config that is proposed again is not trained again."""
    return list({(config_id(training.config), training.seed): training for training in trainings}.values())


class CornerNoise(NamedTuple):
    """The standard deviation of validation accuracy between trainings of one config, in points."""

    sd: float  # pooled over configs; NaN without repeated trainings
    n_configs: int  # the better half of the configs of the study's corner that were trained more than once
    n_trainings: int  # of these configs


def recorded_noise(bench: Benchmark, runs: Path | None = None) -> CornerNoise:
    """Return the noise between seeds in the corner, from the record of a release or from a folder of runs.

    Raises:
        ProtocolMismatch: the runs have another task or protocol than the release.
    """
    release = release_of(bench)
    if runs is not None:
        measured = read_measurements(runs)
        check_release(release, measured)
        return corner_noise(measured.configs, measured.runs)
    if not release.has("table.npz"):
        return CornerNoise(np.nan, 0, 0)
    return corner_noise(release.table.configs, release.table.runs)


def corner_noise(configs: Table, runs: Table) -> CornerNoise:
    """Return the noise between seeds of the better half of the repeated configs of the corner.

    Trainings of good configs differ less than others, and optimisers end at good ones.
    """
    last = last_rows(runs)
    is_in = np.all([np.isclose(configs[key], value) for key, value in CORNER.items()], axis=0)
    is_used = (last["status"] == "finished") & np.isin(last["config_id"], configs["config_id"][is_in])
    values = last["valid_acc"][is_used].astype(np.float64)
    _, means, freedom, squares = within_configs(last["config_id"][is_used], values)
    repeated = np.flatnonzero(freedom > 0)
    better = repeated[np.argsort(-means[repeated], kind="stable")[: -(-len(repeated) // 2)]]
    n_more = int(freedom[better].sum())
    sd = float(np.sqrt(squares[better].sum() / n_more)) if n_more else np.nan
    return CornerNoise(sd, len(better), len(better) + n_more)


def refuse_seen(bench: Benchmark, ids: Set[int]) -> None:
    """Refuse a release whose record has some of the configs that a study trained: it may have been fitted to them."""
    release = release_of(bench)
    recorded = release.table.runs["config_id"] if release.has("table.npz") else np.empty(0, np.uint64)
    if n_seen := len(np.intersect1d(recorded, np.array(sorted(ids), dtype=np.uint64))):
        raise ProtocolMismatch(
            f"the release may have been fitted to {n_seen} of the configs that this study trained, so it cannot be "
            "judged by them; name one that was fitted without them"
        )


def attainable(surrogate: Floats) -> Interval:
    """Return the attainable tau: between single runs, one per seed, and the means of all runs.

    Trainings would reach it, with their number of seeds, if the surrogate were exact. The result is the mean and the
    central 95 % of draws. A draw takes the same run of every arm, since these share the noise of their first configs,
    as trainings do: of (n_arms, n_seeds, n_runs), runs with the same number have the same noise.
    """
    rng = np.random.default_rng(0)
    _, n_seeds, n_runs = surrogate.shape
    picks = rng.integers(0, n_runs, size=(_N_DRAWS, 1, n_seeds, 1))
    drawn = np.take_along_axis(surrogate[None], picks, axis=3)[..., 0].mean(axis=2)  # (n_draws, n_arms)
    means = surrogate.mean(axis=(1, 2))
    taus = np.array([rank_agreement(draw[:, None], means[:, None], has_same_seeds=True).value for draw in drawn])
    return percentile_interval(float(taus.mean()), taus)


def curve_distance(trained: Floats, surrogate: Floats) -> float:
    """Return the mean absolute difference of the mean curves, over the evaluations at which both are known.

    Errors on trainings are (n_seeds, n_evaluations), those on the surrogate (n_seeds, n_runs, n_evaluations).
    """
    differences = np.abs(trained.mean(axis=0) - surrogate.mean(axis=(0, 1)))
    known = np.isfinite(differences)
    return float(differences[known].mean()) if known.any() else float("nan")


def reversed_pairs(one: Floats, other: Floats) -> list[tuple[int, int]]:
    """Return the pairs of arms that two sets of errors, (n_arms,) each, put in opposite orders."""
    i, j = np.triu_indices(len(one), k=1)
    is_reversed: NDArray[np.bool_] = np.sign(one[i] - one[j]) * np.sign(other[i] - other[j]) < 0
    return list(zip(i[is_reversed].tolist(), j[is_reversed].tolist(), strict=True))
