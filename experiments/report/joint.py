"""The page of the study `joint`: speed-ups of joint search and curves, for each optimiser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from experiments.analysis.critical_differences import Comparison
from experiments.optimizers import OPTIMIZERS
from experiments.report.comparison import comparison_of, groups
from experiments.report.results import Results
from experiments.report.single import overview
from experiments.report.speedups import (
    Speedup,
    geometric_mean,
    range_text,
    speedup_of_arms,
    speedup_text,
    speedups_on_refits,
)
from experiments.study import Arm
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Figure, Table, Text, answer
from workshop.pages.drawing import draw_estimates

_BETTER, _WORSE = "better", "worse"  # verdicts on the final error of joint search
_JOINT: Final = "jahs"
_REAL: Final = "the real landscape"
_Speedups: TypeAlias = dict[str, list[list[Speedup | None]]]
"""By place, the speed-ups over each of `_AGAINST` on its tasks."""

_AGAINST: Final = {"hpo_random": "HPO in a random cell", "nas_random": "NAS with random hyperparameters"}
_PAPER_TASKS: Final = ("CIFAR-10", "Colorectal-Histology", "Fashion-MNIST", "geometric mean")
_PAPER: Final[Mapping[str, tuple[str, tuple[tuple[float, float], ...]]]] = {
    "random_search": ("random search (Table 9)", ((54.7, 33.7), (75.2, 20.1), (8.5, 34.6), (32.7, 28.6))),
    "optuna_tpe": ("SMAC (Table 10)", ((48.6, 33.7), (64.1, 15.7), (2.5, 20.2), (19.8, 22.0))),
}
"""By our counterpart: the paper's optimiser, and for each of its tasks the speed-ups over HPO only and NAS only."""

_METHOD: Final = """The paper's scripts draw the part that is not searched at random for each seed, so its numbers are
    beside the arms with a random cell and with random hyperparameters. It has 10 seeds and no intervals, and
    none of the stronger competitors above: NAS with default or tuned hyperparameters, HPO in a good cell."""


def joint_finding(results: Results) -> str:
    """Say in how many comparisons joint search ends with a smaller or larger error than its competitors."""
    verdicts = _verdicts(results)
    if not verdicts:
        return ""
    counts = Counter((part, verdict) for by_part in verdicts for part, verdict in by_part.items())
    than = " and ".join(f"than {title} in {counts[part, _BETTER]}" for part, title in _AGAINST.items())
    n = len(verdicts)
    return (
        f"Joint search ends with a smaller error {than} of {n} comparisons, each of one optimiser on one task, but "
        f"with a larger one than NAS with default hyperparameters in {counts['nas_default', _WORSE]} of {n}."
    )


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
    found: dict[int, list[Speedup]] = {}
    n_seeds = []
    for number, other in enumerate(arms):
        for task in results.tasks if other != joint else ():
            if (speedup := speedup_of_arms(results, task, joint, other)) is None:
                continue
            found.setdefault(number, []).append(speedup)
            n_seeds.append(len(results.seeds(task, (joint, other))))
            fast = "not reached" if speedup.is_bound else f"{speedup.fast_time:.1f}"
            times = (f"{speedup.target:.2f}", f"{speedup.slow_time:.1f}", fast)
            verdict = _verdict(comparison_of(results, task, arms), arms.index(joint), number)
            on_refits = range_text(speedups_on_refits(results, task, joint, other))
            rows.append((TASKS[task].title, other.title, *times, speedup_text([speedup]), on_refits, verdict))
        if len(found.get(number, ())) > 1:
            rows.append(("geometric mean", other.title, "", "", "", speedup_text(found[number]), "", ""))
    if not found:
        return
    estimates = {arms[number].title: geometric_mean(speedups) for number, speedups in found.items()}
    texts = {arms[number].title: speedup_text(speedups) for number, speedups in found.items()}
    over = "geometric mean over tasks" if len(results.tasks) > 1 else ""
    over_tasks = f" ({over})" if over else ""
    sides = {arms[number].title: _side(speedups) for number, speedups in found.items()}
    yield answer(_answer(sides, texts, f", {over}" if over else ""))
    yield Figure(
        name=f"speedup-{joint.optimizer}".replace("_", "-"),
        caption=f"Speed-up of joint search to the competitor's final median validation error{over_tasks}, with 95 % "
        f"bootstrap intervals over {min(n_seeds)} seeds. Left of the dashed line, joint search is slower.",
        alt="Speed-ups: " + ", ".join(f"{title} {interval.value:.1f}" for title, interval in estimates.items()),
        drawing=draw_estimates(estimates, numbers=[*found], x_label="speed-up (times)", x_scale="log", at=1.0),
    )
    yield Table(
        caption="Times at which half of the seeds are at the target or below, the competitor's final median over seeds "
        "of the mean validation error of the incumbent. The first time counts: a competitor that wavers around its "
        "final error has reached it early, and the interval is wide. ≤ marks an upper bound: joint search, or more "
        "than 2.5 % of its bootstrap resamples, does not reach the target within the budget. On the refits, each with "
        "fewer seeds: the median speed-up, with the lowest and the highest; the last column says whether final errors "
        "differ",
        columns=(
            *("task", "competitor", "target: validation error (%)", "competitor's time (mean full evaluations)"),
            *("joint search's time (mean full evaluations)", "speed-up (95 % interval)", "speed-up on the refits"),
            "joint search's final error",
        ),
        rows=tuple(rows),
        n_labels=2,
    )


_SIDES: Final = ("sooner than", "later than", "sooner on one task and later on another than", "unknown")


def _side(speedups: Sequence[Speedup]) -> str:
    """Return the side of 1 on which the intervals of all tasks are; "unknown" if one includes 1."""
    is_sooner = [s.interval.low > 1 and not (s.is_bound or s.is_low_bound) for s in speedups]
    is_later = [s.interval.high < 1 for s in speedups]
    if all(is_sooner):
        return "sooner than"
    if all(is_later):
        return "later than"
    return "sooner on one task and later on another than" if any(is_sooner) and any(is_later) else "unknown"


def _answer(sides: Mapping[str, str], texts: Mapping[str, str], over: str) -> str:
    """Say which competitors' final error joint search reaches sooner or later, on every task."""
    listed = {side: [f"{title}: {texts[title]}" for title, of in sides.items() if of == side] for side in _SIDES}
    unknown = listed.pop("unknown")
    parts = [f"{side} {'; '.join(competitors)}" for side, competitors in listed.items() if competitors]
    if not parts:
        return f"Speed-up of joint search{over}, not shown to differ from 1: {'; '.join(unknown)}."
    rest = f" For {len(unknown)} more, the interval includes 1 on at least one task." if unknown else ""
    return (
        f"Joint search reaches the competitor's final median validation error {', but '.join(parts)} "
        f"(speed-up{over}).{rest}"
    )


def _verdicts(results: Results) -> list[dict[str, str]]:
    """Return the verdicts on joint search, by competitor, for each optimiser and task with a comparison."""
    verdicts = []
    for task in results.tasks:
        for _, arms in groups(results, task):
            parts = [arm.name.rpartition("-")[2] for arm in arms]
            if (comparison := comparison_of(results, task, arms)) and _JOINT in parts:
                joint = parts.index(_JOINT)
                others = (i for i in range(len(arms)) if i != joint)
                verdicts.append({parts[i]: _verdict(comparison, joint, i) for i in others})
    return verdicts


def _verdict(comparison: Comparison | None, joint: int, other: int) -> str:
    """Return whether the final error of an arm, by number, is better or worse than that of another one."""
    if comparison is None:
        return "–"
    (pair,) = (pair for pair in comparison.pairs if {pair.one, pair.other} == {joint, other})
    is_better = (pair.rank_sum < 0) == (pair.one == joint)
    return (_BETTER if is_better else _WORSE) if pair.differs else "not shown to differ"


def paper_blocks(results: Results, there: Results | None) -> Iterator[str | Block]:
    """Yield the paper's speed-ups beside ours.

    Args:
        there: runs of the study on the paper's own surrogate, or None.
    """
    ours = {optimizer: _our_speedups(results, there, optimizer) for optimizer in _PAPER}
    if not any(ours.values()):
        return
    rows: list[tuple[str, ...]] = []
    for optimizer, (title, speed_ups) in _PAPER.items():
        if ours[optimizer]:
            for task, (over_hpo, over_nas) in zip(_PAPER_TASKS, speed_ups, strict=True):
                rows.append(("the paper", title, task, f"{over_hpo:.1f}×", f"{over_nas:.1f}×"))
            name = OPTIMIZERS[optimizer].title
            rows += [("here", name, place, *map(_text, speedups)) for place, speedups in ours[optimizer].items()]
    yield "Comparison with JAHS-Bench-201"
    yield Table(
        caption="Speed-up of joint search to the competitor's final validation error, in the paper and here (medians "
        "over seeds, with 95 % bootstrap intervals). ≤ marks an upper bound",
        columns=("by", "optimiser", "task", "over HPO only, random cell", "over NAS only, random hyperparameters"),
        rows=tuple(rows),
        n_labels=3,
    )
    yield Text(_METHOD)
    if there is not None:
        yield Text(
            "The rows with the real landscape are our runs on the authors' pre-release surrogate of CIFAR-10, of which "
            "the paper used a later version. Without the paper's runtimes, costs are those of the section below."
        )
    yield from _disagreement(ours, _verdicts(results))
    lengths = ", ".join(f"{TASKS[t].title} {facts.mean_runtime_s:.0f} s" for t, facts in results.folder.tasks.items())
    yield Text(
        "A full evaluation, the unit of time, takes 2.0 CPU-days on CIFAR-10 in the paper, 0.2 on "
        f"Colorectal-Histology and 2.2 on Fashion-MNIST (Table 8). Here: {lengths}."
    )


def _disagreement(ours: Mapping[str, _Speedups], verdicts: Sequence[Mapping[str, str]]) -> Iterator[Text]:
    """Yield what disagrees with the paper, and known reasons for it."""
    is_below = [
        (place, geometric_mean([s for s in speedups if s]).high < paper)
        for optimizer, (_, paper_speedups) in _PAPER.items()
        for place, row in (("geometric mean", -1), (_REAL, 0))
        for speedups, paper in zip(ours[optimizer].get(place, ()), paper_speedups[row], strict=False)
        if all(speedups)
    ]
    n_below, n_real = sum(below for _, below in is_below), sum(below for place, below in is_below if place == _REAL)
    if n_below:
        real = f" {n_real} of these are on the paper's own landscape, so our tasks are not the only reason; we tested "
        real += "no other."
        yield Text(
            f"Our speed-ups are smaller: in {n_below} of {len(is_below)} comparisons, the whole interval is below the "
            "paper's value (geometric means are compared with each other, the real landscape with CIFAR-10, and TPE "
            f"with SMAC).{real * (n_real > 0)}"
        )
    worse = [by_part["nas_default"] == _WORSE for by_part in verdicts if "nas_default" in by_part]
    if any(worse):
        yield Text(
            f"NAS with default hyperparameters ends with a smaller error than joint search in {sum(worse)} of "
            f"{len(worse)} comparisons, while the paper recommends joint search. The paper's NAS draws its "
            "hyperparameters at random for each seed. The defaults are better than random ones (tables above), and a "
            "search of cells alone trains every cell with them, while joint search has to find such values first. So "
            "whether joint search pays depends on how good the hyperparameters of its competitor are."
        )


def _our_speedups(results: Results, real: Results | None, optimizer: str) -> _Speedups:
    """Return the speed-ups of an optimiser on each task, over all tasks, and on the real landscape."""
    arms = {arm.name: arm for arm in results.arms}
    if f"{optimizer}-jahs" not in arms:
        return {}
    joint = arms[f"{optimizer}-jahs"]
    others = [arms.get(f"{optimizer}-{part}") for part in _AGAINST]

    def speedups_on(landscape: Results, task: str) -> list[Speedup | None]:
        return [speedup_of_arms(landscape, task, joint, other) if other else None for other in others]

    by_task = {task: speedups_on(results, task) for task in results.tasks}
    by_place = {TASKS[task].title: [[speedup] for speedup in speedups] for task, speedups in by_task.items()}
    if len(by_task) > 1:
        by_place["geometric mean"] = [list(speedups) for speedups in zip(*by_task.values(), strict=True)]
    if real is not None and any(speedups := speedups_on(real, *real.folder.tasks)):
        by_place[_REAL] = [[speedup] for speedup in speedups]
    return by_place


def _text(speedups: Sequence[Speedup | None]) -> str:
    known = [speedup for speedup in speedups if speedup]
    return speedup_text(known) if len(known) == len(speedups) else "–"
