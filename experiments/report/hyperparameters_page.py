"""The page on one setting of the hyperparameters for all architectures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from scipy.stats import rankdata

from experiments.analysis.hyperparameters import N_CELLS, N_FLOATS, N_TUNED, SharedSetting, measure_shared
from experiments.analysis.subjects import Inputs, Subject
from experiments.report.findings import beside_paper
from jahs.comparison.summaries import interval_text
from jahs.queries.exhaustive import LARGEST
from workshop.numbered import FIDELITY_GROUPS
from workshop.pages.document import Document, Figure, Section, Table, Text, answer
from workshop.pages.drawing import new_panels
from workshop.pages.style import series

_PAPER: Final = 0.9155

_MEASURES: Final = "Agreement (Spearman's rho) and losses in points of validation accuracy, with 95 % intervals"

_METHOD: Final = f"""f*(A) is the best predicted validation accuracy of architecture A at the last epoch over a grid of
    all choices and {N_FLOATS} × {N_FLOATS} rates. H† has the best mean over {N_TUNED} of {N_CELLS} random cells; the
    measures are of the other {N_CELLS - N_TUNED}. The loss of the winner is what choosing the architecture with H†
    loses, even if the chosen one is tuned afterwards. The intervals cover the draw of cells and the spread of the
    release's refits, each of which chooses its own H†."""

_MEANING: Final = f"""A shared setting is a fair judge only after it was tuned, here on {N_TUNED} architectures. Where
    rho is lower in the better half, much of the agreement over all cells is about which cells fail. The mean loss is
    what a table with fixed hyperparameters understates an architecture by, so it does not resolve smaller differences
    between good architectures. Models that are fitted to few trainings miss some interactions of architecture and
    hyperparameters, so the true agreement is probably lower than on this page."""

_Found = tuple[SharedSetting, Mapping[str, object]]


def hyperparameters_page(subjects: Sequence[Subject], inputs: Inputs) -> Document:
    """Return the page: full size first, then every fidelity group."""
    groups = [dict(zip(LARGEST, sizes, strict=True)) for sizes in FIDELITY_GROUPS]
    found = {
        subject.task.name: [
            (sizes, measure_shared(subject, sizes, seed=inputs.seed, n_cells=N_CELLS, n_floats=N_FLOATS))
            for sizes in groups
        ]
        for subject in subjects
    }
    full = {name: next(of for sizes, of in groups if sizes == LARGEST) for name, groups in found.items()}
    titles = {subject.task.name: subject.task.title for subject in subjects}
    said = "; ".join(
        f"{titles[name]} {interval_text(of['rho'])}, and {interval_text(of['rho in the better half'])} in the better "
        f"half, at a mean loss of {interval_text(of['loss'])} points"
        for name, of in ((name, of.measures) for name, (of, _) in full.items())
    )
    return Document(
        title="One hyperparameter setting for all architectures?",
        subtitle="Spearman's rho between the accuracy of an architecture with its own best hyperparameters and with "
        f"one shared setting, at full size: {said}. NAS-Bench-101 reports {_PAPER} on NAS-HPO-Bench.",
        sections=(
            _at_full_size(full, titles),
            _meaning(full, titles),
            *(_groups(titles[name], of) for name, of in found.items()),
        ),
    )


def _at_full_size(full: Mapping[str, _Found], titles: Mapping[str, str]) -> Section:
    first, setting = next(iter(full.values()))
    measures, keys = tuple(first.measures), tuple(setting)
    return Section(
        title="At full size",
        blocks=(
            _scatter(full, titles),
            beside_paper([_beside(titles[name], of) for name, (of, _) in full.items()]),
            Table(
                caption=_MEASURES,
                columns=("task", *measures),
                rows=tuple(
                    (titles[name], *(interval_text(of.measures[measure]) for measure in measures))
                    for name, (of, _) in full.items()
                ),
            ),
            Table(
                caption="The shared setting H†",
                columns=("task", *keys),
                rows=tuple((titles[name], *map(_shown, own.values())) for name, (_, own) in full.items()),
                n_labels=1 + len(keys),
            ),
            Text(_METHOD),
        ),
    )


def _beside(title: str, found: SharedSetting) -> tuple[str, ...]:
    rho = found.measures["rho"]
    if rho.low <= _PAPER <= rho.high:
        reason = "the interval holds the paper's figure"
    elif rho.low > _PAPER:
        reason = "some of our cells fail with every setting, which any setting shows"
    else:
        reason = "our rates span three decades, and cells need different ones"
    sign = "yes" if rho.low > 0 else "no"
    return "Spearman's rho of f* and f(., H†)", title, f"{_PAPER}", interval_text(rho, 3), sign, reason


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _scatter(full: Mapping[str, _Found], titles: Mapping[str, str]) -> Figure:
    drawing, axes = new_panels(1, len(full), width=2.9 * max(len(full), 1) + 0.6, height=3.1)
    for i, (panel, (name, (of, _))) in enumerate(zip(axes, full.items(), strict=True)):
        panel.plot(rankdata(-of.shared), rankdata(-of.best), "o", color=series(i), markersize=3, alpha=0.7)
        y_label = "rank with its own best setting" if not i else ""
        panel.set(title=titles[name], xlabel="rank with the shared setting", ylabel=y_label)
    return Figure(
        name="ranks",
        caption="Ranks of architectures (1 is best) with the shared setting and with the best setting of each, as in "
        "Figure 9 of NAS-Bench-101.",
        alt="; ".join(f"{titles[name]}: rho {of.measures['rho'].value:.2f}" for name, (of, _) in full.items()),
        drawing=drawing,
    )


def _meaning(full: Mapping[str, _Found], titles: Mapping[str, str]) -> Section:
    said = ", ".join(
        f"{titles[name]} {interval_text(of.measures['loss of the winner'])}" for name, (of, _) in full.items()
    )
    lost = f"Points lost by choosing the architecture with a shared setting and tuning it afterwards: {said}."
    return Section(
        title="What it says about fixing hyperparameters in NAS",
        blocks=(answer(lost), Text(_MEANING)),
    )


def _groups(title: str, found: Sequence[tuple[Mapping[str, object], _Found]]) -> Section:
    measures = ("rho", "rho in the better half", "loss", "loss of the winner")
    rhos = [of.measures["rho"].value for _, (of, _) in found]
    said = f"Spearman's rho is between {min(rhos):.2f} and {max(rhos):.2f} in the {len(found)} groups."
    rows = tuple(
        (*(str(sizes[key]) for key in LARGEST), *(interval_text(of.measures[name]) for name in measures))
        for sizes, (of, _) in found
    )
    columns = (*LARGEST, *measures)
    return Section(
        title=f"Fidelity groups: {title}",
        blocks=(
            answer(said),
            Table(caption=_MEASURES, columns=columns, rows=rows, n_labels=len(LARGEST), is_folded=True),
        ),
    )
