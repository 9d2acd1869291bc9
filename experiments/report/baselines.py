"""The page of the study `baselines`: test regret over time, its distribution at the end, and what settings change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from experiments.analysis.logs import Floats
from experiments.analysis.regrets import ecdf, regret
from experiments.analysis.steps import Steps, on_grid
from experiments.analysis.summaries import summarize
from experiments.report.results import RepetitionResult, Results
from experiments.report.single import TIME_LABEL, arm_curves, error_limits, number_text, overview, time_grid
from experiments.studies.study import FULL_SIZES, Arm
from jahs.queries.benchmark import Benchmark
from jahs.spaces.space import space
from workshop.pages.document import Block, Figure, Section, Table, Text
from workshop.pages.drawing import Curve, draw_curves

__all__ = ["baselines_sections", "best_known", "regret_steps"]

_N_RANDOM: Final = 20_000
_MAIN: Final = "optimisers"
_SHOWN: Final = 0.98  # share of every arm's rollouts that the figure of distributions has to show


def baselines_sections(results: Results) -> tuple[Section, ...]:
    """Regret of every optimiser, the usual overview by validation, and a section on settings."""
    sections: list[Section] = []
    settings: list[Block] = []
    for task in results.tasks:
        arms = results.arms_of(_MAIN, task)
        tests = {arm.name: incumbent_tests(results, task, arm) for arm in results.arms}
        best = best_known(results.bench[task], tests)
        key = task.replace("_", "-")
        if arms:
            blocks = _regret_blocks(results, arms, tests, best, key=key)
            sections.append(Section(title=f"Test regret on {task}", blocks=tuple(blocks)))
            sections.append(Section(title=f"Validation error on {task}", blocks=overview(results, task, arms, key=key)))
        settings += _sensitivity(results, task, tests, best)
    if settings:
        sections.append(Section(title="What the settings change", blocks=tuple(settings)))
    return tuple(sections)


def incumbent_tests(results: Results, task: str, arm: Arm) -> list[Steps]:
    """Mean test accuracy of the incumbent by validation over time, for each seed."""
    found = results.of(task, arm)
    configs = [config for result in found for config in result.configs]
    if not configs:
        return [Steps(times=np.empty(0), values=np.empty(0)) for _ in found]
    answers = results.bench[task].query_many(configs, metrics=("test_acc",))["test_acc"]
    ends = np.cumsum([len(result.configs) for result in found])[:-1]
    return [_test_steps(result, part) for result, part in zip(found, np.split(answers, ends), strict=True)]


def best_known(bench: Benchmark, tests: dict[str, list[Steps]]) -> float:
    """The best mean test accuracy that is known: of 20,000 random configs at full size and of every incumbent."""
    columns = space(fixed=FULL_SIZES).sample_columns(_N_RANDOM, seed=0)
    best = float(bench.query_many(columns, metrics=("test_acc",))["test_acc"].max())
    return max([best, *(float(s.values.max()) for of_arm in tests.values() for s in of_arm if len(s.values))])


def regret_steps(tests: Sequence[Steps], best: float) -> list[Steps]:
    """Test regret over time, in percentage points; it may rise, for incumbents are chosen by validation."""
    return [Steps(times=s.times, values=regret(s.values, best=best)) for s in tests]


def _test_steps(result: RepetitionResult, answers: Floats) -> Steps:
    return Steps(times=result.incumbents.times, values=answers)


def _final(tests: Sequence[Steps], best: float, end: float) -> Floats:
    final = on_grid(regret_steps(tests, best), np.array([end]))[:, 0]
    return final[np.isfinite(final)]


def _regret_blocks(
    results: Results, arms: Sequence[Arm], tests: dict[str, list[Steps]], best: float, *, key: str
) -> list[Block]:
    grid, end = time_grid(results), float(results.study.n_evaluations)
    summaries = [summarize(on_grid(regret_steps(tests[arm.name], best), grid)) for arm in arms]
    finals = [_final(tests[arm.name], best, end) for arm in arms]
    return [
        Text(
            text=f"Regret is against {best:.3f} %, the best mean test accuracy that is known: of {_N_RANDOM:,} random "
            "configs and of all incumbents."
        ),
        Figure(
            name=f"{key}-regret",
            caption="Mean test regret of the incumbent by validation, and its standard error. It may rise: what is "
            "best on validation images need not be best on test images.",
            alt="Mean test regret over simulated time, one curve for each optimiser.",
            drawing=draw_curves(
                arm_curves(arms, summaries, grid),
                x_label=TIME_LABEL,
                y_label="test regret (percentage points)",
                x_scale="log",
                y_limits=error_limits(np.stack([s.mean for s in summaries])),
            ),
        ),
        _ecdf_figure(arms, finals, key=key),
        _regret_table(arms, finals),
    ]


def _ecdf_figure(arms: Sequence[Arm], finals: Sequence[Floats], *, key: str) -> Figure:
    curves = [
        Curve(
            title=arm.title,
            x=np.concatenate([found.values[:1], found.values]),
            y=np.concatenate([[0.0], found.shares]),
            number=number,
        )
        for number, (arm, final) in enumerate(zip(arms, finals, strict=True))
        if final.size and (found := ecdf(final))
    ]
    # A few rollouts that went nowhere would press all that can be compared against the left edge.
    right = 1.1 * max((float(np.quantile(final, _SHOWN)) for final in finals if final.size), default=0.0) or 1.0
    ended = np.concatenate(finals)
    n_beyond = int((ended > right).sum())
    beyond = f" {n_beyond} of {len(ended):,} rollouts end beyond the right edge; the table names the worst."
    return Figure(
        name=f"{key}-ecdf",
        caption="Share of rollouts that end with at most this test regret. A steep curve is a robust optimiser."
        + beyond * (n_beyond > 0),
        alt="Empirical distributions of final test regret, one curve for each optimiser.",
        drawing=draw_curves(
            curves,
            x_label="final test regret (percentage points)",
            y_label="share of rollouts",
            x_limits=(0, right),
            y_limits=(0, 1.02),
        ),
    )


def _regret_table(arms: Sequence[Arm], finals: Sequence[Floats]) -> Table:
    rows = [
        (
            arm.title,
            f"{found.mean:.3f} ± {number_text(float(found.se), 3)}",
            number_text(float(found.median), 3),
            number_text(float(np.quantile(final, 0.95)), 3),
            number_text(float(final.max()), 3),
            str(final.size),
        )
        for arm, final in zip(arms, finals, strict=True)
        if final.size and (found := summarize(final))
    ]
    return Table(
        caption="Test regret at the end of the budget, in percentage points",
        columns=("", "mean ± standard error", "median", "95 % of rollouts below", "worst", "rollouts"),
        rows=tuple(rows),
    )


def _sensitivity(results: Results, task: str, tests: dict[str, list[Steps]], best: float) -> list[Block]:
    end = float(results.study.n_evaluations)
    rows, spread = [], []
    for chapter in results.study.chapters:
        arms = results.arms_of(chapter, task)
        if chapter == _MAIN or not arms:
            continue
        means = []
        for arm in arms:
            final = _final(tests[arm.name], best, end)
            if final.size:
                found = summarize(final)
                means.append(float(found.mean))
                se = number_text(float(found.se), 3)
                rows.append(
                    (
                        chapter,
                        arm.title,
                        f"{found.mean:.3f} ± {se}",
                        number_text(float(found.median), 3),
                        str(final.size),
                    )
                )
        if len(means) > 1:
            spread.append(f"{chapter} {max(means) - min(means):.3f}")
    if not rows:
        return []
    return [
        Text(
            text=f"Between its best and its worst value, a setting changes mean final test regret on {task} by so many "
            "percentage points: " + "; ".join(spread) + ".",
            is_answer=True,
        ),
        Table(
            caption=f"Final test regret on {task} by setting, in percentage points",
            columns=("setting", "value", "mean ± standard error", "median", "rollouts"),
            rows=tuple(rows),
            n_labels=2,
        ),
    ]
