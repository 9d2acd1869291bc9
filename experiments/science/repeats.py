"""How far two trainings of the same configs agree, metric by metric: Table 11 of JAHS-Bench-201, from recorded runs.

Table 12 of the same paper asks whether recorded FLOPS order configs as exact ones do: `costs_agreement`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from experiments.science.subjects import Subject, beside_paper
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, interval_text
from jahs.errors import InvalidArgument
from jahs.files.runs import halves_of_visits, is_timed, last_rows, read_profile_visits, sorted_runs, timing_machine
from jahs.files.tables import Table as Rows
from jahs.files.tables import take
from jahs.models.cost import n_macs
from jahs.queries.exhaustive import LARGEST
from jahs.spaces.columns import Configs, codes, columns_of_codes
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import Task
from workshop.numbered import FIDELITY_GROUPS
from workshop.pages.document import Document, Figure, Section, Table, Text
from workshop.pages.drawing import draw_estimates
from workshop.ranks import kendall_tau
from workshop.resampling import bootstrap_agreement

_N_RESAMPLES: Final = 500
_FEWEST: Final = 4
_SIZES: Final = ("full size", "all sizes")

_PAPER: Final[Mapping[str, tuple[float, float]]] = {
    "latency": (0.523, 0.547),
    "runtime": (0.843, 0.847),
    "train_acc": (0.966, 0.886),
    "valid_acc": (0.866, 0.718),
    "test_acc": (0.865, 0.720),
}
"""CIFAR-10 and Colorectal-Histology, 20 configs each."""

_METHOD: Final = """The paper trains 20 configs at full size with two fresh seeds. These are the recorded configs with
    two seeds or more, the first two of each, after the last epoch; nothing was trained for this page. They were not
    chosen to be like the paper's 20: some were proposed as good ones, and a narrow range of accuracies lowers tau.
    Latency does not depend on the seed here, so two visits to the same config at different times take its place; each
    is the least of several repeats, where the paper measured once. FLOPS and size follow from the config, so their tau
    is 1, as in the paper."""

_REASONS: Final[Mapping[str, str]] = {
    "latency": "the least of several repeats on one core, which interference hardly moves",
    "runtime": "one core, in processor seconds, and one processor model",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeats:
    """Kendall's tau between two measurements of the same configs.

    Attributes:
        tau: by metric; only those with at least four configs.
        n: configs, by metric.
    """

    tau: Mapping[str, Interval]
    n: Mapping[str, int]


_Found = Mapping[str, Mapping[str, Repeats]]
"""By title of the task, and by size."""


def measure_repeats(subject: Subject, *, is_full_size: bool) -> Repeats:
    """Return the agreement of the recorded configs with two seeds, at full size or at all sizes.

    Repeated measurements of latency are in the folder of the task's runs, if there is one.
    """
    table = release_of(subject.bench).table
    is_in = np.ones(len(table.configs["N"]), np.bool_)
    for key, value in LARGEST.items() if is_full_size else ():
        is_in &= table.configs[key] == value
    ids = table.configs["config_id"][is_in]
    pairs = pairs_of_seeds(take(table.runs, np.isin(table.runs["config_id"], ids)), table.profile)
    runs = None if subject.data is None else subject.data / subject.task.name / "runs"
    if runs is not None and runs.is_dir():
        one, other = (take(of, np.isin(of["config_id"], ids)) for of in halves_of_visits(read_profile_visits(runs)[1]))
        pairs["latency"] = (one["latency"].astype(np.float64), other["latency"].astype(np.float64))
    known = {name: found for name, found in pairs.items() if len(found[0]) >= _FEWEST}
    return Repeats(
        tau={name: bootstrap_agreement(kendall_tau, *found, n_resamples=_N_RESAMPLES) for name, found in known.items()},
        n={name: len(of[0]) for name, of in pairs.items()},
    )


def pairs_of_seeds(runs: Rows, profile: Rows) -> dict[str, tuple[Floats, Floats]]:
    """Return each metric after the last epoch of the first two finished runs of every config that has two.

    Runtimes count if both were measured on the processor of the runtimes.
    """
    last = last_rows(sorted_runs(runs))
    last = take(last, (last["status"] == "finished") & (last["epoch"] == last["epoch"].max(initial=0)))
    _, first, counts = np.unique(last["config_id"], return_index=True, return_counts=True)
    one = first[counts >= 2]
    on_it = is_timed(last, timing_machine(runs, profile))
    rows = {"runtime": one[on_it[one] & on_it[one + 1]], "train_acc": one, "valid_acc": one, "test_acc": one}
    return {name: (last[name][at].astype(float), last[name][at + 1].astype(float)) for name, at in rows.items()}


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


def repeats_page(subjects: Sequence[Subject]) -> Document:
    """Return the page."""
    found = {
        of.title: {size: measure_repeats(of, is_full_size=size == "full size") for size in _SIZES} for of in subjects
    }
    said = "; ".join(
        f"{title} {', '.join(_said(of, f'at {size}') for size, of in by_size.items())}"
        for title, by_size in found.items()
    )
    cifar, colorectal = _PAPER["valid_acc"]
    return Document(
        title="Agreement of two trainings",
        subtitle=f"Kendall's tau of validation accuracy between two seeds: {said}. JAHS-Bench-201 reports {cifar} on "
        f"CIFAR-10 and {colorectal} on Colorectal-Histology, from 20 configs at full size.",
        sections=(Section(title="Seven metrics", blocks=(_figure(found), _table(found), Text(_METHOD))),),
    )


def _said(of: Repeats, where: str) -> str:
    n = of.n.get("valid_acc", 0)
    if "valid_acc" not in of.tau:
        return f"not measured {where} ({n} configs with two seeds)"
    return f"{interval_text(of.tau['valid_acc'])} {where} (n={n})"


def _figure(found: _Found) -> Figure:
    estimates, numbers = {}, []
    for name in _PAPER:
        for number, (title, by_size) in enumerate(found.items()):
            if name in by_size["all sizes"].tau:
                estimates[f"{name}, {title}"] = by_size["all sizes"].tau[name]
                numbers.append(number)
    return Figure(
        name="tau",
        caption="Kendall's tau between two measurements of the recorded configs of all sizes, with 95 % intervals.",
        alt="; ".join(f"{title}: {tau.value:.2f}" for title, tau in estimates.items()),
        drawing=draw_estimates(estimates, numbers=numbers, x_label="Kendall's tau"),
    )


def _reason(name: str, tau: Interval) -> str:
    if any(tau.low <= paper <= tau.high for paper in _PAPER[name]):
        return "the interval holds a figure of the paper"
    if tau.low > max(_PAPER[name]):
        return "higher: " + _REASONS.get(name, "configs of all sizes differ by more than those of one")
    return "between the paper's tasks" if tau.low > min(_PAPER[name]) else "lower: training is shorter"


def _table(found: _Found) -> Table:
    rows = []
    for name, paper in _PAPER.items():
        for title, by_size in found.items():
            for where, of in by_size.items():
                tau = of.tau.get(name)
                ours = "–" if tau is None else interval_text(tau)
                sign = "–" if tau is None else "yes" if tau.low > 0 else "not shown"
                reason = "too few configs" if tau is None or tau.low <= 0 else _reason(name, tau)
                what = f"{name}, {where} (n={of.n.get(name, 0)})"
                rows.append((what, title, f"{paper[0]} / {paper[1]}", ours, sign, reason))
    rows += [(name, "both", "1 / 1", "1", "yes", "computed from the config") for name in ("n_macs", "n_params")]
    return beside_paper(rows)
