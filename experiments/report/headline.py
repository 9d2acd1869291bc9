"""The main finding of a study in one sentence, with which its page opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from experiments.report.comparison import compared, compared_pairs, finals, groups
from experiments.report.joint import BETTER, WORSE, joint_verdicts
from experiments.report.long import n_workers
from experiments.report.results import Results
from experiments.report.truth import TITLES, order_agreement
from experiments.study import Arm
from jahs.comparison.standings import REFERENCE
from jahs.tasks.definitions import TASKS
from workshop.resampling import interval_text

_RIVALS: Final = {"hpo_random": "HPO in a random cell", "nas_random": "NAS with random hyperparameters"}


def headline(results: Results) -> str:
    """Return the main finding of results; empty if too few runs have ended."""
    return _HEADLINES[results.study.name](results)


def _best_optimizer(results: Results) -> str:
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
        parts.append(f"{_quoted(arms[best])} on {TASKS[task].title} ({means[best]:.2f} %{reference})")
    if not parts:
        return ""
    return f"The mean validation error at the end is smallest for {' and '.join(parts)}; {_differing(results)}."


def _joint(results: Results) -> str:
    """Say in how many comparisons joint search ends with a smaller or larger error than its competitors."""
    verdicts = joint_verdicts(results)
    if not verdicts:
        return ""
    counts = Counter((part, verdict) for by_part in verdicts for part, verdict in by_part.items())
    than = " and ".join(f"than {title} in {counts[part, BETTER]}" for part, title in _RIVALS.items())
    n = len(verdicts)
    return (
        f"Joint search ends with a smaller error {than} of {n} comparisons, each of one optimiser on one task, but "
        f"with a larger one than NAS with default hyperparameters in {counts['nas_default', WORSE]} of {n}."
    )


def _trade_offs(results: Results) -> str:
    """Say in how many comparisons, each of two objectives on one task, each arm is best."""
    best: Counter[str] = Counter()
    for (_, names), comparison in compared(results).items():
        arm = next(arm for arm in results.arms if arm.name == names[int(comparison.mean_ranks.argmin())])
        best[_quoted(arm)] += 1
    if not best:
        return ""
    (first, n_first), *others = best.most_common()
    also = "".join(f", {title} in {n}" for title, n in others)
    return (
        f"By mean rank of the covered hypervolume, {first} is best in {n_first} of {best.total()} comparisons{also}; "
        f"{_differing(results)}."
    )


def _two_worlds(results: Results) -> str:
    """Say how well the final orders in both worlds agree."""
    agreements = {TASKS[task].title: order_agreement(results, task) for task in results.tasks}
    parts = [f"{interval_text(tau)} on {title}" for title, tau in agreements.items() if tau is not None]
    if not parts:
        return ""
    one, other = TITLES[results.study.arms[0].world], TITLES[results.study.arms[-1].world]
    return (
        f"Rankings of optimisers by final error on {one} and on {other} agree with Kendall's τ {' and '.join(parts)}."
    )


def _workers(results: Results) -> str:
    """Say by how much the largest number of workers changes the final error."""
    costs, most = [], max(map(n_workers, results.study.arms))
    for task in results.tasks:
        differences = []
        for _, arms in groups(results, task):
            errors = finals(results, task, arms)[0]
            by_workers = {
                n_workers(arm): float(each.mean()) for arm, each in zip(arms, errors, strict=True) if each.size
            }
            if {1, most} <= by_workers.keys():
                differences.append(by_workers[most] - by_workers[1])
        if differences:
            costs.append(f"{min(differences):+.2f} to {max(differences):+.2f} points on {TASKS[task].title}")
    if not costs:
        return ""
    return (
        f"With {most} workers instead of one, the mean final error of an optimiser changes by "
        f"{' and by '.join(costs)}, for the same worker time; {_differing(results)}."
    )


def _quoted(arm: Arm) -> str:
    """Return an arm's title, in quotation marks if it has a comma."""
    return f"“{arm.title}”" if "," in arm.title else arm.title


def _differing(results: Results) -> str:
    pairs = compared_pairs(results)
    return f"{sum(pair.differs for pair in pairs)} of {len(pairs)} compared pairs differ"


_HEADLINES: Final[Mapping[str, Callable[[Results], str]]] = {
    "joint": _joint,
    "fidelity": _best_optimizer,
    "multiobjective": _trade_offs,
    "baselines": _best_optimizer,
    "strong": _best_optimizer,
    "truth": _two_worlds,
    "families": _two_worlds,
    "long": _best_optimizer,
    "workers": _workers,
}
