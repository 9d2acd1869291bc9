"""The page of Table 11 of JAHS-Bench-201: how far two trainings of the same configs agree, metric by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from experiments.analysis.repeats import Repeats, measure_repeats
from experiments.analysis.subjects import Inputs, Subject
from experiments.report.findings import beside_paper
from jahs.comparison.summaries import Interval, interval_text
from workshop.pages.document import Document, Figure, Section, Table, Text
from workshop.pages.drawing import draw_estimates

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


def repeats_page(subjects: Sequence[Subject], inputs: Inputs) -> Document:
    """Return the page."""
    found = {subject.task.title: _both(subject, inputs) for subject in subjects}
    said = "; ".join(
        f"{title} {_said(full, 'at full size')}, {_said(every, 'at all sizes')}"
        for title, (full, every) in found.items()
    )
    cifar, colorectal = _PAPER["valid_acc"]
    return Document(
        title="Agreement of two trainings",
        subtitle=f"Kendall's tau of validation accuracy between two seeds: {said}. JAHS-Bench-201 reports {cifar} on "
        f"CIFAR-10 and {colorectal} on Colorectal-Histology, from 20 configs at full size.",
        sections=(Section(title="Seven metrics", blocks=(_figure(found), _table(found), Text(_METHOD))),),
    )


def _both(subject: Subject, inputs: Inputs) -> tuple[Repeats, Repeats]:
    """Return the agreement at full size and at all sizes."""
    runs = inputs.runs_of(subject.task.name)
    full, every = (measure_repeats(subject, runs=runs, is_full_size=flag) for flag in (True, False))
    return full, every


def _said(of: Repeats, where: str) -> str:
    n = of.n.get("valid_acc", 0)
    if "valid_acc" not in of.tau:
        return f"not measured {where} ({n} configs with two seeds)"
    return f"{interval_text(of.tau['valid_acc'])} {where} (n={n})"


def _figure(found: Mapping[str, tuple[Repeats, Repeats]]) -> Figure:
    estimates = {
        f"{name}, {title}": (tau, number)
        for name in _PAPER
        for number, (title, (_, every)) in enumerate(found.items())
        if (tau := every.tau.get(name)) is not None
    }
    return Figure(
        name="tau",
        caption="Kendall's tau between two measurements of the recorded configs of all sizes, with 95 % intervals.",
        alt="; ".join(f"{title}: {tau.value:.2f}" for title, (tau, _) in estimates.items()),
        drawing=draw_estimates(
            {title: tau for title, (tau, _) in estimates.items()},
            numbers=[number for _, number in estimates.values()],
            x_label="Kendall's tau",
        ),
    )


def _reason(name: str, tau: Interval) -> str:
    if any(tau.low <= paper <= tau.high for paper in _PAPER[name]):
        return "the interval holds a figure of the paper"
    if tau.low > max(_PAPER[name]):
        return "higher: " + _REASONS.get(name, "configs of all sizes differ by more than those of one")
    return "between the paper's tasks" if tau.low > min(_PAPER[name]) else "lower: training is shorter"


def _table(found: Mapping[str, tuple[Repeats, Repeats]]) -> Table:
    rows = []
    for name, paper in _PAPER.items():
        for title, repeats in found.items():
            for where, of in zip(("full size", "all sizes"), repeats, strict=True):
                tau = of.tau.get(name)
                ours = "–" if tau is None else interval_text(tau)
                sign = "–" if tau is None else "yes" if tau.low > 0 else "not shown"
                reason = "too few configs" if tau is None or tau.low <= 0 else _reason(name, tau)
                what = f"{name}, {where} (n={of.n.get(name, 0)})"
                rows.append((what, title, f"{paper[0]} / {paper[1]}", ours, sign, reason))
    rows += [(name, "both", "1 / 1", "1", "yes", "computed from the config") for name in ("n_macs", "n_params")]
    return beside_paper(rows)
