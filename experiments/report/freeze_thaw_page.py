"""The page of freeze-thaw: how well the first epochs of a training predict its last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.analysis.freeze_thaw import PREDICTORS, Curves, Measure, Predictor, Scored
from jahs.comparison.summaries import interval_text
from jahs.tasks.definitions import Task, caveats_of
from workshop.pages.document import Document, Figure, Section, Table, Text
from workshop.pages.drawing import new_panels
from workshop.pages.style import dash, series

_TITLES: Final[Mapping[Measure, str]] = {
    "likelihood": "Gaussian log likelihood per config (nats)",
    "mae": "mean absolute error (points)",
    "tau": "Kendall's τ",
}
_DRAWN: Final[tuple[Measure, ...]] = ("tau", "mae")

_ABOUT: Final = (
    "Each predictor sees the validation accuracy of the first epochs of one training and predicts that of the last "
    "epoch. **Last value** is the last observed accuracy; **plus mean gain** adds what the training part gains on "
    "average from there. **Power law** is a + b t^-c, fitted to the observed epochs of this curve alone; it does not "
    "know that the learning rate is annealed until the last epoch, so that accuracies rise late. **Surrogate** "
    "is fitted to the training part and sees no epoch of the curve. **Corrected**, it adds its residual at the last "
    "observed epoch, times a factor that the validation part chooses. A prediction is a Gaussian. Its standard "
    "deviation, one for each predictor and number of epochs, is that of the errors on the validation part. Scores are "
    "over the test part, with 95 % bootstrap intervals over configs."
)


def freeze_thaw_document(
    scored: Sequence[tuple[Curves, Sequence[Scored]]], *, facts: Sequence[tuple[str, str]]
) -> Document:
    """Return the page."""
    figure = Figure(
        name="predictors",
        caption="Kendall's τ and mean absolute error of the predicted last validation accuracy, by the number of "
        "observed epochs, on held-out configs, with 95 % intervals.",
        alt="Kendall's tau rises and the error falls with the number of observed epochs, one curve per predictor.",
        drawing=_draw(scored),
    )
    return Document(
        title="Freeze-thaw: predicting final accuracy from the first epochs",
        caveats=caveats_of([curves.task for curves, _ in scored]),
        subtitle=" ".join(_finding(curves.task, found) for curves, found in scored),
        sections=(
            Section(title="Predictors of the last epoch", blocks=(figure, Text(_ABOUT))),
            *(_section(curves, found) for curves, found in scored),
        ),
        facts=tuple(facts),
    )


def _finding(task: Task, found: Sequence[Scored]) -> str:
    """Return the sentence on a third of the epochs, and on when the last value alone is as good as the surrogate."""
    by_stage = _by_stage(found)
    third = min(by_stage, key=lambda n: abs(n - task.max_epoch / 3))
    last, model, both = (by_stage[third][name].scores for name in ("last value", "surrogate", "surrogate, corrected"))
    equal = [n for n, of in by_stage.items() if of["last value"].scores["tau"].value >= model["tau"].value]
    until = f"the last value is as good from epoch {equal[0]} on" if equal else "the last value is at no stage as good"
    return (
        f"On {task.title}, after {third} of {task.max_epoch} epochs, the last value orders held-out configs with "
        f"Kendall's τ {interval_text(last['tau'])}, and the surrogate without any epoch with "
        f"{interval_text(model['tau'])}; {until}. Corrected by the observed epochs, the surrogate has τ "
        f"{interval_text(both['tau'])} and a mean absolute error of {interval_text(both['mae'])} instead of "
        f"{interval_text(model['mae'])} points."
    )


def _by_stage(found: Sequence[Scored]) -> dict[int, dict[Predictor, Scored]]:
    stages: dict[int, dict[Predictor, Scored]] = {}
    for each in found:
        stages.setdefault(each.n_observed, {})[each.predictor] = each
    return stages


def _draw(scored: Sequence[tuple[Curves, Sequence[Scored]]]) -> Drawing:
    n = len(scored)
    drawing, axes = new_panels(len(_DRAWN), n, width=7.2, height=6.0)
    for row, measure in enumerate(_DRAWN):
        for column, (curves, found) in enumerate(scored):
            panel = axes[row * n + column]
            for number, name in enumerate(PREDICTORS):
                of = [each for each in found if each.predictor == name]
                x = [each.n_observed for each in of]
                y, low, high = (
                    np.array([getattr(each.scores[measure], end) for each in of]) for end in ("value", "low", "high")
                )
                panel.plot(x, y, color=series(number), linestyle=dash(number), marker="o", markersize=3, label=name)
                panel.fill_between(x, low, high, color=series(number), alpha=0.14, linewidth=0)
            x_label = f"observed epochs of {curves.task.max_epoch}"
            panel.set(title=curves.task.title, xlabel=x_label, ylabel=_TITLES[measure], ylim=(0, None))
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=3.2)
    return drawing


def _section(curves: Curves, found: Sequence[Scored]) -> Section:
    rows = [
        (
            str(each.n_observed),
            each.predictor,
            *(interval_text(each.scores[measure]) for measure in _TITLES),
            f"{each.sd:.2f}",
        )
        for each in found
    ]
    n = {part: len(values) for part, values in curves.observed.items()}
    outside = f" {curves.n_outside} configs that are not in the split yet take no part." if curves.n_outside else ""
    return Section(
        title=curves.task.title,
        blocks=(
            Text(
                f"{n['test']} test configs are scored, {n['valid']} validation configs calibrate, and the "
                f"surrogate is fitted to {n['train']} training configs with a whole curve and to what is recorded of "
                f"the others.{outside}"
            ),
            Table(
                caption="Scores of the predicted validation accuracy at the last epoch, with 95 % intervals",
                columns=("observed epochs", "predictor", *_TITLES.values(), "standard deviation (points)"),
                rows=tuple(rows),
                n_labels=2,
            ),
        ),
    )
