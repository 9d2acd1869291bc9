"""Whether a study's conclusions hold on the refits of the release: the benchmark's own error beside that of seeds.

A refit is a model of another sample of configs. What holds on the release but not on its refits may be a trait of the
release's models, not of the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from experiments.report.results import Results
from experiments.report.single import FEWEST_TO_COMPARE, number_text
from experiments.studies.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import compare, rank_agreement
from workshop.pages.document import Block, Section, Table, Text

__all__ = ["refits_section", "variance_shares"]

_HOLDS: Final = 0.95  # of the refits, for a difference to hold


def refits_section(results: Results) -> Section | None:
    """Return how far orders and differences hold over refits; None without repetitions on refits."""
    rows, said = [], []
    for task in results.tasks:
        for title, arms in _groups(results, task):
            of_release, of_refits = _finals(results, task, arms)
            if of_refits.size and of_release.shape[1] >= FEWEST_TO_COMPARE:
                row, n_differ, n_hold = _row(of_release, of_refits)
                rows.append((task, title, *row))
                said.append((n_differ, n_hold))
    if not rows:
        return None
    n_differ, n_hold = np.sum(said, axis=0).tolist()
    blocks: list[Block] = [
        Text(
            text=f"{n_differ} pairs of arms differ significantly on the released models; {n_hold} of them differ in "
            f"the same direction on at least {100 * _HOLDS:.0f} % of the refits.",
            is_answer=True,
        ),
        Table(
            caption="Final errors of the incumbents on the released models and on refits to resampled configs",
            columns=(
                *("task", "arms", "refits × seeds", "agreement of orders, Kendall's tau (95 % interval)"),
                *("of two halves of the seeds", "significant pairs", "hold on refits"),
                *("variance between refits (%)", "between seeds (%)"),
            ),
            rows=tuple(rows),
            n_labels=2,
        ),
        Text(
            text="Orders are by mean error. The agreement is that between the released models and the mean of the "
            "refits, on the same seeds; the halves show what chance alone allows. Shares of variance are medians over "
            "arms: between the means of refits, and between seeds on the same refit. On one refit a difference is a "
            "mean over few seeds, so small ones may change their sign by chance."
        ),
    ]
    return Section(title="Does it hold on refits?", blocks=tuple(blocks))


def _groups(results: Results, task: str) -> Iterator[tuple[str, tuple[Arm, ...]]]:
    """Yield arms that a page compares: those of a chapter, with the only arm of another one as their reference."""
    chapters = {name: results.arms_of(name, task) for name in results.study.chapters}
    alone = tuple(arms[0] for arms in chapters.values() if len(arms) == 1)
    for name, arms in chapters.items():
        if len(arms) > 1:
            yield name, (*alone, *arms)


def _finals(results: Results, task: str, arms: Sequence[Arm]) -> tuple[Floats, Floats]:
    """Return final errors, (n_arms, n_seeds) on the release and (n_arms, n_refits, n_seeds), that all arms have."""
    seeds = results.seeds(task, arms)
    of_release = np.array(
        [[_final(result.incumbents.values) for result in results.of(task, arm, seeds)] for arm in arms]
    ).reshape(len(arms), len(seeds))
    found = [
        {
            (r.repetition.refit, r.repetition.seed): _final(r.incumbents.values)
            for r in results.on_refits.get((task, arm.name), ())
            if r.repetition.refit is not None
        }
        for arm in arms
    ]
    common = sorted(set.intersection(*map(set, found)))
    refits = sorted({refit for refit, _ in common})
    whole = sorted(seed for seed in {seed for _, seed in common} if all((refit, seed) in common for refit in refits))
    values = np.array([[[of[refit, seed] for seed in whole] for refit in refits] for of in found])
    return of_release, values.reshape(len(arms), len(refits), len(whole))


def _final(values: Floats) -> float:
    return float(values[-1]) if len(values) else 100.0


def _row(of_release: Floats, of_refits: Floats) -> tuple[tuple[str, ...], int, int]:
    found = compare(of_release)
    differ = [pair for pair in found.pairs if pair.p_holm < found.alpha]
    means = of_refits.mean(axis=2)  # (n_arms, n_refits)
    n_hold = sum(
        bool(np.mean(np.sign(means[pair.one] - means[pair.other]) == np.sign(pair.difference)) >= _HOLDS)
        for pair in differ
    )
    _, n_refits, n_seeds = of_refits.shape
    tau = rank_agreement(of_release[:, :n_seeds], of_refits.mean(axis=1), has_same_seeds=True)
    half = of_release.shape[1] // 2
    chance = rank_agreement(of_release[:, :half], of_release[:, half : 2 * half], has_same_seeds=False)
    shares = [variance_shares(values) for values in of_refits]
    between, within = np.nanmedian(shares, axis=0) if np.isfinite(shares).any() else (np.nan, np.nan)
    return (
        (
            f"{n_refits} × {n_seeds}",
            f"{tau.value:.2f} ({tau.low:.2f} to {tau.high:.2f})",
            f"{chance.value:.2f}",
            f"{len(differ)} of {len(found.pairs)}",
            str(n_hold),
            number_text(100 * between, 0),
            number_text(100 * within, 0),
        ),
        len(differ),
        n_hold,
    )


def variance_shares(values: Floats) -> tuple[float, float]:
    """Return the shares of the variance between refits and between seeds on one refit, of values (n_refits, n_seeds).

    The variance between the means of refits contains that of their seeds, which is subtracted (one-way random effects).
    """
    n_refits, n_seeds = values.shape
    if n_refits < 2 or n_seeds < 2 or not np.isfinite(values).all():
        return np.nan, np.nan
    within = float(values.var(axis=1, ddof=1).mean())
    between = max(float(values.mean(axis=1).var(ddof=1)) - within / n_seeds, 0.0)
    total = within + between
    return (between / total, within / total) if total > 0 else (np.nan, np.nan)
