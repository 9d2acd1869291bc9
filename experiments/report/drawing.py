"""Figures, all in one style: labelled axes, a legend below, nothing that needs colour alone to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from experiments.analysis.logs import Floats
from experiments.analysis.ranks import Comparison
from workshop.pages.style import LIGHT, dash, series

__all__ = ["Curve", "Estimate", "draw_comparison", "draw_curves", "draw_estimates"]

_WIDTH: Final = 4.8  # inches; a phone shows them at about three quarters of that
_HEIGHT: Final = 3.1
_LEGEND_ROW: Final = 0.24
_LONGEST: Final = 32  # characters of a label beside the middle rank that fit

Scale = Literal["linear", "log"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A line with a band.

    Attributes:
        title: in the legend.
        x, y: of the line; NaN where there is none.
        low, high: of the band, or None.
        number: which colour and dash.
        is_step: values hold until the next one.
        has_markers: draw every point.
    """

    title: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    number: int = 0
    is_step: bool = True
    has_markers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its interval, on a line of its own."""

    title: str
    value: float
    low: float
    high: float
    number: int = 0


def draw_curves(
    curves: Sequence[Curve],
    *,
    x_label: str,
    y_label: str,
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
) -> Drawing:
    """Draw curves over one another, with a legend below."""
    n_columns = 2 if max((len(c.title) for c in curves), default=0) <= 30 else 1
    n_rows = -(-len(curves) // n_columns)
    drawing, axes = _axes(_HEIGHT + _LEGEND_ROW * n_rows)
    for curve in curves:
        color = series(curve.number)
        axes.plot(
            curve.x,
            curve.y,
            color=color,
            linestyle=dash(curve.number),
            label=curve.title,
            drawstyle="steps-post" if curve.is_step else "default",
            marker="o" if curve.has_markers else None,
            markersize=4,
        )
        if curve.low is not None and curve.high is not None:
            axes.fill_between(
                curve.x,
                curve.low,
                curve.high,
                color=color,
                alpha=0.16,
                linewidth=0,
                step="post" if curve.is_step else None,
            )
    _scale(axes, "x", x_scale, x_limits)
    _scale(axes, "y", y_scale, y_limits)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    drawing.legend(loc="outside lower center", ncols=n_columns, handlelength=3.2)
    return drawing


def draw_estimates(
    estimates: Sequence[Estimate], *, x_label: str, x_scale: Scale = "linear", at: float | None = None
) -> Drawing:
    """Draw estimates below one another, with a line where both are alike, if `at` is given."""
    drawing, axes = _axes(0.9 + 0.34 * len(estimates))
    for place, estimate in enumerate(estimates):
        color = series(estimate.number)
        axes.plot([estimate.low, estimate.high], [place, place], color=color, linewidth=2.4, solid_capstyle="butt")
        axes.plot([estimate.value], [place], color=color, marker="o", markersize=6)
    if at is not None:
        axes.axvline(at, color=LIGHT["muted"], linewidth=1.0, linestyle=(0, (2, 2)))
    axes.set_yticks(range(len(estimates)), [estimate.title for estimate in estimates])
    axes.set_ylim(len(estimates) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    _scale(axes, "x", x_scale, None)
    axes.set_xlabel(x_label)
    return drawing


def draw_comparison(comparison: Comparison, titles: Sequence[str], *, numbers: Sequence[int]) -> Drawing:
    """Draw a critical-difference diagram: mean ranks, and bars over arms that cannot be told apart."""
    n_arms, n_bars = len(titles), len(comparison.cliques)
    drawing = Drawing(figsize=(_WIDTH, 0.7 + 0.16 * n_bars + 0.3 * n_arms))
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


def _axes(height: float) -> tuple[Drawing, Axes]:
    drawing = Drawing(figsize=(_WIDTH, height), layout="constrained")
    return drawing, drawing.add_subplot()


def _scale(axes: Axes, which: Literal["x", "y"], scale: Scale, limits: tuple[float, float] | None) -> None:
    if scale == "log":
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    if limits is not None:
        (axes.set_xlim if which == "x" else axes.set_ylim)(*limits)
    if scale == "log":
        axis = axes.xaxis if which == "x" else axes.yaxis
        low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
        is_narrow = high / low < 30
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_narrow else (1,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
