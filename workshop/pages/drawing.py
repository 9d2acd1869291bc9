"""Figures, all in one style: labelled axes, a legend below, nothing that is distinguished by colour alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from jahs.comparison.summaries import Interval
from workshop.pages.style import LIGHT, dash, marker, series

_WIDTH: Final = 4.8  # inches; a phone shows figures at about three quarters of this width
_HEIGHT: Final = 3.1
_LEGEND_ROW: Final = 0.24
_TWO_COLUMNS: Final = 51  # characters that fit side by side: the longest titles of both columns of a legend

Scale = Literal["linear", "log"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A line with a band."""

    title: str  # label in the legend
    # x, y: points of the line; NaN interrupts it.
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    # low, high: limits of the band, or None.
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    number: int = 0  # number of the colour and dash
    is_step: bool = True  # values hold until the next one
    has_markers: bool = False  # draw every point


def interval_curves(
    found: Mapping[str, Sequence[Interval]], x: Sequence[float] | NDArray[np.float64], *, has_markers: bool = True
) -> list[Curve]:
    """Return a curve for each title of estimates, with their intervals as its band; `x` may have more points."""
    curves = []
    for number, (title, intervals) in enumerate(found.items()):
        y, low, high = np.array([(each.value, each.low, each.high) for each in intervals]).T
        at = np.array(x[: len(y)], dtype=np.float64)
        curve = Curve(title=title, x=at, y=y, low=low, high=high, number=number, is_step=False, has_markers=has_markers)
        curves.append(curve)
    return curves


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
    """Draw curves in one diagram, with a legend below."""
    lengths = [len(curve.title) for curve in curves]
    half = -(-len(lengths) // 2)  # matplotlib fills the first column first
    widest = [max(column, default=0) for column in (lengths[:half], lengths[half:])]
    n_columns = 2 if max(widest) <= 30 and sum(widest) <= _TWO_COLUMNS else 1
    n_rows = -(-len(curves) // n_columns)
    drawing, axes = new_drawing(_HEIGHT + _LEGEND_ROW * n_rows)
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
    set_scale(axes, "x", x_scale, x_limits)
    set_scale(axes, "y", y_scale, y_limits)
    axes.set(xlabel=x_label, ylabel=y_label)
    if curves:
        drawing.legend(loc="outside lower center", ncols=n_columns, handlelength=3.2)
    return drawing


def draw_estimates(
    found: Mapping[str, Interval],
    *,
    x_label: str,
    numbers: Sequence[int] | None = None,
    x_scale: Scale = "linear",
    at: float | None = None,
) -> Drawing:
    """Draw estimates with their intervals below one another, and a dashed vertical line at `at`.

    Args:
        found: estimates by title.
        numbers: numbers of their colours; None: one colour.
    """
    drawing, axes = new_drawing(0.9 + 0.34 * len(found))
    for place, interval in enumerate(found.values()):
        color = series(numbers[place] if numbers else 0)
        axes.plot([interval.low, interval.high], [place, place], color=color, linewidth=2.4, solid_capstyle="butt")
        axes.plot([interval.value], [place], color=color, marker="o", markersize=6)
    if at is not None:
        axes.axvline(at, color=LIGHT["muted"], linewidth=1.0, linestyle=(0, (2, 2)))
    set_rows(axes, found)
    set_scale(axes, "x", x_scale, None)
    if x_scale == "linear":
        axes.locator_params(axis="x", nbins=5)  # fixed, because the layout depends on the ticks
    axes.set_xlabel(x_label)
    return drawing


def draw_points(axes: Axes, x: NDArray[np.generic], y: NDArray[np.generic], number: int, label: str) -> None:
    """Draw many points, with the colour and shape of a number."""
    axes.plot(
        x,
        y,
        linestyle="",
        marker=marker(number),
        markersize=3.4,
        markeredgewidth=0,
        color=series(number),
        alpha=0.7,
        label=label,
    )


def set_rows(axes: Axes, titles: Collection[str]) -> None:
    """Label the rows of a drawing from top to bottom, without lines between them."""
    axes.set_yticks(range(len(titles)), [*titles])
    axes.set_ylim(len(titles) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def new_drawing(height: float) -> tuple[Drawing, Axes]:
    """Return an empty drawing of this height in inches, and its axes."""
    drawing = Drawing(figsize=(_WIDTH, height), layout="constrained")
    return drawing, drawing.add_subplot()


def new_panels(
    n_rows: int, n_columns: int, *, width: float, height: float, share_x: bool = False, share_y: bool = False
) -> tuple[Drawing, list[Axes]]:
    """Return an empty drawing of this size in inches, and its axes row by row."""
    drawing = Drawing(figsize=(width, height), layout="constrained")
    axes = drawing.subplots(n_rows, n_columns, squeeze=False, sharex=share_x, sharey=share_y)
    return drawing, list(axes.ravel())


def set_scale(axes: Axes, which: Literal["x", "y"], scale: Scale, limits: tuple[float, float] | None = None) -> None:
    """Set the scale and limits of an axis; logarithmic ticks are plain numbers."""
    if scale == "log":
        axes.set(**{f"{which}scale": "log"})
    if limits is not None:
        axes.set(**{f"{which}lim": limits})
    if scale == "log":
        axis = axes.xaxis if which == "x" else axes.yaxis
        low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
        is_narrow = high / low < 30
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_narrow else (1,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
