"""Agreement of two trainings of the same configs, metric by metric: Table 11 of JAHS-Bench-201, from recorded runs.

Table 12 of the same paper asks whether recorded FLOPS order configs as exact ones do: `costs_agreement`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from experiments.analysis.subjects import Subject
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument
from jahs.files.runs import halves_of_visits, is_timed, last_rows, read_profile_visits, sorted_runs, timing_machine
from jahs.files.tables import Table, take
from jahs.models.cost import n_macs
from jahs.queries.exhaustive import LARGEST
from jahs.spaces.columns import Configs, codes, columns_of_codes
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import Task
from workshop.numbered import FIDELITY_GROUPS
from workshop.ranks import kendall_tau
from workshop.resampling import bootstrap_agreement

RECORDED: Final = ("runtime", "train_acc", "valid_acc", "test_acc")
"""The metrics of a training that differ between seeds."""

_N_RESAMPLES: Final = 500
_FEWEST: Final = 4

Pairs = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeats:
    """Kendall's tau between two measurements of the same configs.

    Attributes:
        tau: by metric; only those with at least four configs.
        n: configs, by metric.
    """

    tau: Mapping[str, Interval]
    n: Mapping[str, int]


def measure_repeats(subject: Subject, *, runs: Path | None, is_full_size: bool) -> Repeats:
    """Return the agreement of the recorded configs with two seeds, at full size or at all sizes.

    Args:
        runs: the folder of these runs, for repeated measurements of latency; None: none are read.
        is_full_size: whether only the largest networks count.
    """
    table = release_of(subject.bench).table
    is_in = np.ones(len(table.configs["N"]), np.bool_)
    for key, value in LARGEST.items() if is_full_size else ():
        is_in &= table.configs[key] == value
    ids = table.configs["config_id"][is_in]
    pairs = pairs_of_seeds(take(table.runs, np.isin(table.runs["config_id"], ids)), table.profile)
    if runs is not None:
        halves = [
            take(half, np.isin(half["config_id"], ids)) for half in halves_of_visits(read_profile_visits(runs)[1])
        ]
        pairs["latency"] = (halves[0]["latency"].astype(np.float64), halves[1]["latency"].astype(np.float64))
    known = {name: found for name, found in pairs.items() if len(found[0]) >= _FEWEST}
    return Repeats(
        tau={name: bootstrap_agreement(kendall_tau, *found, n_resamples=_N_RESAMPLES) for name, found in known.items()},
        n={name: len(of[0]) for name, of in pairs.items()},
    )


def pairs_of_seeds(runs: Table, profile: Table) -> dict[str, Pairs]:
    """Return each metric after the last epoch of the first two finished runs of every config that has two.

    Runtimes count if both were measured on the processor of the runtimes.
    """
    last = last_rows(sorted_runs(runs))
    last = take(last, (last["status"] == "finished") & (last["epoch"] == last["epoch"].max(initial=0)))
    _, first, counts = np.unique(last["config_id"], return_index=True, return_counts=True)
    one = first[counts >= 2]
    found = {
        name: (last[name][one].astype(np.float64), last[name][one + 1].astype(np.float64)) for name in RECORDED[1:]
    }
    on_it = is_timed(last, timing_machine(runs, profile))
    timed = one[on_it[one] & on_it[one + 1]]
    return {"runtime": (last["runtime"][timed].astype(float), last["runtime"][timed + 1].astype(float)), **found}


def costs_agreement(configs: Configs, flops: ArrayLike, task: Task) -> dict[tuple[int, int, float] | None, float]:
    """Return Kendall's tau of recorded FLOPS and the exact multiply-adds, by (N, W, Resolution) and, by None, overall.

    Args:
        configs: configs, as columns or one by one.
        flops: the recorded FLOPS of each, in any unit.
        task: of the configs, such as `jahs.tasks.definitions.TASKS["colorectal_histology"]`.

    Returns:
        NaN where a group has fewer than two configs.

    Raises:
        InvalidConfig, InvalidArgument: configs or labels are invalid, or not equally many.

    Example:
        >>> from jahs.tasks.definitions import TASKS
        >>> costs_agreement(jahs.space().sample(9, seed=0), range(8), TASKS["cifar10"])
        Traceback (most recent call last):
            ...
        jahs.errors.InvalidArgument: flops has 8 values for 9 configs; give one for each
    """
    columns = columns_of_codes(codes(configs))
    recorded = np.asarray(flops, dtype=np.float64)
    if recorded.shape != (n := len(columns["N"]),):
        raise InvalidArgument(f"flops has {recorded.size} values for {n} configs; give one for each")
    exact = n_macs(encode(columns, 1), task)
    found: dict[tuple[int, int, float] | None, float] = {None: kendall_tau(recorded, exact)}
    for size in FIDELITY_GROUPS:
        is_in = np.logical_and.reduce([columns[key] == value for key, value in zip(LARGEST, size, strict=True)])
        found[size] = kendall_tau(recorded[is_in], exact[is_in])  # type: ignore[index]  # choices of N, W, Resolution
    return found
