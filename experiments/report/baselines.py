"""The page of the study `baselines`: test regret over time, its final distribution, and the effect of settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np
from scipy import stats

from experiments.report.comparison import comparison_of, differing_text, finals, quoted_title
from experiments.report.results import Results, best_at_full_size, split_by_run
from experiments.report.single import error_limits, overview, summary_text, time_figure, time_grid
from experiments.studies import MAIN
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.standings import REFERENCE
from jahs.comparison.steps import Steps, on_grid
from jahs.comparison.summaries import number_text, summarize
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Figure, Table, Text, answer
from workshop.pages.drawing import Curve, draw_curves

_SHOWN: Final = 0.98  # share of every arm's rollouts that the figure of distributions must show


def best_optimizer_finding(results: Results) -> str:
    """Say which arm has the smallest mean error at the end on each task."""
    parts = []
    for task in results.tasks:
        arms = [arm for arm in results.arms if not arm.settings or len(results.study.chapters) == 1]
        errors = finals(results, task, arms)[0]
        if not errors.size:
            continue
        means = errors.mean(axis=1)
        best, others = int(means.argmin()), [i for i, arm in enumerate(arms) if arm.optimizer == REFERENCE]
        reference = f"; random search {means[others[0]]:.2f} %" * bool(others and best not in others)
        parts.append(f"{quoted_title(arms[best])} on {TASKS[task].title} ({means[best]:.2f} %{reference})")
    if not parts:
        return ""
    return f"The mean validation error at the end is smallest for {' and '.join(parts)}; {differing_text(results)}."


def baselines_blocks(results: Results) -> Iterator[str | Block]:
    """Yield the overview, test regrets where a release has test accuracies, and a section on settings."""
    settings: list[Block] = []
    for task in results.tasks:
        arms, key = results.arms_of(MAIN, task), task.replace("_", "-")
        if arms:
            yield f"Validation error on {task}"
            yield from overview(results, task, arms, key=key)
            yield from prior_blocks(results, task, arms)
        if "test_acc" in results.bench[task].metrics:
            tests = {arm.name: incumbent_tests(results, task, arm) for arm in results.arms}
            found = [float(steps.values.max()) for by_seed in tests.values() for steps in by_seed if len(steps.values)]
            best = max([best_at_full_size(results.bench[task], "test_acc"), *found])
            # Regret may rise, because incumbents are selected by validation.
            regrets = {
                name: [Steps(times=steps.times, values=np.asarray(best - steps.values)) for steps in by_seed]
                for name, by_seed in tests.items()
            }
            if results.seeds(task, arms):
                yield f"Test regret on {task}"
                yield from _regret_blocks(results, arms, regrets, best, key=key)
            settings += _sensitivity(results, task, regrets)
    yield "Effect of settings"
    yield from settings


def prior_blocks(results: Results, task: str, arms: Sequence[Arm]) -> Iterator[Block]:
    """Say whether the quality of a prior makes a difference, if several arms differ in nothing else."""
    with_prior = [i for i, arm in enumerate(arms) if "prior" in dict(arm.settings)]
    comparison = comparison_of(results, task, arms)
    if len(with_prior) < 2 or comparison is None:
        return
    errors = finals(results, task, arms)[0][with_prior].mean(axis=1)
    means = ", ".join(f"{arms[i].title} {error:.2f} %" for i, error in zip(with_prior, errors, strict=True))
    n = sum(pair.differs for pair in comparison.pairs if {pair.one, pair.other} <= {*with_prior})
    yield Text(
        f"Mean final errors by prior: {means}. " + ("The prior matters." if n else "No effect of the prior is shown.")
    )


def incumbent_tests(results: Results, task: str, arm: Arm) -> list[Steps]:
    """Return the mean test accuracy of the incumbent over time, for each seed that its chapter has finished."""
    repetitions = results.of_chapter(task, arm)
    configs = [result.configs for result in repetitions]
    answers = results.bench[task].query_many([*chain.from_iterable(configs)], metrics=("test_acc",))["test_acc"]
    parts = zip(repetitions, split_by_run(answers, configs), strict=True)
    return [Steps(times=result.incumbents.times, values=part) for result, part in parts]


def _final(regrets: Sequence[Steps]) -> Floats:
    return np.array([steps.values[-1] for steps in regrets if len(steps.values)])


def _regret_blocks(
    results: Results, arms: Sequence[Arm], regrets: dict[str, list[Steps]], best: float, *, key: str
) -> Iterator[Block]:
    grid = time_grid(results)
    summaries = [summarize(on_grid(regrets[arm.name], grid)) for arm in arms]
    finals = [_final(regrets[arm.name]) for arm in arms]
    means = sorted((float(final.mean()), arm.title) for arm, final in zip(arms, finals, strict=True) if final.size)
    if means:
        text = ", ".join(f"{title} {mean:.2f}" for mean, title in means)
        yield answer(f"Mean final test regret in percentage points, from best to worst: {text}.")
    yield Text(
        f"Test regret is the best known mean test accuracy, {best:.2f} %, minus the incumbent's. The best known one is "
        "the maximum over a search on the release at full size and all incumbents."
    )
    yield time_figure(
        arms,
        summaries,
        grid,
        name=f"{key}-regret",
        caption="Test regret of the incumbent: mean over rollouts and standard error. It may rise, because the "
        "incumbent is selected by validation accuracy.",
        alt="Mean test regret over simulated time, one curve for each optimiser.",
        y_label="test regret (percentage points)",
        y_limits=error_limits(np.stack([s.mean for s in summaries])),
    )
    yield _ecdf_figure(arms, finals, key=key)
    yield _regret_table(arms, finals)


def _ecdf_figure(arms: Sequence[Arm], finals: Sequence[Floats], *, key: str) -> Figure:
    curves = []
    for number, (arm, final) in enumerate(zip(arms, finals, strict=True)):
        if final.size:
            cdf = stats.ecdf(final).cdf
            x, y = np.append(cdf.quantiles[:1], cdf.quantiles), np.append(0.0, cdf.probabilities)
            curves.append(Curve(title=arm.title, x=x, y=y, number=number))
    # A few failed rollouts would otherwise squeeze the rest into the left edge.
    right = 1.1 * max((float(np.quantile(final, _SHOWN)) for final in finals if final.size), default=0.0) or 1.0
    ended = np.concatenate(finals)
    n_beyond = int((ended > right).sum())
    beyond = f" {n_beyond} of {len(ended):,} rollouts lie beyond the right edge; the table shows the worst."
    return Figure(
        name=f"{key}-ecdf",
        caption="Empirical distribution of final test regret over rollouts. A steep curve means a robust optimiser."
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
            *(arm.title, summary_text(summary), number_text(float(summary.median))),
            *(number_text(float(np.quantile(final, 0.95))), number_text(float(final.max())), str(final.size)),
        )
        for arm, final in zip(arms, finals, strict=True)
        if final.size and (summary := summarize(final))
    ]
    return Table(
        caption="Test regret at the end of the budget, in percentage points",
        columns=("optimiser", "mean ± standard error", "median", "95 % quantile", "worst", "rollouts"),
        rows=tuple(rows),
    )


def _sensitivity(results: Results, task: str, regrets: dict[str, list[Steps]]) -> Iterator[Block]:
    rows, spread = [], []
    for chapter in results.study.chapters:
        arms = results.arms_of(chapter, task) if chapter != MAIN else ()
        finals = {arm.title: final for arm in arms if (final := _final(regrets[arm.name])).size}
        for title, final in finals.items():
            summary = summarize(final)
            rows.append((chapter, title, summary_text(summary), number_text(float(summary.median)), str(final.size)))
        means = [float(final.mean()) for final in finals.values()]
        if len(means) > 1:
            tests = comparison_of(results, task, arms)
            pairs = tests.pairs if tests else ()
            differing = f" ({sum(pair.differs for pair in pairs)} of {len(pairs)} pairs differ)" if pairs else ""
            spread.append(f"{chapter} {max(means) - min(means):.2f}{differing}")
    if spread:
        yield answer(
            f"Difference in mean final test regret on {task} between the best and the worst value of a setting, in "
            "percentage points: " + "; ".join(spread) + "."
        )
    if rows:
        yield Table(
            caption=f"Final test regret on {task} by setting, in percentage points",
            columns=("optimiser: setting", "value", "mean ± standard error", "median", "rollouts"),
            rows=tuple(rows),
            n_labels=2,
        )
