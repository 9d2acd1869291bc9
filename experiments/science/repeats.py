"""How far two measurements of the same configs agree: tables 11 and 12 of JAHS-Bench-201.

Table 11 compares two trainings of a config, here recorded runs. Table 12 compares two counts of the FLOPS, here those
of an imported table and the exact ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np

from experiments.report.writing import table
from experiments.science.papers import NO_SIGN, beside_paper
from experiments.science.subjects import Subject
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, number_text
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.files.runs import read_configs, read_profile, read_protocol
from jahs.files.tables import Table as Rows
from jahs.files.tables import read_table, take
from jahs.models.cost import n_macs
from jahs.published.oddities import ODDITY_COLUMNS
from jahs.release import Release
from jahs.schema import CONFIG_KEYS
from jahs.spaces.columns import Columns
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import LARGEST
from jahs.tasks.definitions import TASKS, Task, task
from surrogate.card.figures import figures_of
from surrogate.data.measurements import read_measurements
from surrogate.data.rows import group_numbers
from workshop.exhaustive import at_full_size
from workshop.measured import halves_of_visits, rows_of
from workshop.numbered import FIDELITY_GROUPS
from workshop.pages.document import Block, Document, Figure, Text, sections_of
from workshop.pages.drawing import draw_estimates
from workshop.ranks import kendall_tau
from workshop.repeats import Pairs, Repeats, pairs_of_seeds
from workshop.resampling import interval_text

_PAPER: Final[Mapping[str, tuple[float, float]]] = {
    "latency": (0.523, 0.547),
    "runtime": (0.843, 0.847),
    "train_acc": (0.966, 0.886),
    "valid_acc": (0.866, 0.718),
    "test_acc": (0.865, 0.720),
}
"""Table 11: CIFAR-10 and Colorectal-Histology, 20 configs each."""

_TAUS: Final = (
    *(0.488, 0.744, 0.647, 0.624, 0.992, 0.991, 0.928, 0.983, 0.970),
    *(0.993, 0.989, 0.988, 0.792, 0.724, 0.733, 0.983, 0.900, 0.993),
    *(0.897, 0.987, 0.902, 0.900, 0.980, 0.657, 0.422, 0.961, 0.996),
)
PAPER_FLOPS: Final[Mapping[object, float]] = dict(zip(FIDELITY_GROUPS, _TAUS, strict=True))
"""Table 12, on Colorectal-Histology, by (N, W, Resolution): Kendall's tau of two counts of the FLOPS."""

_PAPER_OVERALL: Final = 0.695729
_PAPER_TASK: Final = TASKS["colorectal_histology"].title

_METHOD: Final = """The paper trains 20 configs at full size with two fresh seeds. "Random" configs are the uniform ones
    of the final test set, which is kept for such questions. The others are recorded configs with two seeds or more, the
    first two of each, after the last epoch; at full size, many were proposed as good ones, and a narrow range of
    accuracies lowers tau. Runtimes are compared within one processor and version of the training code; their tau is
    the mean over these, weighted with the numbers of pairs of configs. Latency does not depend on the seed here;
    instead, two visits to the same config at different times are compared, each the least of several repeats, where
    the paper measured once. FLOPS and size follow from the config, so their tau is 1, as in the paper."""
_REASONS: Final[Mapping[str, str]] = {
    "latency": "the minimum of several repeats on one core, which interference hardly affects",
    "runtime": "one core, in processor seconds, compared within one processor model",
}


def measure_repeats(subject: Subject) -> dict[str, dict[str, Repeats]]:
    """Return the agreement of the configs with two seeds by metric: at full size, at all sizes, and in the final test.

    Recorded configs are from the task's folder of runs if that has the release's protocol; else from the release, which
    has no repeated measurements of latency. The uniform configs of the final test set were compared when
    `surrogate.figures` read it; without figures of this release, they are left out.
    """
    recorded = release_of(subject.bench).table
    configs, runs = recorded.configs, recorded.runs
    halves: tuple[Rows, ...] = ()
    folder = None if subject.data is None else subject.data / subject.bench.task.name / "runs"
    if folder is not None and folder.is_dir() and np.isin(runs["protocol"], read_protocol(folder).digest).all():
        measured = read_measurements(folder)
        configs, runs, halves = measured.configs, measured.runs, halves_of_visits(measured.visits)
    found: dict[str, dict[str, Repeats]] = {}
    ids = configs["config_id"]
    for size, chosen in {"full size": ids[at_full_size(configs)], "all sizes": ids}.items():
        runs_in, *halves_in = (take(t, np.isin(t["config_id"], chosen)) for t in (runs, *halves))
        one, other = [half["latency"].astype(np.float64) for half in halves_in] or [np.array([])] * 2
        latencies = Pairs(one, other, np.zeros(len(one), np.int64))
        pairs = {"latency": latencies, **pairs_of_seeds(runs_in)}
        found[size] = {name: of_metric.repeats() for name, of_metric in pairs.items()}
    if subject.data is not None and (final := _final_repeats(subject.data, release_of(subject.bench))):
        found["full size, random configs"] = final
    return found


def _final_repeats(data: Path, release: Release) -> dict[str, Repeats]:
    """Return the agreement of the uniform configs of the final test set; empty if the release has no such figures."""
    with suppress(MissingData, ProtocolMismatch):
        seeds = (figures_of(data / release.task.name / "figures.json", release)["final"] or {}).get("seeds", {})
        return {
            metric: Repeats(tau["n"], Interval(value=tau["value"], low=tau["interval"][0], high=tau["interval"][1]))
            for metric, tau in seeds.items()
            if tau["value"] is not None
        }
    return {}


def flops_agreement(columns: Columns, recorded: Floats, task: Task) -> dict[tuple[object, ...] | None, float]:
    """Return Kendall's tau of recorded FLOPS and the exact multiply-adds, by (N, W, Resolution) and, by None, overall.

    It is NaN where a group has fewer than two configs.
    """
    encoded = encode(columns, 1)
    exact, groups = n_macs(encoded, task), group_numbers(encoded)
    of_groups = [kendall_tau(recorded[groups == i], exact[groups == i]) for i in range(len(FIDELITY_GROUPS))]
    return {None: kendall_tau(recorded, exact), **dict(zip(FIDELITY_GROUPS, of_groups, strict=True))}


def recorded_flops(folder: Path) -> tuple[Columns, Floats]:
    """Return the configs of an imported table's models and the FLOPS that were recorded for each, in millions.

    The import lists the labels that are not the exact ones; all others are exact. Labels that are NaN are left out.
    """
    facts = read_protocol(folder).facts
    if facts.get("source") is None:
        raise InvalidArgument(f"{folder} was not imported: its FLOPS are computed from the configs, so they are exact")
    odd = read_table(folder / "oddities.parquet", ODDITY_COLUMNS)
    profile = read_profile(folder)
    odd = take(odd, (odd["finding"] == "flops_label") & np.isin(odd["config_id"], profile["config_id"]))
    ids, n_odd = np.unique(odd["config_id"], return_counts=True)
    n_exact = profile["n_repeats"].astype(np.int64)
    n_exact[np.searchsorted(profile["config_id"], ids)] -= n_odd
    exact_ids = np.repeat(profile["config_id"], np.maximum(n_exact, 0))
    configs = rows_of(read_configs(folder), np.concatenate([odd["config_id"], exact_ids]))
    columns: Columns = {key: configs[key] for key in CONFIG_KEYS}
    flops = n_macs(encode(columns, 1), task(facts["task"]["name"])) / 1e6
    flops[: len(odd["value"])] = odd["value"]
    is_number = np.isfinite(flops)
    return take(columns, is_number), flops[is_number]


def repeats_page(subjects: Sequence[Subject], tables: Sequence[Path] = ()) -> Document:
    """Return the page; `tables` are folders of the runs of imported tables, whose recorded FLOPS are added."""
    found = {subject.title: measure_repeats(subject) for subject in subjects}
    summary = "; ".join(
        f"{title} {', '.join(_finding(of['valid_acc'], f'at {size}') for size, of in by_size.items())}"
        for title, by_size in found.items()
    )
    cifar, colorectal = _PAPER["valid_acc"]
    estimates, numbers, rows = {}, [], []
    for name, (number, (title, by_size)) in product(_PAPER, enumerate(found.items())):
        for where, of in by_size.items():
            if name in of:
                rows.append(_row(f"τ of {name}, {where} (n={of[name].n})", title, name, of[name].tau))
        if (tau := by_size["all sizes"][name].tau) is not None:
            estimates[f"{name}, {title}"] = tau
            numbers.append(number)
    figure = Figure(
        name="tau",
        caption="Kendall's tau between two measurements of the recorded configs of all sizes, with 95 % intervals.",
        alt="; ".join(f"{title}: {tau.value:.2f}" for title, tau in estimates.items()),
        drawing=draw_estimates(estimates, numbers=numbers, x_label="Kendall's tau"),
    )
    exact = ("both", "1 / 1", "1", NO_SIGN, "computed from the config")
    rows += [("τ of n_macs", *exact), ("τ of n_params", *exact)]
    more = " over configs; Kendall's τ between two measurements, the paper's on CIFAR-10 and Colorectal-Histology"
    blocks = ("Seven metrics", figure, beside_paper("JAHS-Bench-201", rows, more=more), Text(_METHOD))
    return Document(
        title="Agreement of two trainings",
        subtitle=f"Kendall's tau of validation accuracy between two seeds: {summary}. JAHS-Bench-201 reports {cifar} "
        f"on CIFAR-10 and {colorectal} on Colorectal-Histology, from 20 configs at full size.",
        sections=sections_of([*blocks, *_flops_blocks(list(found), tables)]),
    )


def _finding(repeats: Repeats, where: str) -> str:
    if repeats.tau is None:
        return f"not measured {where} ({repeats.n} configs with two seeds)"
    return f"{interval_text(repeats.tau)} {where} (n={repeats.n})"


def _row(quantity: str, title: str, name: str, tau: Interval | None) -> tuple[str, ...]:
    """Return a row that says whether the interval holds a figure of the paper, and if not, why."""
    paper = " / ".join(map(str, _PAPER[name]))
    if tau is None:
        return quantity, title, paper, "–", "inconclusive", "too few configs"
    reason = "between the paper's tasks" if tau.low > min(_PAPER[name]) else "lower, cause not tested"
    if any(tau.low <= each <= tau.high for each in _PAPER[name]):
        reason = "the interval holds a figure of the paper"
    elif tau.low > max(_PAPER[name]):
        reason = "higher: " + _REASONS.get(name, "configs of all sizes differ by more than those of one")
    return quantity, title, paper, interval_text(tau, 3), NO_SIGN, reason


def _flops_blocks(computed: Sequence[str], folders: Sequence[Path]) -> Iterator[str | Block]:
    """Yield the section on recorded FLOPS: titles of tasks that compute them, and a table for each imported folder."""
    yield "Recorded FLOPS beside exact ones"
    yield Text(
        f"JAHS-Bench-201 counted the FLOPS of {_PAPER_TASK} twice and reports a Kendall's tau between "
        f"{min(_TAUS)} and {max(_TAUS)} within the 27 fidelity groups, and {_PAPER_OVERALL:.3f} "
        f"overall (Table 12). On {' and '.join(computed)}, FLOPS are computed from the config, so tau is 1 in every "
        "group by construction. `--table FOLDER` adds an imported table."
    )
    for folder in folders:
        columns, flops = recorded_flops(folder)
        imported_task = task(read_protocol(folder).facts["task"]["name"])
        taus = flops_agreement(columns, flops, imported_task)
        n_models = [len(flops), *np.bincount(group_numbers(encode(columns, 1)), minlength=len(FIDELITY_GROUPS))]
        rows = []
        for n, (size, tau) in zip(n_models, taus.items(), strict=True):
            paper = PAPER_FLOPS.get(size, _PAPER_OVERALL)
            rows.append((*map(str, size or ["all"] * len(LARGEST)), str(n), f"{paper:.3f}", number_text(tau, 3)))
        caption = f"Kendall's tau of recorded and exact FLOPS of the imported table of {imported_task.title}"
        head = (*LARGEST, "models", "paper", "ours")
        yield table(f"{caption}; the paper's is of {_PAPER_TASK}", head, rows, n_labels=len(LARGEST))
