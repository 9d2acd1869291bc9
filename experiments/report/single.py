"""What every study with one objective shows: curves, ranks, who differs from whom, and where everybody ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from experiments.analysis.logs import Floats
from experiments.analysis.ranks import compare, mean_ranks
from experiments.analysis.speedups import Speedup, geometric_mean
from experiments.analysis.steps import on_grid
from experiments.analysis.summaries import Summary, bootstrap_interval, summarize
from experiments.report.comparison import draw_comparison
from experiments.report.results import Results
from experiments.studies.study import Arm
from workshop.pages.document import Block, Figure, Table, Text
from workshop.pages.drawing import Curve, draw_curves

__all__ = [
    "FEWEST_TO_COMPARE",
    "N_TIMES",
    "TIME_LABEL",
    "arm_curves",
    "no_common_seed",
    "number_text",
    "overview",
    "speedup_text",
    "test_errors",
    "time_grid",
]

N_TIMES: Final = 401
TIME_LABEL: Final = "simulated time (mean full evaluations)"
ERROR_LABEL: Final = "validation error (%)"
_FIRST: Final = 0.5
FEWEST_TO_COMPARE: Final = 6  # blocks; below, no signed-rank test of two sides can reach 0.05


def time_grid(results: Results) -> Floats:
    """Times of curves, evenly spaced on a log axis, the last one the budget."""
    grid = np.geomspace(_FIRST, results.study.n_evaluations, N_TIMES)
    grid[-1] = results.study.n_evaluations
    return grid


def overview(results: Results, task: str, arms: Sequence[Arm], *, key: str) -> tuple[Block, ...]:
    """Curves, ranks and comparisons of some arms on a task; `key` begins the names of figures."""
    seeds = results.seeds(task, arms)
    if not seeds:
        return (no_common_seed(arms),)
    grid = time_grid(results)
    values = np.stack([on_grid(results.steps(task, arm, seeds), grid) for arm in arms])  # (n_arms, n_seeds, n_times)
    blocks: list[Block] = [
        _mean_figure(arms, values, grid, key=key),
        _median_figure(arms, values, grid, key=key),
    ]
    if len(arms) > 1:
        blocks.append(_rank_figure(arms, values, grid, key=key))
    if len(arms) > 1 and len(seeds) >= FEWEST_TO_COMPARE:
        blocks += _comparison(arms, values[:, :, -1], key=key)
    return (*blocks, _final_table(results, task, arms, seeds, values[:, :, -1]))


def no_common_seed(arms: Sequence[Arm]) -> Text:
    """What stands in place of comparisons where no seed can be compared."""
    return Text(text=f"No seed has been finished by all of: {', '.join(dict.fromkeys(arm.title for arm in arms))}.")


def arm_curves(
    arms: Sequence[Arm], summaries: Sequence[Summary], grid: Floats, *, is_median: bool = False
) -> list[Curve]:
    """A curve for each arm: mean with standard error, or median with quartiles."""
    curves = []
    for number, (arm, found) in enumerate(zip(arms, summaries, strict=True)):
        middle = found.median if is_median else found.mean
        low, high = (found.q25, found.q75) if is_median else (found.mean - found.se, found.mean + found.se)
        curves.append(Curve(title=arm.title, x=grid, y=middle, low=low, high=high, number=number))
    return curves


def test_errors(results: Results, task: str, arm: Arm, seeds: Sequence[int]) -> Floats:
    """Mean test error of each seed's last incumbent, asked from the release, (n_seeds,); NaN without an incumbent."""
    found = results.of(task, arm, seeds)
    configs = [result.configs[-1] for result in found if result.configs]
    errors = np.full(len(found), np.nan)
    if arm.world == "release" and configs and "test_acc" in results.bench[task].metrics:
        answer = results.bench[task].query_many(configs, metrics=("test_acc",))["test_acc"]
        errors[[bool(result.configs) for result in found]] = 100.0 - answer
    return errors


def number_text(value: float, digits: int = 2) -> str:
    """A number for a table; a dash where there is none."""
    return "–" if not np.isfinite(value) else f"{value:.{digits}f}"


def speedup_text(found: Sequence[Speedup]) -> str:
    """Speed-ups on several tasks as their geometric mean and its interval; ≤ before what is an upper bound only."""
    interval = geometric_mean(found)
    digits = 1 if interval.value >= 1 or not np.isfinite(interval.value) else 2
    value, low, high = (f"{x:.{digits}f}" for x in (interval.value, interval.low, interval.high))
    signs = ("≤ " if is_any else "" for is_any in (any(s.is_bound for s in found), any(s.is_low_bound for s in found)))
    return f"{next(signs)}{value}× ({next(signs)}{low} to {high})"


def error_limits(values: Floats) -> tuple[float, float] | None:
    """Limits of an error axis that show what happens after the first evaluations; None without any value."""
    known = values[np.isfinite(values)]
    if not known.size:
        return None
    low, high = float(known.min()), float(np.quantile(known, 0.97))
    margin = max(0.04 * (high - low), 0.05)
    return max(low - margin, 0.0), min(high + margin, 100.0)


def _mean_figure(arms: Sequence[Arm], values: Floats, grid: Floats, *, key: str) -> Figure:
    summaries = [summarize(of_arm) for of_arm in values]
    return Figure(
        name=f"{key}-mean",
        caption=f"Mean of the best validation error so far over {values.shape[1]} seeds, and its standard error. A "
        "curve begins when every seed has a result.",
        alt=f"Curves of {', '.join(arm.title for arm in arms)}: mean validation error falling over simulated time.",
        drawing=draw_curves(
            arm_curves(arms, summaries, grid),
            x_label=TIME_LABEL,
            y_label=ERROR_LABEL,
            x_scale="log",
            y_limits=error_limits(np.stack([edge for s in summaries for edge in (s.mean - s.se, s.mean)])),
        ),
    )


def _median_figure(arms: Sequence[Arm], values: Floats, grid: Floats, *, key: str) -> Figure:
    summaries = [summarize(of_arm) for of_arm in values]
    return Figure(
        name=f"{key}-median",
        caption=f"Median of the best validation error so far over {values.shape[1]} seeds, and its quartiles.",
        alt=f"Curves of {', '.join(arm.title for arm in arms)}: median validation error falling over simulated time.",
        drawing=draw_curves(
            arm_curves(arms, summaries, grid, is_median=True),
            x_label=TIME_LABEL,
            y_label=ERROR_LABEL,
            x_scale="log",
            y_limits=error_limits(np.stack([edge for s in summaries for edge in (s.q25, s.q75)])),
        ),
    )


def _rank_figure(arms: Sequence[Arm], values: Floats, grid: Floats, *, key: str) -> Figure:
    found = mean_ranks(values)
    return Figure(
        name=f"{key}-ranks",
        caption="Mean rank over seeds (1 is best). An arm without a result ranks last; arms with equal errors share.",
        alt=f"Mean ranks of {', '.join(arm.title for arm in arms)} over simulated time.",
        drawing=draw_curves(
            [
                Curve(title=arm.title, x=grid, y=row, number=number)
                for number, (arm, row) in enumerate(zip(arms, found, strict=True))
            ],
            x_label=TIME_LABEL,
            y_label="mean rank",
            x_scale="log",
            y_limits=(len(arms) + 0.2, 0.8),
        ),
    )


def _comparison(arms: Sequence[Arm], final: Floats, *, key: str) -> list[Block]:
    found = compare(final)
    titles = [arm.title for arm in arms]
    significant = sum(pair.p_holm < found.alpha for pair in found.pairs)
    figure = Figure(
        name=f"{key}-difference",
        caption=f"Critical differences at the end: arms under one bar do not differ (Wilcoxon signed-rank tests on "
        f"{found.n_blocks} seeds, Holm's correction, {found.alpha:g}); {significant} of {len(found.pairs)} pairs do.",
        alt="Mean ranks on a line: "
        + ", ".join(f"{titles[i]} {found.mean_ranks[i]:.2f}" for i in np.argsort(found.mean_ranks)),
        drawing=draw_comparison(found, titles, numbers=range(len(arms))),
    )
    table = Table(
        caption="p-values of all pairs, as they are and after Holm's correction",
        columns=("one", "other", "p", "p (Holm)"),
        rows=tuple((titles[p.one], titles[p.other], f"{p.p:.2g}", f"{p.p_holm:.2g}") for p in found.pairs),
        n_labels=2,
        is_folded=True,
    )
    return [figure, table]


def _final_table(results: Results, task: str, arms: Sequence[Arm], seeds: Sequence[int], final: Floats) -> Table:
    rows = []
    for arm, values in zip(arms, final, strict=True):
        known = values[np.isfinite(values)]
        n_trials = _mean_text([result.n_trials for result in results.of(task, arm, seeds)])
        if not known.size:
            rows.append((arm.title, *("–",) * 5, f"0/{len(values)}", n_trials))
            continue
        found = summarize(known)
        low_high = bootstrap_interval(known, lambda picks: picks.mean(axis=1))
        test = test_errors(results, task, arm, seeds)
        test = test[np.isfinite(test)]
        tested = summarize(test) if test.size else None
        rows.append(
            (
                arm.title,
                f"{found.mean:.2f} ± {number_text(float(found.se))}",
                f"{low_high.low:.2f} to {low_high.high:.2f}",
                number_text(float(found.median)),
                f"{found.q25:.2f} to {found.q75:.2f}",
                f"{tested.mean:.2f} ± {number_text(float(tested.se))}" if tested else "–",
                f"{known.size}/{len(values)}",
                n_trials,
            )
        )
    return Table(
        caption="At the end of the budget: error in %, mean ± standard error over seeds; the test error is that of the "
        "incumbent by validation, and no optimiser has seen it",
        columns=("", "validation", "95 % interval", "median", "quartiles", "test", "seeds", "trials"),
        rows=tuple(rows),
    )


def _mean_text(counts: Sequence[int]) -> str:
    return f"{np.mean(counts):.0f}" if counts else "–"
