"""Agreement of two tasks on the same configs, compared with the noise ceiling of single trainings.

Every interval is a 95 % bootstrap interval over configs. The noise ceiling of a rank correlation is the geometric mean
of both tasks' rank correlations between two seeds of the same configs (Spearman's correction for attenuation).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument, InvalidTable
from jahs.files.runs import read_configs, read_protocol, read_runs
from jahs.files.tables import Table, sort_by, take
from jahs.schema import CONFIG_KEYS
from jahs.spaces.columns import Columns
from jahs.spaces.parameters import LARGEST
from jahs.tasks.definitions import Task
from jahs.tasks.own import task_of_protocol
from workshop.measured import last_rows, without_final
from workshop.ranks import spearman
from workshop.real_landscape import key_members, rank_shares
from workshop.resampling import bootstrap_agreement, bootstrap_estimates

FEWEST: Final = 5  # fewest configs, and fewest configs with three seeds, that a value is reported for
_FEWEST_PAIRED: Final = 20
_N_SEEDS: Final = 3
_PAIRS: Final = tuple(combinations(range(_N_SEEDS), 2))
_N_RESAMPLES: Final = 1000
_N_BINS: Final = 4
_BEST: Final = 0.9
_WARM_SIZES: Final = (1, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedTask:
    """The finished runs of a task."""

    task: Task
    protocol: str  # digest of its protocol
    configs: Table  # rows of the config table, by id
    accuracies: Floats  # validation accuracies (%) at the last epoch of the first three seeds, (n_configs, 3), or NaN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairedConfigs:
    """Configs that were trained on two tasks, by number."""

    tasks: tuple[Task, Task]
    configs: Table  # rows of the first task's config table
    accuracies: Floats  # (2, n_configs, 3), as in `RecordedTask`

    def __len__(self) -> int:
        return len(self.configs["config_id"])

    @property
    def columns(self) -> Columns:
        """The configs without their numbers."""
        return {key: self.configs[key] for key in CONFIG_KEYS}

    @property
    def first(self) -> Floats:
        """Accuracies of the first seed, (2, n_configs)."""
        return self.accuracies[:, :, 0]

    @property
    def groups(self) -> list[str]:
        """The fidelity group of each config."""
        sizes = zip(*(self.configs[key].tolist() for key in LARGEST), strict=True)
        return [", ".join(f"{key}={value:g}" for key, value in zip(LARGEST, size, strict=True)) for size in sizes]


class Agreement(NamedTuple):
    """Spearman's rho of two tasks on some configs."""

    title: str  # name of the part of the configs
    n: int  # number of configs
    n_repeated: int  # number of those with three seeds on both tasks
    rho: Interval  # NaN for fewer than `FEWEST`
    ceiling: float  # the noise ceiling; NaN for fewer than `FEWEST` repeated configs


class WarmStart(NamedTuple):
    """A warm start: the `k` best configs of one task, trained on the other."""

    source: int  # position of the task
    target: int
    k: int
    best: float  # the best accuracy among them on the target (%)
    gain: Interval  # `best` minus the mean best accuracy of `k` random configs (points)
    n_random: float  # smallest number of random configs whose mean best accuracy is as high; NaN if no number is enough


def read_recorded(path: Path) -> RecordedTask:
    """Read a folder of runs without the final test set."""
    protocol = read_protocol(path)
    task = task_of_protocol(protocol.facts)
    configs = sort_by(read_configs(path), ("config_id",))
    last = last_rows(without_final(read_runs(path), configs)[0])
    last = take(last, last["status"] == "finished")
    if strange := set(last["config_id"].tolist()) - set(configs["config_id"].tolist()):
        raise InvalidTable(f"{path}: {len(strange)} configs have runs but are not in configs.parquet")
    if not len(last["seed"]):
        raise InvalidTable(f"{path}: no run has finished yet; collect some first")
    ids, first, of_run = np.unique(last["config_id"], return_index=True, return_inverse=True)
    place = np.arange(len(of_run)) - first[of_run]  # runs are sorted by config and seed
    accuracies = np.full((len(ids), _N_SEEDS), np.nan)
    is_used = place < _N_SEEDS
    accuracies[of_run[is_used], place[is_used]] = last["valid_acc"][is_used]
    used = take(configs, np.isin(configs["config_id"], ids))
    return RecordedTask(task=task, protocol=protocol.digest, configs=used, accuracies=accuracies)


def pair(one: RecordedTask, other: RecordedTask) -> PairedConfigs:
    """Return the configs that both tasks have."""
    names = [record.task.name for record in (one, other)]
    if names[0] == names[1]:
        raise InvalidArgument(f"both folders have runs of {names[0]}; give the runs of two tasks")
    ids, *at = np.intersect1d(one.configs["config_id"], other.configs["config_id"], return_indices=True)
    if len(ids) < _FEWEST_PAIRED:
        raise InvalidArgument(
            f"{names[0]} and {names[1]} share {len(ids)} finished configs; at least {_FEWEST_PAIRED} are needed; "
            "collect the same config numbers for both"
        )
    order = np.lexsort((ids, one.configs["config_index"][at[0]]))
    return PairedConfigs(
        tasks=(one.task, other.task),
        configs=take(one.configs, at[0][order]),
        accuracies=np.stack([record.accuracies[rows[order]] for record, rows in zip((one, other), at, strict=True)]),
    )


def agreements(paired: PairedConfigs) -> Iterator[Agreement]:
    """Yield the agreement on all configs, by source, within groups, in both best tenths and in every group."""
    values, groups = paired.accuracies, np.array(paired.groups)
    yield agreement("all configs", values)
    sources = sorted(set(paired.configs["source"].tolist()))
    for source in sources if len(sources) > 1 else ():
        yield agreement(f"source {source}", values[:, paired.configs["source"] == source])
    centred = values.copy()
    for group in set(groups.tolist()):
        is_in = groups == group
        centred[:, is_in] -= values[:, is_in, 0].mean(axis=1)[:, None, None]
    yield agreement("within fidelity groups", centred)
    for task, first in zip(paired.tasks, paired.first, strict=True):
        # The first seed selects the configs, so only the others give an unbiased noise ceiling.
        is_best = first >= np.quantile(first, _BEST)
        yield agreement(f"best tenth of {task.title}", values[:, is_best], seeds=[(1, 2)])
    for group in dict.fromkeys(groups.tolist()):
        yield agreement(group, values[:, groups == group])


def agreement(
    title: str, values: Floats, real: Floats | None = None, *, seeds: Sequence[tuple[int, int]] = _PAIRS
) -> Agreement:
    """Return the agreement of two tasks, (2, n_configs, 3), or of one, (1, n_configs, 3), with the real landscape.

    Args:
        real: the answers of the real landscape, (n_configs,), which have no noise.
        seeds: pairs of seeds that the noise ceiling is computed from.
    """
    repeated = values[:, np.isfinite(values).all(axis=(0, 2))]
    n, n_repeated = values.shape[1], repeated.shape[1]
    rho, ceiling = Interval(value=math.nan, low=math.nan, high=math.nan), math.nan
    if n >= FEWEST:
        reference = values[1, :, 0] if real is None else real
        rho = bootstrap_agreement(spearman, values[0, :, 0], reference, n_resamples=_N_RESAMPLES)
    if n_repeated >= FEWEST:
        reliabilities = [float(np.mean([spearman(acc[:, i], acc[:, j]) for i, j in seeds])) for acc in repeated]
        ceiling = math.sqrt(math.prod(max(reliability, 0.0) for reliability in reliabilities))
    return Agreement(title, n, n_repeated, rho, ceiling)


def effects_of_keys(columns: Columns, accuracies: Floats) -> dict[str, Interval]:
    """Return the share of the variance of ranks that each key explains alone, and one interaction.

    Resampled configs repeat, which inflates a share. So the intervals are the value ± 1.96 bootstrap standard errors.
    """
    shares, n = rank_shares(columns, accuracies), len(accuracies)
    resampled = [
        [*rank_shares({key: values[drawn] for key, values in columns.items()}, accuracies[drawn]).values()]
        for drawn in np.random.default_rng(0).integers(0, n, size=(_N_RESAMPLES // 5, n))
    ]
    return {
        name: Interval(value=share, low=share - error, high=share + error)
        for (name, share), error in zip(shares.items(), 1.96 * np.nanstd(resampled, axis=0), strict=True)
    }


def effects_of_values(columns: Columns, accuracies: Floats) -> dict[str, float]:
    """Return the mean rank of the configs with each value, or in each quarter, of every key, minus the mean rank."""
    ranks = scipy.stats.rankdata(accuracies) / len(accuracies)
    effects = {}
    for key, values in columns.items():
        members, labels = key_members(values, _N_BINS)
        for i, label in enumerate(labels) if len(labels) > 1 else ():
            effects[f"{key} {label}"] = float(ranks[members == i].mean() - ranks.mean()) if (members == i).any() else 0
    return effects


def warm_starts(paired: PairedConfigs) -> Iterator[WarmStart]:
    """Yield warm starts in both directions. The first seeds of both tasks count."""
    for source, target in ((0, 1), (1, 0)):
        on_source, on_target = paired.first[source], paired.first[target]
        means = np.array([_mean_best(on_target, m) for m in range(1, len(paired) + 1)])
        for k in _WARM_SIZES:
            score = partial(_gain, on_source, on_target, k)
            (gain,) = bootstrap_estimates(score, len(paired), level=0.95, n_resamples=_N_RESAMPLES)
            best = on_target[_best(on_source, k)].max()
            is_as_good = means >= best - 1e-9
            n_random = float(np.argmax(is_as_good) + 1) if is_as_good.any() else math.nan
            yield WarmStart(source, target, k, float(best), gain, n_random)


def _gain(on_source: Floats, on_target: Floats, k: int, at: NDArray[np.int64]) -> float:
    return float(on_target[at][_best(on_source[at], k)].max()) - _mean_best(on_target[at], k)


def _best(values: Floats, k: int) -> NDArray[np.intp]:
    return np.argsort(-values, kind="stable")[:k]


def _mean_best(values: Floats, k: int) -> float:
    """Return the mean best value of k configs drawn without replacement."""
    n = len(values)
    ordered = np.sort(values)[::-1]
    # The best is number i if the first i are not drawn: C(n - 1 - i, k - 1) / C(n, k), each from the one before.
    i = np.arange(n - k)
    chances = k / n * np.cumprod(np.append(1.0, (n - k - i) / (n - 1 - i)))
    return float(chances @ ordered[: n - k + 1])
