"""How far two trainings of the same configs agree, metric by metric: Table 11 of JAHS-Bench-201, from recorded runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.science.costs import costs_blocks
from experiments.science.papers import beside_paper, same_sign
from experiments.science.subjects import Subject
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, interval_text
from jahs.files.runs import (
    halves_of_visits,
    last_rows,
    read_configs,
    read_profile_visits,
    read_protocol,
    read_runs,
    sorted_runs,
    without_final,
)
from jahs.files.tables import Table as Rows
from jahs.files.tables import take
from jahs.queries.exhaustive import at_full_size
from workshop.pages.document import Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import draw_estimates
from workshop.ranks import kendall_tau
from workshop.resampling import bootstrap_agreement

_N_RESAMPLES: Final = 500
_FEWEST: Final = 10  # the bootstrap interval of a tau of few configs is too narrow
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
    two seeds or more, the first two of each, after the last epoch. Most were not chosen to be like the paper's 20:
    many were proposed as good ones, and a narrow range of accuracies lowers tau. Runtimes are those of the processor,
    and of the version of the training code, on which most of these configs were trained twice.
    Latency does not depend on the seed here, so two visits to the same config at different times take its place; each
    is the least of several repeats, where the paper measured once. FLOPS and size follow from the config, so their tau
    is 1, as in the paper."""

_REASONS: Final[Mapping[str, str]] = {
    "latency": "the least of several repeats on one core, which interference hardly moves",
    "runtime": "one core, in processor seconds, and one processor model",
}


class Repeats(NamedTuple):
    """Kendall's tau between two measurements of `n` configs; None for fewer than ten."""

    n: int
    tau: Interval | None


_Found = Mapping[str, Mapping[str, Mapping[str, Repeats]]]
"""By title of the task, size, and metric."""


def measure_repeats(subject: Subject) -> dict[str, dict[str, Repeats]]:
    """Return the agreement of the recorded configs with two seeds, by size in `_SIZES` and by metric.

    They are those of the task's folder of runs without the final test set, if there is one of the release's protocol;
    else those of the release, which have no repeated measurements of latency.
    """
    table = release_of(subject.bench).table
    configs, runs = table.configs, table.runs
    halves: tuple[Rows, ...] = ()
    folder = None if subject.data is None else subject.data / subject.bench.task.name / "runs"
    if folder is not None and folder.is_dir() and np.isin(runs["protocol"], read_protocol(folder).digest).all():
        configs, halves = read_configs(folder), halves_of_visits(read_profile_visits(folder)[1])
        runs, _ = without_final(read_runs(folder), configs)
    ids = configs["config_id"]
    return {
        size: _repeats_of(size_ids, runs, halves)
        for size, size_ids in zip(_SIZES, (ids[at_full_size(configs)], ids), strict=True)
    }


def _repeats_of(ids: NDArray[np.uint64], runs: Rows, halves: Sequence[Rows]) -> dict[str, Repeats]:
    """Return the agreement of these configs by metric; `halves` are the profiles of the two halves of the visits."""
    latencies = [take(half, np.isin(half["config_id"], ids))["latency"].astype(np.float64) for half in halves]
    one, other = latencies or (np.array([]), np.array([]))
    pairs = {"latency": (one, other), **pairs_of_seeds(take(runs, np.isin(runs["config_id"], ids)))}
    return {name: _agreement(*pair) for name, pair in pairs.items()}


def _agreement(one: Floats, other: Floats) -> Repeats:
    if len(one) < _FEWEST:
        return Repeats(len(one), None)
    return Repeats(len(one), bootstrap_agreement(kendall_tau, one, other, n_resamples=_N_RESAMPLES))


def pairs_of_seeds(runs: Rows) -> dict[str, tuple[Floats, Floats]]:
    """Return each metric after the last epoch of the first two finished runs of every config that has two.

    Runtimes are those of the processor, and of the software on it, that trained most of these configs twice.
    """
    last = last_rows(sorted_runs(runs))
    last = take(last, (last["status"] == "finished") & (last["epoch"] == last["epoch"].max(initial=0)))
    _, first, counts = np.unique(last["config_id"], return_index=True, return_counts=True)
    one = first[counts >= 2]
    places = [*zip(last["machine"].tolist(), last["torch_version"].tolist(), strict=True)]
    is_timed = np.isfinite(last["runtime"])
    timed = [row for row in one.tolist() if is_timed[row] and is_timed[row + 1] and places[row] == places[row + 1]]
    most = Counter(places[row] for row in timed).most_common(1)
    on_one = np.array([row for row in timed if places[row] == most[0][0]], dtype=np.intp)
    rows = {"runtime": on_one, "train_acc": one, "valid_acc": one, "test_acc": one}
    return {name: (last[name][at].astype(float), last[name][at + 1].astype(float)) for name, at in rows.items()}


def repeats_page(subjects: Sequence[Subject], tables: Sequence[Path] = ()) -> Document:
    """Return the page; `tables` are folders of the runs of imported tables, whose recorded FLOPS are added."""
    found = {subject.title: measure_repeats(subject) for subject in subjects}
    said = "; ".join(
        f"{title} {', '.join(_said(of, f'at {size}') for size, of in by_size.items())}"
        for title, by_size in found.items()
    )
    cifar, colorectal = _PAPER["valid_acc"]
    return Document(
        title="Agreement of two trainings",
        subtitle=f"Kendall's tau of validation accuracy between two seeds: {said}. JAHS-Bench-201 reports {cifar} on "
        f"CIFAR-10 and {colorectal} on Colorectal-Histology, from 20 configs at full size.",
        sections=sections_of(
            ["Seven metrics", _figure(found), _beside(found), Text(_METHOD), *costs_blocks(list(found), tables)]
        ),
    )


def _said(of: Mapping[str, Repeats], where: str) -> str:
    n, tau = of["valid_acc"]
    if tau is None:
        return f"not measured {where} ({n} configs with two seeds)"
    return f"{interval_text(tau)} {where} (n={n})"


def _figure(found: _Found) -> Figure:
    estimates, numbers = {}, []
    for name in _PAPER:
        for number, (title, by_size) in enumerate(found.items()):
            if (tau := by_size["all sizes"][name].tau) is not None:
                estimates[f"{name}, {title}"] = tau
                numbers.append(number)
    return Figure(
        name="tau",
        caption="Kendall's tau between two measurements of the recorded configs of all sizes, with 95 % intervals.",
        alt="; ".join(f"{title}: {tau.value:.2f}" for title, tau in estimates.items()),
        drawing=draw_estimates(estimates, numbers=numbers, x_label="Kendall's tau"),
    )


def _beside(found: _Found) -> Table:
    rows = [
        _row(f"τ of {name}, {where} (n={of[name].n})", title, name, of[name].tau)
        for name in _PAPER
        for title, by_size in found.items()
        for where, of in by_size.items()
    ]
    rows += [
        (f"τ of {name}", "both", "1 / 1", "1", "yes", "computed from the config") for name in ("n_macs", "n_params")
    ]
    more = " over configs; Kendall's τ between two measurements, the paper's on CIFAR-10 and Colorectal-Histology"
    return beside_paper("JAHS-Bench-201", rows, more=more)


def _row(quantity: str, title: str, name: str, tau: Interval | None) -> tuple[str, ...]:
    """Return a row that says whether the interval holds a figure of the paper, and if not, why."""
    paper = " / ".join(map(str, _PAPER[name]))
    if tau is None:
        return quantity, title, paper, "–", "not shown", "too few configs"
    least, most = sorted(_PAPER[name])
    reason = "between the paper's tasks" if tau.low > least else "lower: training is shorter"
    if any(tau.low <= each <= tau.high for each in _PAPER[name]):
        reason = "the interval holds a figure of the paper"
    elif tau.low > most:
        reason = "higher: " + _REASONS.get(name, "configs of all sizes differ by more than those of one")
    return quantity, title, paper, interval_text(tau, 3), same_sign(tau), reason
