"""The page of the study `joint`: speed-ups of joint search and curves, for each optimiser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from experiments.analysis.speedups import Speedup, geometric_mean, speedup
from experiments.report.results import Results
from experiments.report.single import overview, speedup_text
from experiments.study import Arm
from jahs.comparison.summaries import Interval
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Figure, Table, Text, answer
from workshop.pages.drawing import draw_estimates

_FEWEST_SEEDS = 2


def joint_blocks(results: Results) -> Iterator[str | Block]:
    """Yield a section for each optimiser, with all tasks."""
    for chapter in results.study.chapters:
        if arms := results.arms_of(chapter):
            yield f"Joint search with {chapter}"
            yield from _speedup_blocks(results, arms)
            for task in results.tasks:
                if len(results.tasks) > 1:
                    yield Text(f"Task: {TASKS[task].title}.")
                yield from overview(results, task, arms, key=f"{task}-{arms[0].optimizer}".replace("_", "-"))


def _speedup_blocks(results: Results, arms: Sequence[Arm]) -> Sequence[Block]:
    """Return the speed-ups of joint search on each task and over all tasks."""
    joint = next((arm for arm in arms if arm.view.search == "all"), None)
    others = [arm for arm in arms if arm.view.search != "all"]
    if joint is None or not others:
        return ()
    table: list[tuple[str, ...]] = []
    estimates: dict[str, Interval] = {}
    answers, n_seeds, numbers = [], [], []
    for other in others:
        found = {task: s for task in results.tasks if (s := _speedup(results, task, joint, other)) is not None}
        if not found:
            continue
        whole, said = geometric_mean([*found.values()]), speedup_text([*found.values()])
        answers.append(f"{said} against {other.title}")
        n_seeds += [len(results.seeds(task, (joint, other))) for task in found]
        table += [_row(TASKS[task].title, other, s) for task, s in found.items()]
        table += [("geometric mean", other.title, "", "", "", said)] if len(found) > 1 else []
        estimates[other.title] = whole
        numbers.append(arms.index(other))
    if not estimates:
        return ()
    over = ", geometric mean over tasks" if len(results.tasks) > 1 else ""
    said = f"Speed-up of joint search to the competitor's final mean validation error{over}: {'; '.join(answers)}."
    figure = _speedup_figure(results, joint, estimates, numbers, n_seeds=min(n_seeds))
    return (answer(said), figure, _speedup_table(table))


def _speedup_figure(
    results: Results, joint: Arm, estimates: Mapping[str, Interval], numbers: Sequence[int], *, n_seeds: int
) -> Figure:
    return Figure(
        name=f"speedup-{joint.optimizer}".replace("_", "-"),
        caption="Speed-up of joint search to the competitor's final mean validation error"
        + (" (geometric mean over tasks)" if len(results.tasks) > 1 else "")
        + f", with 95 % bootstrap intervals over {n_seeds} seeds. Left of the dashed line, joint search is slower.",
        alt="Speed-ups: " + ", ".join(f"{title} {one.value:.1f}" for title, one in estimates.items()),
        drawing=draw_estimates(estimates, numbers=numbers, x_label="speed-up (times)", x_scale="log", at=1.0),
    )


def _speedup_table(rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(
        caption="Times at which the mean over seeds reaches the target, the competitor's final mean validation error. "
        "≤ marks an upper bound: joint search, or more than 2.5 % of its bootstrap resamples, does not reach the "
        "target within the budget",
        columns=(
            *("task", "competitor", "target: validation error (%)", "competitor's time (mean full evaluations)"),
            *("joint search's time (mean full evaluations)", "speed-up (95 % interval)"),
        ),
        rows=tuple(rows),
        n_labels=2,
    )


def _speedup(results: Results, task: str, joint: Arm, other: Arm) -> Speedup | None:
    seeds = results.seeds(task, (joint, other))
    fast, slow = results.steps(task, joint, seeds), results.steps(task, other, seeds)
    if len(seeds) < _FEWEST_SEEDS or not all(len(s.times) for s in slow):
        return None
    guess = TASKS[task].chance_error
    return speedup(fast, slow, budget=float(results.study.n_evaluations), guess=guess)


def _row(title: str, other: Arm, found: Speedup) -> tuple[str, ...]:
    fast = "not reached" if found.is_bound else f"{found.fast_time:.1f}"
    times = (f"{found.target:.2f}", f"{found.slow_time:.1f}", fast)
    return (title, other.title, *times, speedup_text([found]))
