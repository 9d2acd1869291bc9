"""The page of the study `multiobjective`: hypervolume over time, IGD+ to the front, attainment surfaces.

All objectives are minimised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import moocore  # type: ignore[import-untyped]  # ships no types
import numpy as np

from experiments.report.comparison import (
    compared,
    comparison_blocks,
    comparison_of,
    curve,
    differing_text,
    quoted_title,
)
from experiments.report.results import Results
from experiments.report.single import median_text, no_common_seed, summary_text, time_figure, time_grid
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.steps import on_grid, regret_area
from jahs.comparison.summaries import summarize
from jahs.errors import MissingData, UnknownName
from jahs.queries.references import Front
from jahs.tasks.definitions import TASKS
from jahs.tasks.metrics import METRICS
from workshop.pages.document import Block, Figure, Table, Text, answer
from workshop.pages.drawing import Curve, draw_curves

_LABELS: Final = {
    "latency": "latency (s per batch of 256)",
    "n_macs": "multiply-adds per image",
    "n_params": "trainable parameters",
    "runtime": "runtime of the training (s)",
    "valid_acc": "validation error (%)",
}


def trade_off_finding(results: Results) -> str:
    """Say in how many comparisons, each of two objectives on one task, each arm is best."""
    best: Counter[str] = Counter()
    for (_, names), comparison in compared(results).items():
        arm = next(arm for arm in results.arms if arm.name == names[int(comparison.mean_ranks.argmin())])
        best[quoted_title(arm)] += 1
    if not best:
        return ""
    (first, n_first), *others = best.most_common()
    also = "".join(f", {title} in {n}" for title, n in others)
    return (
        f"By mean rank of the covered hypervolume, {first} is best in {n_first} of {best.total()} comparisons{also}; "
        f"{differing_text(results)}."
    )


def multiobjective_blocks(results: Results) -> Iterator[str | Block]:
    """Yield a section for each chapter, whose arms have the same objectives."""
    for chapter in results.study.chapters:
        yield chapter
        arms = results.arms_of(chapter)
        for task in results.tasks if arms else ():
            yield from _blocks(results, task, arms)


def _blocks(results: Results, task: str, arms: Sequence[Arm]) -> Iterator[Block]:
    names = arms[0].objectives
    try:
        front = results.bench[task].front(names)
    except (MissingData, UnknownName) as err:
        yield Text(f"The release has no frozen reference point: {err}")
        return
    seeds = results.seeds(task, arms)
    if not seeds:
        yield no_common_seed(arms)
        return
    key = "-".join((task, names[1], *(["fidelities"] if arms[0].view.search == "all" else []))).replace("_", "-")
    share = [[curve(results, task, arm, r) for r in results.of(task, arm, seeds)] for arm in arms]
    points = [[r.points(names)[1] for r in results.of(task, arm, seeds)] for arm in arms]
    grid = time_grid(results)
    values = -np.stack([np.nan_to_num(on_grid(curves, grid)) for curves in share])  # without points, the volume is 0
    order = sorted(zip(values[:, :, -1].mean(axis=1).tolist(), arms, strict=True), key=lambda pair: -pair[0])
    volumes = ", ".join(f"{arm.title} {volume:.3f}" for volume, arm in order)
    yield answer(f"Final share of the front's hypervolume on {TASKS[task].title}, from best to worst: {volumes}.")
    point = zip(front.reference_point.tolist(), names, strict=True)
    point_text = " and ".join(f"{value:.4g} {METRICS[name].unit}" for value, name in point)
    yield time_figure(
        arms,
        [summarize(shares) for shares in values],
        grid,
        name=f"{key}-hypervolume",
        caption=f"Hypervolume so far as a share of the reference front's: mean over {len(seeds)} seeds and standard "
        f"error. The reference point is {point_text}.",
        alt="Hypervolume rising over simulated time, one curve for each optimiser.",
        y_label="share of the front's hypervolume",
    )
    yield _attainment_figure(arms, points, front.F, names, key=key)
    if comparison := comparison_of(results, task, arms):
        yield from comparison_blocks(arms, comparison, what="missing share of hypervolume", key=key)
    # The area under the curve of the missing share; `share` has minus the shares of the hypervolume.
    budget = float(results.study.n_evaluations)
    areas = [[100 * regret_area(steps, best=-1.0, guess=0.0, budget=budget) for steps in curves] for curves in share]
    yield _table(arms, values[:, :, -1], areas, points, front)


def _table(
    arms: Sequence[Arm],
    final: Floats,
    areas: Sequence[Sequence[float]],
    points: Sequence[Sequence[Floats]],
    front: Front,
) -> Table:
    rows = []
    by_volume = sorted(zip(arms, final, areas, points, strict=True), key=lambda entry: -entry[1].mean())
    for arm, values, area, sets in by_volume:
        distances = np.array([igd_plus(F, front=front.F, ideal=front.ideal, nadir=front.nadir) for F in sets])
        finite = distances[np.isfinite(distances)]
        volume, distance = summarize(values), summary_text(summarize(finite)) if finite.size else "–"
        texts = summary_text(volume), median_text(volume, usual=4), summary_text(summarize(np.array(area))), distance
        rows.append((arm.title, *texts, f"{finite.size}/{len(values)}"))
    return Table(
        caption="At the end of the budget, mean ± standard error over seeds: share of the reference front's "
        "hypervolume (higher is better), normalised area under the curve of the missing share over the run (lower is "
        "better), and IGD+ to that front, objectives scaled by its ideal and nadir points (lower is better)",
        columns=(
            *("optimiser", "hypervolume (share)", "median (share)", "area under missing share (%)", "IGD+"),
            "seeds with a result",
        ),
        rows=tuple(rows),
    )


def _attainment_figure(
    arms: Sequence[Arm], points: Sequence[Sequence[Floats]], front: Floats, names: tuple[str, ...], *, key: str
) -> Figure:
    curves = []
    for number, (arm, sets) in enumerate(zip(arms, points, strict=True)):
        surfaces = [attainment_surface(sets, share=share) for share in (0.5, 0.25, 0.75)]
        x = np.unique(np.concatenate([surface[:, 1] for surface in surfaces]))
        y, low, high = (_error_at(surface, x) for surface in surfaces)
        curves.append(Curve(title=arm.title, x=x, y=y, low=low, high=high, number=number))
    order = np.argsort(front[:, 1])
    curves.append(Curve(title="reference front", x=front[order, 1], y=front[order, 0], number=7))
    errors = np.concatenate([curve.y[np.isfinite(curve.y)] for curve in curves])
    return Figure(
        name=f"{key}-attainment",
        caption="Median attainment surface at the end of the budget. The band lies between the 25 % and 75 % surfaces.",
        alt="Attainment surfaces: validation error falling with cost, one curve for each optimiser.",
        drawing=draw_curves(
            curves,
            x_label=_LABELS[names[1]],
            y_label=_LABELS[names[0]],
            x_scale="log",
            y_scale="log" if errors.size and errors.min() > 0 else "linear",
        ),
    )


def _error_at(surface: Floats, costs: Floats) -> Floats:
    """Return the error (first column) that a surface attains at each cost (second column); NaN where it has none."""
    best = np.array([surface[surface[:, 1] <= cost, 0].min(initial=np.inf) for cost in costs.tolist()])
    return np.where(np.isfinite(best), best, np.nan)


def igd_plus(F: Floats, *, front: Floats, ideal: Floats, nadir: Floats) -> float:
    """Return IGD+ of points to a front, objectives scaled from ideal (0) to nadir (1); inf without points."""
    if not len(F):
        return float("inf")
    span = np.where(nadir > ideal, nadir - ideal, 1.0)
    return float(moocore.igd_plus((F - ideal) / span, ref=(front - ideal) / span))


def attainment_surface(sets: Sequence[Floats], *, share: float) -> Floats:
    """Return the corners (k, 2) of the region that at least `share` of the sets attain, by the first objective.

    A set attains a point if it has a point at least as good in both objectives. A share of 0.5 gives the median
    attainment surface.
    """
    parts = [F if len(F) else np.full((1, 2), np.inf) for F in sets]  # a set without points counts, and attains nothing
    owners = np.repeat(np.arange(len(parts)), [len(F) for F in parts])
    corners = moocore.eaf(np.concatenate(parts), sets=owners, percentiles=[100 * share])[:, :2]
    return np.asarray(corners[np.isfinite(corners).all(axis=1)])
