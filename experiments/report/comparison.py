"""Critical-difference diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from jahs.comparison.ranks import Comparison
from workshop.pages.style import LIGHT, series

_WIDTH: Final = 4.8  # inches
_MARGIN: Final = 0.03  # on either side, as a share
_LABEL_GAP: Final = 5  # points between a marker and its label
_LABEL_SIZE: Final = 9.5  # points, where the longest label fits


def draw_comparison(comparison: Comparison, titles: Sequence[str], *, numbers: Sequence[int]) -> Drawing:
    """Draw mean ranks, and bars over arms that do not differ significantly."""
    n_arms, n_bars = len(titles), len(comparison.cliques)
    drawing = Drawing(figsize=(_WIDTH, 0.7 + 0.16 * n_bars + 0.3 * n_arms))
    axes = drawing.add_axes((_MARGIN, 0.02, 1 - 2 * _MARGIN, 0.96))  # labels lie inside, beside their ranks
    labels = [_label(title, rank, n_arms) for title, rank in zip(titles, comparison.mean_ranks, strict=True)]
    size = min(_LABEL_SIZE, *(_largest_size(*pair, n_arms) for pair in zip(labels, comparison.mean_ranks, strict=True)))
    order = np.argsort(comparison.mean_ranks, kind="stable")
    first = n_bars * 0.5 + 0.9
    axes.plot([1, n_arms], [0, 0], color=LIGHT["ink"], linewidth=1.2)
    for rank in range(1, n_arms + 1):
        axes.plot([rank, rank], [-0.18, 0], color=LIGHT["ink"], linewidth=1.2)
        axes.annotate(f"{rank}", (rank, -0.3), ha="center", va="bottom")
    for place, arm in enumerate(order.tolist()):
        rank, y = comparison.mean_ranks[arm], first + place
        axes.plot([rank, rank], [0, y], color=series(numbers[arm]), linewidth=1.2)
        is_low = _is_low(rank, n_arms)
        axes.annotate(
            labels[arm],
            (rank, y),
            xytext=(_LABEL_GAP if is_low else -_LABEL_GAP, 0),
            textcoords="offset points",
            ha="left" if is_low else "right",
            va="center",
            fontsize=size,
            bbox={"facecolor": LIGHT["paper"], "edgecolor": "none", "pad": 1.0},
        )
        axes.plot([rank], [y], color=series(numbers[arm]), marker="o", markersize=5)
    for bar, clique in enumerate(comparison.cliques):
        ends = comparison.mean_ranks[list(clique)]
        axes.plot([ends.min() - 0.04, ends.max() + 0.04], [0.5 + 0.5 * bar] * 2, color=LIGHT["ink"], linewidth=4)
    axes.set_xlim(_rank_limits(n_arms))
    axes.set_ylim(first + n_arms - 0.4, -1.9)
    axes.annotate("mean rank (1 is best)", ((n_arms + 1) / 2, -1.2), ha="center", va="bottom")
    axes.axis("off")
    return drawing


def _is_low(rank: float, n_arms: int) -> bool:
    """Return whether a rank is in the lower half, so that there is more room to its right."""
    return rank <= (n_arms + 1) / 2


def _label(title: str, rank: float, n_arms: int) -> str:
    return f"{title}  {rank:.2f}" if _is_low(rank, n_arms) else f"{rank:.2f}  {title}"


def _largest_size(label: str, rank: float, n_arms: int) -> float:
    """Return the size in points at which a label fits between its rank and the far side of the drawing."""
    low, high = _rank_limits(n_arms)
    share = (high - rank if _is_low(rank, n_arms) else rank - low) / (high - low)
    room = 72 * _WIDTH * (share * (1 - 2 * _MARGIN) + _MARGIN) - 2 * _LABEL_GAP
    width, _, _ = TextToPath().get_text_width_height_descent(label, FontProperties(size=_LABEL_SIZE), ismath=False)
    return float(_LABEL_SIZE * room / width)


def _rank_limits(n_arms: int) -> tuple[float, float]:
    return 0.6, n_arms + 0.4
