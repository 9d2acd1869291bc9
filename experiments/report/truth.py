"""Pages of studies with two worlds, `truth` and `families`: agreement of optimisers' curves and order between them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from scipy import stats

from experiments.analysis.critical_differences import rank_agreement
from experiments.report.results import Results
from experiments.report.single import (
    TIME_LABEL,
    error_limits,
    median_text,
    no_common_seed,
    summary_text,
    time_figure,
    time_grid,
)
from experiments.study import Arm
from experiments.worlds import quality_of_worlds
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, number_text, summarize
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Figure, Table, Text, answer
from workshop.pages.drawing import draw_curves, interval_curves
from workshop.resampling import interval_text

_TITLES: Final[Mapping[str, str]] = {
    "table": "recorded trainings",
    "left_out": "the surrogate",
    "release": "XGBoost",
    "lightgbm": "LightGBM",
}
"""Titles of the worlds."""

_N_TIMES: Final = 12
_STAGES: Final = (10, 20, 50, 100)
_N_RESAMPLES: Final = 300


def two_worlds_finding(results: Results) -> str:
    """Say how well the final orders in both worlds agree."""
    agreements = {TASKS[task].title: _order_agreement(results, task) for task in results.tasks}
    parts = [f"{interval_text(tau)} on {title}" for title, tau in agreements.items() if tau is not None]
    if not parts:
        return ""
    one, other = (_TITLES[world] for world in _worlds(results))
    return (
        f"Rankings of optimisers by final error on {one} and on {other} agree with Kendall's τ {' and '.join(parts)}."
    )


def truth_blocks(results: Results) -> Iterator[str | Block]:
    """Yield a section for each task."""
    one, other = (_TITLES[world] for world in _worlds(results))
    for task in results.tasks:
        yield f"{one[0].upper()}{one[1:]} and {other} on {task}"
        yield from _blocks(results, task)


def _worlds(results: Results) -> tuple[str, ...]:
    """Return the names of both worlds, in the order of the study."""
    return tuple(dict.fromkeys(arm.world for arm in results.study.arms))


def _blocks(results: Results, task: str) -> Iterator[Block]:
    pairs = _pairs(results, task)
    if len(pairs) < 2:
        yield Text("Fewer than two optimisers have finished a seed in both worlds.")
        return
    arms = _by_world(results, pairs)
    all_arms = [arm for world_arms in arms.values() for arm in world_arms]
    tau = _order_agreement(results, task)
    if tau is None:
        yield no_common_seed(all_arms)
        return
    seeds = results.seeds(task, all_arms)
    grid = time_grid(results)
    values = {world: results.errors(task, world_arms, seeds, grid) for world, world_arms in arms.items()}
    yield answer(_answer(values, tau))
    yield _agreement_figure(task, values, grid)
    for world, world_arms in arms.items():
        yield _curves(world_arms, values[world], [*values.values()], grid, key=f"{task}-{world}")
    yield from _stages(arms, results, task, seeds)
    yield _table(pairs, values)
    if not pairs[0][0].is_of_release:
        yield _quality_table(results, task)


@functools.lru_cache(maxsize=4)
def _order_agreement(results: Results, task: str) -> Interval | None:
    """Return Kendall's tau between the final orders in both worlds; None without two optimisers and a seed in both."""
    if len(pairs := _pairs(results, task)) < 2:
        return None
    arms = _by_world(results, pairs)
    if not (seeds := results.seeds(task, [arm for world_arms in arms.values() for arm in world_arms])):
        return None
    end = time_grid(results)[-1:]
    first, second = (_final(results.errors(task, world_arms, seeds, end)) for world_arms in arms.values())
    return rank_agreement(first, second, has_same_seeds=True)


def _by_world(results: Results, pairs: Sequence[tuple[Arm, Arm]]) -> dict[str, list[Arm]]:
    return dict(zip(_worlds(results), map(list, zip(*pairs, strict=True)), strict=True))


def _pairs(results: Results, task: str) -> list[tuple[Arm, Arm]]:
    """Return pairs of arms that differ in their world only, in the order of the study."""
    by_key: dict[tuple[str, str], dict[str, Arm]] = {}
    for arm in results.arms:
        if results.of(task, arm):
            by_key.setdefault((arm.optimizer, arm.title), {})[arm.world] = arm
    one, other = _worlds(results)
    return [(worlds[one], worlds[other]) for worlds in by_key.values() if len(worlds) == 2]


def _final(errors: Floats) -> Floats:
    """Return the last errors, (n_arms, n_seeds), of errors over time; a run without a result has an error of 100 %."""
    return np.asarray(np.nan_to_num(errors[:, :, -1], nan=100.0))


def _answer(values: Mapping[str, Floats], tau: Interval) -> str:
    first = _final(next(iter(values.values())))
    one, other = (_TITLES[world] for world in values)
    n_arms, n_seeds = first.shape
    half = n_seeds // 2
    text = (
        f"Kendall's τ between the final rankings of {n_arms} optimisers on {one} and on {other} is "
        f"{interval_text(tau)} over {n_seeds} paired seeds."
    )
    if half >= 2:
        chance = rank_agreement(first[:, :half], first[:, half:], has_same_seeds=False)
        text += (
            f" For comparison, two disjoint sets of {half} and {n_seeds - half} seeds on {one} agree with "
            f"τ = {interval_text(chance)}."
        )
    return text


def _curves(arms: Sequence[Arm], values: Floats, all_values: Sequence[Floats], grid: Floats, *, key: str) -> Figure:
    means = np.concatenate([errors.mean(axis=1) for errors in all_values])
    return time_figure(
        arms,
        [summarize(errors) for errors in values],
        grid,
        name=key.replace("_", "-"),
        caption=f"{arms[0].chapter[0].upper()}{arms[0].chapter[1:]}: best validation error so far, mean over seeds and "
        "standard error. Both figures have the same axes.",
        alt=f"Mean validation error over simulated time: {arms[0].chapter}.",
        y_limits=error_limits(means),
    )


def _agreement_figure(task: str, values: Mapping[str, Floats], grid: Floats) -> Block:
    """Return rank agreement over time, from the time at which every seed of every arm has a result in both worlds."""
    is_complete = np.all([~np.isnan(errors).any(axis=(0, 1)) for errors in values.values()], axis=0)
    if not len(at := np.flatnonzero(is_complete)):
        return Text("There is no time at which all seeds of all optimisers have a result in both worlds.")
    at = at[np.unique(np.linspace(0, len(at) - 1, _N_TIMES).round().astype(int))]
    one, other = values.values()
    taus = [
        rank_agreement(one[:, :, i], other[:, :, i], has_same_seeds=True, n_resamples=_N_RESAMPLES) for i in at.tolist()
    ]
    curves = interval_curves({"Kendall's τ": taus}, grid[at])
    return Figure(
        name=f"{task}-agreement".replace("_", "-"),
        caption="Agreement of the optimisers' rankings in the two worlds over time, with 95 % percentile bootstrap "
        "intervals over seeds. They are extended to the estimate: resampling adds noise, which lowers a large τ.",
        alt="Kendall's tau between the rankings in the two worlds over simulated time.",
        drawing=draw_curves(curves, x_label=TIME_LABEL, y_label="Kendall's τ", x_scale="log", y_limits=(-1.05, 1.05)),
    )


def _stages(arms: Mapping[str, Sequence[Arm]], results: Results, task: str, seeds: Sequence[int]) -> Iterator[Block]:
    """Yield the agreement at several budgets: with a large one, optimisers may all find the best config."""
    rows = []
    for budget in (n for n in _STAGES if n <= results.study.n_evaluations):
        at = np.array([float(budget)])
        one, other = (results.errors(task, world_arms, seeds, at)[..., 0] for world_arms in arms.values())
        if np.isfinite(one).all() and np.isfinite(other).all():
            tau = rank_agreement(one, other, has_same_seeds=True)
            spreads = (f"{np.ptp(errors.mean(axis=1)):.2f}" for errors in (one, other))
            rows.append((str(budget), interval_text(tau), *spreads))
    if rows:
        yield Table(
            caption="Agreement of the rankings at several budgets, and the difference of the best and the worst "
            "optimiser's mean error (percentage points)",
            columns=(
                "mean full evaluations",
                "Kendall's τ (95 %)",
                *(f"{_TITLES[w]}: best to worst" for w in arms),
            ),
            rows=tuple(rows),
        )


def _table(pairs: Sequence[tuple[Arm, Arm]], values: Mapping[str, Floats]) -> Table:
    rows, ends = [], {world: errors[:, :, -1] for world, errors in values.items()}
    places = {
        world: stats.rankdata(_final(errors).mean(axis=1), method="min").astype(int) for world, errors in values.items()
    }
    for i, (arm, _) in enumerate(pairs):
        cells = []
        for world, end in ends.items():
            final = summarize(end[i])
            cells += [summary_text(final), median_text(final), str(places[world][i])]
        one, other = (errors[i].mean(axis=0) for errors in values.values())
        differences = np.abs(one - other)[np.isfinite(one) & np.isfinite(other)]
        rows.append((arm.title, *cells, number_text(float(np.mean(differences)) if differences.size else None)))
    return Table(
        caption="Final validation error in each world, mean ± standard error over seeds, and the mean absolute "
        "difference between the mean curves",
        columns=(
            "optimiser",
            *(column for world in values for column in (f"{_TITLES[world]}: error (%)", "median", "rank")),
            "difference between curves (percentage points)",
        ),
        rows=tuple(rows),
    )


def _quality_table(results: Results, task: str) -> Table:
    quality = quality_of_worlds(results.folder.path, task)
    rows = tuple((name, *(f"{x:.3f}" for x in values)) for name, *values in quality["agreement"])
    return Table(
        caption=f"Quality of the surrogates at the last epoch on held-out configs ({quality['n_folds']}-fold "
        f"cross-validation over {quality['n_configs']} recorded configs)",
        columns=("metric", "Kendall's τ", "R²"),
        rows=rows,
    )
