"""Whether a study's conclusions hold on the refits of the release: the benchmark's own error beside that of seeds.

A refit is a model of another sample of configs. What holds on the release but not on its refits may be a trait of the
release's models, not of the task.
"""

from __future__ import annotations

import numpy as np

from experiments.report.family import compared, finals, groups
from experiments.report.results import Results
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import HOLDS, Comparison, rank_agreement
from jahs.comparison.summaries import interval_text, number_text
from workshop.pages.document import Block, Section, Table, Text, answer


def refits_section(results: Results) -> Section | None:
    """Return how far orders and differences hold over refits; None without repetitions on refits."""
    rows, said = [], []
    for task in results.tasks:
        for title, arms in groups(results, task):
            of_release, of_refits = finals(results, task, arms)
            found = compared(results).get((task, tuple(arm.name for arm in arms)))
            if of_refits.size and found:
                n_significant = sum(pair.p_holm < found.alpha for pair in found.pairs)
                n_hold = sum(pair.differs for pair in found.pairs)
                rows.append((task, title, *_row(found, of_release, of_refits), f"{n_significant}", f"{n_hold}"))
                said.append((n_significant, n_hold))
    if not rows:
        return None
    n_significant, n_hold = np.sum(said, axis=0).tolist()
    what = "Final mean errors of the incumbents" if not results.study.combinations else "Final shares of hypervolume"
    blocks: list[Block] = [
        answer(
            f"{n_significant} pairs of arms differ significantly on the released models; {n_hold} of them have "
            f"the same sign on at least {100 * HOLDS:.0f} % of the refits. Only these count as different on this page."
        ),
        Table(
            caption=f"{what} on the released models and on refits to resampled configs",
            columns=(
                *("task", "arms", "refits × seeds", "agreement of orders, Kendall's tau (95 % interval)"),
                *("of two halves of the seeds", "variance between refits (%)", "between seeds (%)", "pairs"),
                *("significant", "and hold on refits"),
            ),
            rows=tuple(rows),
            n_labels=2,
        ),
        Text(
            "Orders are by mean error. The agreement is that between the released models and the mean of the "
            "refits, on the same seeds; the halves show what chance alone allows. Shares of variance are medians over "
            "arms: between the means of refits, and between seeds on the same refit. On one refit a difference is a "
            "mean over few seeds, so small ones may change their sign by chance."
        ),
    ]
    return Section(title="Does it hold on refits?", blocks=tuple(blocks))


def _row(found: Comparison, of_release: Floats, of_refits: Floats) -> tuple[str, ...]:
    _, n_refits, n_seeds = of_refits.shape
    tau = rank_agreement(of_release[:, :n_seeds], of_refits.mean(axis=1), has_same_seeds=True)
    half = of_release.shape[1] // 2
    chance = rank_agreement(of_release[:, :half], of_release[:, half : 2 * half], has_same_seeds=False)
    shares = [variance_shares(values) for values in of_refits]
    between, within = np.nanmedian(shares, axis=0) if np.isfinite(shares).any() else (np.nan, np.nan)
    return (
        f"{n_refits} × {n_seeds}",
        interval_text(tau),
        f"{chance.value:.2f}",
        number_text(100 * between, 0),
        number_text(100 * within, 0),
        str(len(found.pairs)),
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
