"""The content of all pages with one objective: curves, ranks, significant differences, and final errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from experiments.analysis.critical_differences import mean_with_refits
from experiments.report.comparison import comparison_blocks, comparison_of, finals
from experiments.report.results import RepetitionResult, Results, best_at_full_size
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import mean_ranks
from jahs.comparison.steps import regret_area
from jahs.comparison.summaries import (
    FEWEST_SEEDS,
    Interval,
    Summary,
    digits_for,
    estimate_text,
    mean_interval,
    number_text,
    summarize,
)
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Figure, Table, Text
from workshop.pages.drawing import Curve, draw_curves

N_TIMES: Final = 401
TIME_LABEL: Final = "simulated time (mean full evaluations)"
ERROR_LABEL: Final = "validation error (%)"
_FIRST: Final = 0.5


def time_grid(results: Results) -> Floats:
    """Return times that are evenly spaced on a log axis; the last one is the budget."""
    grid = np.geomspace(_FIRST, results.study.n_evaluations, N_TIMES)
    grid[-1] = results.study.n_evaluations
    return grid


def overview(results: Results, task: str, arms: Sequence[Arm], *, key: str) -> Iterator[Block]:
    """Yield curves, ranks and comparisons of some arms on a task; the names of figures start with `key`."""
    seeds = results.seeds(task, arms)
    if not seeds:
        yield no_common_seed(arms)
        return
    grid = time_grid(results)
    values = results.errors(task, arms, seeds, grid)
    yield from _error_figures(arms, values, grid, key=key)
    if len(arms) > 1:
        yield _rank_figure(arms, values, grid, key=key)
    if comparison := comparison_of(results, task, arms):
        yield from comparison_blocks(arms, comparison, what="mean validation error (points)", key=key)
    yield _final_table(results, task, arms, seeds, values[:, :, -1])


def no_common_seed(arms: Sequence[Arm]) -> Text:
    """Return the text of a section without a seed to compare."""
    if not arms:
        return Text("There are no two arms to compare.")
    return Text(f"No seed has been finished by all of: {', '.join(dict.fromkeys(arm.title for arm in arms))}.")


def time_figure(
    arms: Sequence[Arm],
    summaries: Sequence[Summary],
    grid: Floats,
    *,
    name: str,
    caption: str,
    alt: str,
    y_label: str = ERROR_LABEL,
    y_limits: tuple[float, float] | None = None,
    is_median: bool = False,
) -> Figure:
    """Return a curve over time for each arm: the mean with its standard error, or the median with quartiles."""
    curves = []
    for number, (arm, summary) in enumerate(zip(arms, summaries, strict=True)):
        middle = summary.median if is_median else summary.mean
        low, high = (summary.q25, summary.q75) if is_median else (summary.mean - summary.se, summary.mean + summary.se)
        curves.append(Curve(title=arm.title, x=grid, y=middle, low=low, high=high, number=number))
    drawing = draw_curves(curves, x_label=TIME_LABEL, y_label=y_label, x_scale="log", y_limits=y_limits)
    return Figure(name=name, caption=caption, alt=alt, drawing=drawing)


def test_errors(results: Results, task: str, arm: Arm, repetitions: Sequence[RepetitionResult]) -> Floats:
    """Return the mean test error of each last incumbent by the release, (n_repetitions,); NaN without an incumbent."""
    configs = [result.configs[-1] for result in repetitions if result.configs]
    errors = np.full(len(repetitions), np.nan)
    if arm.world == "release" and configs and "test_acc" in results.bench[task].metrics:
        accuracies = results.bench[task].query_many(configs, metrics=("test_acc",))["test_acc"]
        errors[[bool(result.configs) for result in repetitions]] = 100.0 - accuracies
    return errors


def summary_text(found: Summary) -> str:
    """Return mean ± standard error for a table."""
    return estimate_text(float(found.mean), float(found.se))


def median_text(found: Summary, *, usual: int = 2) -> str:
    """Return the median with the decimals of the mean for a table, `usual` ones without a standard error."""
    return number_text(float(found.median), digits_for(float(found.se), usual=usual))


def final_mean(values: Floats, on_refits: Floats) -> Interval:
    """Return the mean of final results over seeds with its 95 % interval; seeds without a result, NaN, do not count.

    The interval contains the error of the models if every seed has a result and each refit was run with several seeds,
    whose results are (n_refits, n_seeds).
    """
    finite = values[np.isfinite(values)]
    has_refits = on_refits.shape[1] > 1 and finite.size == len(values) >= FEWEST_SEEDS
    return mean_with_refits(finite, on_refits) if has_refits else mean_interval(finite)


def error_limits(values: Floats) -> tuple[float, float] | None:
    """Return limits of an error axis that show the range after the first evaluations; None without any value."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(np.quantile(finite, 0.97))
    margin = max(0.04 * (high - low), 0.05)
    return max(low - margin, 0.0), min(high + margin, 100.0)


def _error_figures(arms: Sequence[Arm], values: Floats, grid: Floats, *, key: str) -> Iterator[Block]:
    summaries, n_seeds, titles = [summarize(v) for v in values], values.shape[1], ", ".join(a.title for a in arms)
    yield time_figure(
        arms,
        summaries,
        grid,
        name=f"{key}-mean",
        caption=f"Validation error of the incumbent: mean over {n_seeds} seeds and standard error. A curve "
        "starts when every seed has a result.",
        alt=f"Mean validation error over simulated time: {titles}.",
        y_limits=error_limits(np.stack([edge for s in summaries for edge in (s.mean - s.se, s.mean)])),
    )
    yield time_figure(
        arms,
        summaries,
        grid,
        name=f"{key}-median",
        caption=f"Validation error of the incumbent: median over {n_seeds} seeds and quartiles.",
        alt=f"Median validation error over simulated time: {titles}.",
        y_limits=error_limits(np.stack([edge for s in summaries for edge in (s.q25, s.q75)])),
        is_median=True,
    )


def _rank_figure(arms: Sequence[Arm], values: Floats, grid: Floats, *, key: str) -> Figure:
    ranks, limits = zip(arms, mean_ranks(values), strict=True), (len(arms) + 0.2, 0.8)
    curves = [Curve(title=arm.title, x=grid, y=y, number=number) for number, (arm, y) in enumerate(ranks)]
    return Figure(
        name=f"{key}-ranks",
        caption="Mean rank over seeds (1 is best). Ties share their mean rank; an arm without a result ranks last.",
        alt=f"Mean ranks over simulated time: {', '.join(arm.title for arm in arms)}.",
        drawing=draw_curves(curves, x_label=TIME_LABEL, y_label="mean rank", x_scale="log", y_limits=limits),
    )


def _final_table(results: Results, task: str, arms: Sequence[Arm], seeds: Sequence[int], final: Floats) -> Table:
    guess, budget = TASKS[task].chance_error, float(results.study.n_evaluations)
    scale = {"best": _best_error(results, task), "guess": guess, "budget": budget}
    on_refits = finals(results, task, arms)[1]
    over = "seeds and refits" if on_refits.size else "seeds"
    rows = []
    for number, (arm, values) in enumerate(zip(arms, final, strict=True)):
        finite = values[np.isfinite(values)]
        repetitions = results.of(task, arm, seeds)
        numbers: tuple[str, ...] = ("–",) * 6
        if finite.size:
            summary = summarize(finite)
            digits = digits_for(float(summary.se))
            mean = final_mean(values, on_refits[number])
            areas = np.array([100 * regret_area(r.incumbents, **scale) for r in repetitions])
            interval = "–" if math.isnan(mean.low) else f"{mean.low:.{digits}f} to {mean.high:.{digits}f}"
            quartiles = f"{summary.q25:.{digits}f} to {summary.q75:.{digits}f}"
            test = test_errors(results, task, arm, repetitions)
            test_text = summary_text(summarize(test[np.isfinite(test)])) if np.isfinite(test).any() else "–"
            numbers = (
                *(summary_text(summary), interval, median_text(summary), quartiles),
                *(summary_text(summarize(areas)), test_text),
            )
        n_trials = np.mean([result.n_trials for result in repetitions])
        rows.append((arm.title, *numbers, f"{finite.size}/{len(values)}", f"{n_trials:.0f}"))
    return Table(
        caption="Mean errors of the incumbent at the end of the budget, and the area under the regret curve over the "
        "whole run: mean ± standard error over seeds. The area is normalised: 0 % has the best known mean error "
        "from the start, 100 % never beats a guess. The incumbent is selected by validation error at the highest "
        "fidelity; no optimiser sees its test error",
        columns=(
            *("arm", "validation error (%)", f"95 % interval of the mean, over {over}", "median", "quartiles"),
            *("area under regret (%)", "test error (%)", "seeds with a result", "mean number of trials"),
        ),
        rows=tuple(rows),
    )


def _best_error(results: Results, task: str) -> float:
    """Return the smallest known mean validation error at full size: of the release and all incumbents of the study."""
    errors = [float(r.incumbents.values.min()) for arm in results.arms for r in results.of(task, arm) if r.configs]
    return min([*errors, 100.0 - best_at_full_size(results.bench[task], "valid_acc")])
