"""The pages of the studies `long` and `workers`: long runs, and what asynchronous workers cost and gain.

A budget of n evaluations is the time of n mean full evaluations: optimisers that choose slow configs train fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from experiments.report.comparison import comparison_of, differing_text, finals, groups, p_statement
from experiments.report.results import Results
from experiments.report.single import no_common_seed, overview, summary_text
from experiments.report.speedups import Speedup, speedup
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.steps import Steps, on_grid
from jahs.comparison.summaries import mean_interval, summarize
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Figure, Table, answer
from workshop.pages.drawing import Curve, draw_curves
from workshop.resampling import interval_text

_TARGET: Final = 0.5  # share of the budget after which the median error with one worker is the target of the speed-up
_DECADES: Final = (100, 1000, 10_000)


def long_blocks(results: Results) -> Iterator[str | Block]:
    """Yield the errors after budgets of 100, 1,000 and 10,000 evaluations, and the overview, for each task."""
    for task in results.tasks:
        arms = results.arms_of("optimisers", task)
        yield f"Long runs on {task}"
        yield from _decades(results, task, arms)
        yield from overview(results, task, arms, key=task.replace("_", "-"))


def _decades(results: Results, task: str, arms: Sequence[Arm]) -> Iterator[Block]:
    times = np.array([n for n in _DECADES if n <= results.study.n_evaluations], dtype=np.float64)
    seeds = results.seeds(task, arms)
    errors = [(arm, on_grid(results.steps(task, arm, seeds), times)) for arm in arms]
    if times.size and all(len(values) for _, values in errors):
        yield answer(_order_text(results, task, arms, [values[:, -1] for _, values in errors], budget=float(times[-1])))
        yield Table(
            caption="Mean validation error (%) of the incumbent after budgets of so many mean full evaluations, mean ± "
            "standard error and median over seeds; and the mean number of trials that finished in the study's budget. "
            "A mean far above its median is one seed's: a lucky draw of noise made a bad config the incumbent",
            columns=("optimiser", *(f"budget of {n:,.0f}" for n in times), "finished trials"),
            rows=tuple(
                (
                    arm.title,
                    *(f"{summary_text(summarize(column))}; {np.median(column):.2f}" for column in values.T),
                    _finished_text(results, task, arm),
                )
                for arm, values in errors
            ),
        )


def _order_text(results: Results, task: str, arms: Sequence[Arm], finals: Sequence[Floats], *, budget: float) -> str:
    """Return the final medians in order if Friedman's test finds one; else in the order of the study."""
    medians = [(float(np.median(values)), arm.title) for arm, values in zip(arms, finals, strict=True)]
    comparison = comparison_of(results, task, arms)
    p_value, alpha = (comparison.p_friedman, comparison.alpha) if comparison else (np.nan, 0.0)
    has_order = p_value < alpha
    text = ", ".join(f"{title} {error:.2f} %" for error, title in (sorted(medians) if has_order else medians))
    p = f" (Friedman's test: {p_statement(p_value)})" if np.isfinite(p_value) else ""
    verdict = "from best to worst" if has_order else "without a significant order"
    return (
        f"Median over seeds of the mean validation error after a budget of {budget:,.0f} mean full evaluations on "
        f"{TASKS[task].title}, {verdict}{p}: {text}."
    )


def _finished_text(results: Results, task: str, arm: Arm) -> str:
    return f"{np.mean([result.n_finished for result in results.of(task, arm)]):,.0f}"


def workers_finding(results: Results) -> str:
    """Say by how much the largest number of workers changes the final error."""
    costs, most = [], max(map(_n_workers, results.study.arms))
    for task in results.tasks:
        differences = []
        for _, arms in groups(results, task):
            errors = finals(results, task, arms)[0]
            by_workers = {
                _n_workers(arm): float(each.mean()) for arm, each in zip(arms, errors, strict=True) if each.size
            }
            if {1, most} <= by_workers.keys():
                differences.append(by_workers[most] - by_workers[1])
        if differences:
            costs.append(f"{min(differences):+.2f} to {max(differences):+.2f} points on {TASKS[task].title}")
    if not costs:
        return ""
    return (
        f"With {most} workers instead of one, the mean final error of an optimiser changes by "
        f"{' and by '.join(costs)}, for the same worker time; {differing_text(results)}."
    )


def worker_blocks(results: Results) -> Iterator[str | Block]:
    """Yield what workers cost and gain, for each task."""
    for task in results.tasks:
        yield f"Workers on {task}"
        yield from _worker_blocks(results, task)


def _worker_blocks(results: Results, task: str) -> Iterator[Block]:
    by_optimizer = [
        arms
        for name in results.study.chapters
        if len(arms := results.arms_of(name, task)) > 1 and _n_workers(arms[0]) == 1
    ]
    if not by_optimizer or not all(results.seeds(task, arms) for arms in by_optimizer):
        yield no_common_seed([arm for arms in by_optimizer for arm in arms])
        return
    rows, curves, costs = [], [], []
    for number, arms in enumerate(by_optimizer):
        seeds = results.seeds(task, arms)
        ends = np.array([float(results.study.n_evaluations) / _n_workers(arm) for arm in arms])
        steps = [results.steps(task, arm, seeds) for arm in arms]
        final = np.stack([on_grid(arm_steps, end[None])[:, 0] for arm_steps, end in zip(steps, ends, strict=True)])
        final = np.nan_to_num(final, nan=TASKS[task].chance_error)  # (n_arms, n_seeds)
        summary = summarize(final.T)
        for i, arm in enumerate(arms):
            rows.append(_row(results, task, arm, final=final[[0, i]], steps=(steps[0], steps[i])))
        x = np.array([_n_workers(arm) for arm in arms], dtype=np.float64)
        mean, band = summary.mean, {"low": summary.mean - summary.se, "high": summary.mean + summary.se}
        curves.append(Curve(title=arms[0].chapter, x=x, y=mean, **band, number=number, is_step=False, has_markers=True))
        costs.append(f"{arms[0].chapter} {mean[-1] - mean[0]:+.2f} ({_n_workers(arms[-1])} workers)")
    yield answer(
        f"Cost of many workers instead of one for the same worker time on {TASKS[task].title}, in points of the final "
        f"mean validation error: {'; '.join(costs)}."
    )
    yield Figure(
        name=f"{task}-workers".replace("_", "-"),
        caption="Final mean validation error of the incumbent by the number of workers, for the same worker time: mean "
        "over seeds and standard error.",
        alt="Mean validation error over the number of workers, one curve for each optimiser.",
        drawing=draw_curves(curves, x_label="workers", y_label="validation error (%)", x_scale="log"),
    )
    yield Table(
        caption="What workers cost and gain. All arms of an optimiser have the same worker time, the number of workers "
        "times the simulated time. They do not finish the same number of trials: trials that run at the end of the "
        "budget are cut off, and workers are idle while an optimiser waits for results. Cost: final mean validation "
        "error, with the difference to one worker and its 95 % interval over paired seeds. Gain: how much "
        "sooner half of the seeds first have the median error that one worker has after half of its time, with 95 % "
        "bootstrap intervals (–: more than 2.5 % of the resamples do not reach it)",
        columns=(
            *("optimiser", "workers", "simulated time (mean full evaluations)", "finished trials"),
            *("validation error (%)", "difference to one worker (points)", "speed-up"),
        ),
        rows=tuple(rows),
        n_labels=2,
    )


def _n_workers(arm: Arm) -> int:
    """Return the number of simulated workers of an arm."""
    return arm.workers or 1


def _row(
    results: Results, task: str, arm: Arm, *, final: Floats, steps: tuple[Sequence[Steps], Sequence[Steps]]
) -> tuple[str, ...]:
    """Return the row of an arm; `final` (2, n_seeds) and `steps` are for one worker and for this arm."""
    budget = float(results.study.n_evaluations)
    label = arm.chapter, str(_n_workers(arm)), f"{budget / _n_workers(arm):g}", _finished_text(results, task, arm)
    error = summary_text(summarize(final[1]))
    if _n_workers(arm) == 1:
        return (*label, error, "–", "–")
    difference = mean_interval(final[1] - final[0])
    is_early = [curve.times <= _TARGET * budget for curve in steps[0]]
    half = [Steps(times=c.times[at], values=c.values[at]) for c, at in zip(steps[0], is_early, strict=True)]
    gain = speedup(steps[1], half, budget=budget, guess=TASKS[task].chance_error)
    return (*label, error, interval_text(difference, sign="+"), _gain_text(gain))


def _gain_text(gain: Speedup) -> str:
    """Return a speed-up and its interval. An arm with many workers ends before the bounds of `Speedup` would hold."""
    if gain.is_bound:
        return "not reached"
    if np.isnan(gain.interval.low):
        return f"{gain.interval.value:.1f}×"
    low = "–" if gain.is_low_bound else f"{gain.interval.low:.1f}"
    return f"{gain.interval.value:.1f}× ({low} to {gain.interval.high:.1f})"
