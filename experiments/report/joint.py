"""The page of the study `joint`: speed-ups of joint search and curves, for each optimiser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.report.results import Results
from experiments.report.single import overview
from experiments.report.speedups import geometric_mean, speedup_of_arms, speedup_text
from experiments.study import Arm
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Figure, Table, Text, answer
from workshop.pages.drawing import draw_estimates


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


def _speedup_blocks(results: Results, arms: Sequence[Arm]) -> Iterator[Block]:
    """Yield the speed-ups of joint search on each task and over all tasks."""
    joint = next((arm for arm in arms if arm.view.search == "all"), None)
    if joint is None:
        return
    rows: list[tuple[str, ...]] = []
    estimates, answers, n_seeds, numbers = {}, [], [], []
    for number, other in enumerate(arms):
        found = {task: speedup_of_arms(results, task, joint, other) for task in results.tasks if other != joint}
        known = {task: each for task, each in found.items() if each is not None}
        if not known:
            continue
        said = speedup_text([*known.values()])
        answers.append(f"{said} against {other.title}")
        for task, each in known.items():
            n_seeds.append(len(results.seeds(task, (joint, other))))
            fast = "not reached" if each.is_bound else f"{each.fast_time:.1f}"
            times = (f"{each.target:.2f}", f"{each.slow_time:.1f}", fast)
            rows.append((TASKS[task].title, other.title, *times, speedup_text([each])))
        rows += [("geometric mean", other.title, "", "", "", said)] if len(known) > 1 else []
        estimates[other.title] = geometric_mean([*known.values()])
        numbers.append(number)
    if not estimates:
        return
    over, over_tasks = (
        (", geometric mean over tasks", " (geometric mean over tasks)") if len(results.tasks) > 1 else ("", "")
    )
    yield answer(
        f"Speed-up of joint search to the competitor's final mean validation error{over}: {'; '.join(answers)}."
    )
    yield Figure(
        name=f"speedup-{joint.optimizer}".replace("_", "-"),
        caption=f"Speed-up of joint search to the competitor's final mean validation error{over_tasks}, with 95 % "
        f"bootstrap intervals over {min(n_seeds)} seeds. Left of the dashed line, joint search is slower.",
        alt="Speed-ups: " + ", ".join(f"{title} {one.value:.1f}" for title, one in estimates.items()),
        drawing=draw_estimates(estimates, numbers=numbers, x_label="speed-up (times)", x_scale="log", at=1.0),
    )
    yield Table(
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
