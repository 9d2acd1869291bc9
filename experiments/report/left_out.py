"""The section of the page of `live` on surrogates that were each not fitted to the trainings of one optimiser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.live.beside import N_RUNS
from experiments.live.results import LiveResults, curve_distance, distinct
from experiments.report.single import ERROR_LABEL, error_limits
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import number_text
from jahs.spaces.configs import config_id
from surrogate.judging.agreement import agreement
from workshop.pages.document import Block, Figure, Table, Text, answer
from workshop.pages.drawing import new_panels, set_scale
from workshop.pages.style import dash, series

_PANELS_A_ROW: Final = 3


def left_out_blocks(results: LiveResults) -> Iterator[str | Block]:
    """Yield how each optimiser runs on a surrogate without its trainings; nothing before one was run on it."""
    known = [
        i
        for i, arm in enumerate(results.arms)
        if arm.name in results.left_out and (arm.name, None) in results.beside and results.furthest(i)[0]
    ]
    if not known:
        return
    titles = [results.arms[i].title for i in known]
    values = np.array([_measures(results, i) for i in known])
    means = values.mean(axis=0)
    r2, tau, r2_others, tau_others, *_, end, end_others = map(number_text, means)
    yield "Leave one optimiser out"
    yield answer(
        "A surrogate that is also fitted to the trainings of the other optimisers predicts an optimiser's own "
        f"trainings with R² = {r2_others} and sparse τ = {tau_others} on average; fitted to the record of the release "
        f"alone, with {r2} and {tau}. Runs on that surrogate end {end_others} standard deviations (between trainings) "
        f"from the real runs, and runs on the release {end}."
    )
    yield Figure(
        name="live-left-out",
        caption="Observed validation error of the incumbent: mean over the seeds with the most evaluations, and over "
        f"{N_RUNS} runs for each of them on the release and on a surrogate without the optimiser's own trainings.",
        alt=f"Validation error of the incumbent over evaluations, trained and on two surrogates: {', '.join(titles)}.",
        drawing=_draw(results, known),
    )
    yield Table(
        caption="Predictions for each optimiser's own trainings by a model of the record and by one that is also "
        "fitted to the trainings of the others; and its runs on the release and on the latter model beside its real "
        "ones. Ends are in standard deviations between trainings",
        columns=(
            *("optimiser", "R², record", "sparse τ, record", "R², with others", "sparse τ, with others"),
            *("distance of curves (points), release", "distance of curves (points), with others"),
            *("difference of ends (sd), release", "difference of ends (sd), with others"),
        ),
        rows=tuple(
            (title, *map(number_text, row)) for title, row in zip([*titles, "mean"], [*values, means], strict=True)
        ),
    )
    yield Text(
        "As in NAS-Bench-301 (tables 6 and 7), one optimiser's data are left out at a time. Optimisers with the same "
        "seed share their first random configs, so these trainings are left out, too. Both models have the settings of "
        "the study `truth`, and the noise model of the release."
    )


def _measures(results: LiveResults, arm: int) -> list[float]:
    """Return the numbers of an optimiser's row in the table."""
    name, (n, seeds) = results.arms[arm].name, results.furthest(arm)
    left_out, trained = results.left_out[name], results.curves[arm, seeds, :n]
    trainings = distinct(training for (by, _), run in results.trained.items() if by == name for training in run)
    measured = np.array([training.metrics["valid_acc"] for training in trainings])
    row = []
    for predicted in (left_out.with_record, left_out.with_others):
        scores = agreement("valid_acc", measured, np.array([predicted[config_id(each.config)] for each in trainings]))
        row += [np.nan if (score := scores[key]) is None else score for key in ("r2", "sparse_tau")]
    simulated = [curves[seeds, :, :n] for curves in (results.beside[name, None], left_out.curves)]
    ends = [abs(float(trained[:, -1].mean() - curves[..., -1].mean())) for curves in simulated]
    return [*row, *(curve_distance(trained, curves) for curves in simulated), *(end / results.noise.sd for end in ends)]


def _draw(results: LiveResults, known: Sequence[int]) -> Drawing:
    """Draw a panel for each optimiser."""
    n_rows = -(-len(known) // _PANELS_A_ROW)
    height = 0.9 + 2.2 * n_rows
    drawing, panels = new_panels(n_rows, _PANELS_A_ROW, width=8.4, height=height, share_x=True, share_y=True)
    for panel in panels[len(known) :]:
        panel.set_axis_off()
    drawn: list[Floats] = []
    for place, (panel, i) in enumerate(zip(panels, known, strict=False)):
        arm, (n, seeds) = results.arms[i], results.furthest(i)
        curves = {
            "trained": results.curves[i, seeds, :n].mean(axis=0),
            "release": results.beside[arm.name, None][seeds, :, :n].mean(axis=(0, 1)),
            "without its trainings": results.left_out[arm.name].curves[seeds, :, :n].mean(axis=(0, 1)),
        }
        for number, (title, values) in enumerate(curves.items()):
            panel.plot(np.arange(1, n + 1), values, color=series(number), linestyle=dash(number), label=title)
        set_scale(panel, "x", "log")
        panel.set(title=arm.title)
        if place >= len(known) - _PANELS_A_ROW:
            panel.set(xlabel="full evaluations")
            panel.tick_params(labelbottom=True)
        if place % _PANELS_A_ROW == 0:
            panel.set(ylabel=ERROR_LABEL)
        drawn += curves.values()
    set_scale(panels[0], "y", "linear", error_limits(np.concatenate(drawn)))
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=3.2)
    return drawing
