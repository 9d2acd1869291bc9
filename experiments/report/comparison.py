"""Critical-difference diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.analysis.ranks import Comparison
from workshop.pages.style import LIGHT, series

__all__ = ["draw_comparison"]

_LONGEST: Final = 32  # characters of a label beside the middle rank that fit


def draw_comparison(comparison: Comparison, titles: Sequence[str], *, numbers: Sequence[int]) -> Drawing:
    """Draw mean ranks, and bars over arms that do not differ significantly."""
    n_arms, n_bars = len(titles), len(comparison.cliques)
    drawing = Drawing(figsize=(4.8, 0.7 + 0.16 * n_bars + 0.3 * n_arms))
    axes = drawing.add_axes((0.03, 0.02, 0.94, 0.96))  # labels lie inside, beside their ranks
    size = min(9.5, 9.5 * _LONGEST / max(map(len, titles)))
    order = np.argsort(comparison.mean_ranks, kind="stable")
    first = n_bars * 0.5 + 0.9
    axes.plot([1, n_arms], [0, 0], color=LIGHT["ink"], linewidth=1.2)
    for rank in range(1, n_arms + 1):
        axes.plot([rank, rank], [-0.18, 0], color=LIGHT["ink"], linewidth=1.2)
        axes.annotate(f"{rank}", (rank, -0.3), ha="center", va="bottom")
    for place, arm in enumerate(order.tolist()):
        rank, y = comparison.mean_ranks[arm], first + place
        axes.plot([rank, rank], [0, y], color=series(numbers[arm]), linewidth=1.2)
        is_left = rank <= (n_arms + 1) / 2
        axes.annotate(
            f"{titles[arm]}  {rank:.2f}" if is_left else f"{rank:.2f}  {titles[arm]}",
            (rank, y),
            xytext=(5 if is_left else -5, 0),
            textcoords="offset points",
            ha="left" if is_left else "right",
            va="center",
            fontsize=size,
            bbox={"facecolor": LIGHT["paper"], "edgecolor": "none", "pad": 1.0},
        )
        axes.plot([rank], [y], color=series(numbers[arm]), marker="o", markersize=5)
    for bar, clique in enumerate(comparison.cliques):
        ends = comparison.mean_ranks[list(clique)]
        axes.plot([ends.min() - 0.04, ends.max() + 0.04], [0.5 + 0.5 * bar] * 2, color=LIGHT["ink"], linewidth=4)
    axes.set_xlim(0.6, n_arms + 0.4)
    axes.set_ylim(first + n_arms - 0.4, -1.9)
    axes.annotate("mean rank (1 is best)", ((n_arms + 1) / 2, -1.2), ha="center", va="bottom")
    axes.axis("off")
    return drawing
