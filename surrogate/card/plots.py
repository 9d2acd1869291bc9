"""The plots of a card, each from the facts about one metric in quality.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from jahs.tasks.metrics import METRICS
from surrogate.data.rows import GROUP_VALUES, Facts
from workshop.pages.document import Figure
from workshop.pages.drawing import new_drawing, set_scale
from workshop.pages.style import LIGHT, dash, marker, series

_DOTS: Final[dict[str, Any]] = {"linestyle": "", "marker": "o", "markersize": 3.5, "alpha": 0.7}  # Any: matplotlib's
_FAINT: Final[dict[str, Any]] = {"color": LIGHT["muted"], "linestyle": "--", "linewidth": 1.2}  # Any: matplotlib's


def plots_of(metric: str, facts: Facts) -> Iterator[Figure]:
    """Yield the figures of a metric, in the order of the card."""
    test, search = facts["test"], facts["search"]
    if test is not None:
        yield _predicted_against_measured(metric, test)
        yield _residuals(metric, test)
        if len(test["calibration"]) >= 2:
            yield _calibration(metric, test["calibration"])
        if METRICS[metric].by_epoch and sum(row["tau"] is not None for row in test["tau_by_epoch"]) >= 2:
            yield _tau_by_epoch(metric, test["tau_by_epoch"])
    curve = facts["learning_curve"]
    if curve and (points := _with_tau(curve["points"], "n_configs")):
        yield _learning_curve(metric, points, curve["predictions"].get("tau"))
    if search is not None and (evaluations := _with_tau(search["evaluations"], "number")):
        yield _search(metric, evaluations, search["default_tau"])
    if search is not None and (sizes := _with_tau(search["sizes"], "n_nodes")):
        yield _sizes(metric, sizes, search["chosen"])


def _predicted_against_measured(metric: str, test: Facts) -> Figure:
    """Draw a marker for each test config at the last epoch, a shape and a colour for each Resolution."""
    label = f"measured, {METRICS[metric].unit}"
    figure, axes = _begin(metric, "predicted", "Predicted and measured", label, "predicted")
    x, y, group = np.array(test["points"], dtype=np.float64).T
    _diagonal(axes, np.concatenate([x, y]))
    for number, resolution in enumerate(("0.25", "0.5", "1")):
        is_in = group % 3 == number
        look = {**_DOTS, "marker": marker(number), "color": series(number)}
        axes.plot(x[is_in], y[is_in], label=f"Resolution {resolution}", **look)
    _log_if_seconds(metric, axes)
    axes.legend()
    return figure


def _residuals(metric: str, test: Facts) -> Figure:
    """Draw range, interquartile range and median of the errors at the last epoch, for each fidelity group."""
    scale, unit = (100, "%") if test["is_relative"] else (1, "points")
    groups = test["residuals"]
    label = f"predicted minus measured, {unit}"
    figure, axes = _begin(metric, "errors", "Errors by group (configs)", label, "", height=1.2 + 0.2 * len(groups))
    axes.axvline(0, **_FAINT)
    least, low, middle, high, most = scale * np.array([group["quantiles"] for group in groups], dtype=np.float64).T
    rows, gaps = np.arange(len(groups)), np.full(len(groups), np.nan)
    for ends, shape in (
        ((least, most), {"linewidth": 1}),
        ((low, high), {"linewidth": 5, "alpha": 0.4, "solid_capstyle": "butt"}),
    ):
        axes.plot(np.column_stack([*ends, gaps]).ravel(), rows.repeat(3), color=series(0), **shape)
    axes.plot(middle, rows, color=series(0), linestyle="", marker="o", markersize=4)
    labels = [(" ".join(f"{key[0]}{v:g}" for key, v in GROUP_VALUES[g["group"]].items()), g["n"]) for g in groups]
    axes.set_yticks(range(len(groups)), [f"{name} ({n})" for name, n in labels])
    axes.set_ylim(len(groups) - 0.4, -0.6)
    return figure


def _calibration(metric: str, bins: Sequence[Facts]) -> Figure:
    """Draw mean measurements by decile of the prediction, with two standard errors."""
    title, label = "Calibration, means by decile", f"predicted, {METRICS[metric].unit}"
    figure, axes = _begin(metric, "calibration", title, label, "measured")
    x, y = (np.array([row[key] for row in bins], dtype=np.float64) for key in ("predicted", "measured"))
    _diagonal(axes, np.concatenate([x, y]))
    reach = [2 * (row["spread"] or 0.0) for row in bins]
    axes.errorbar(x, y, yerr=reach, color=series(0), linestyle="", marker="o", markersize=5)
    _log_if_seconds(metric, axes)
    return figure


def _tau_by_epoch(metric: str, rows: Sequence[Facts]) -> Figure:
    """Draw Kendall's tau at every epoch beside its noise ceiling."""
    figure, axes = _begin(metric, "epochs", "Kendall's tau by epoch", "epoch", "tau")
    for number, (key, label) in enumerate((("tau", "model"), ("ceiling", "two seeds"))):
        known = [(row["epoch"], row[key]) for row in rows if row[key] is not None]
        if known:
            axes.plot(
                *zip(*known, strict=True),
                color=series(number),
                linestyle=dash(number),
                marker=marker(number),
                markersize=4,
                label=label,
            )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure


def _learning_curve(metric: str, points: Sequence[tuple[float, float]], predicted: Facts | None) -> Figure:
    """Draw validation tau by training configs, and its extrapolation to the full size."""
    title = "Learning curve, validation tau"
    figure, axes = _begin(metric, "curve", title, "training configs", "tau")
    axes.plot(*zip(*points, strict=True), color=series(0), label="measured", **_DOTS)
    sizes = sorted({n for n, _ in points})
    axes.plot(sizes, [np.mean([tau for m, tau in points if m == n]) for n in sizes], color=series(0))
    if predicted is not None:
        n, value = predicted["n_configs"], predicted["value"]
        reach = [[abs(value - predicted["low"])], [abs(predicted["high"] - value)]]
        label = f"predicted, {100 * predicted['level']:.0f} %"
        axes.errorbar(
            [n], [value], yerr=reach, color=series(1), marker=marker(1), markersize=6, linestyle="", label=label
        )
    set_scale(axes, "x", "log")
    axes.legend()
    return figure


def _search(metric: str, evaluations: Sequence[tuple[float, float]], default: float | None) -> Figure:
    """Draw validation tau of each evaluation of the search, the best so far, and the default."""
    figure, axes = _begin(metric, "search", "Search, validation tau", "evaluation", "tau")
    numbers, taus = zip(*evaluations, strict=True)
    axes.plot(numbers, taus, color=series(0), label="tried", **_DOTS)
    axes.plot(numbers, list(accumulate(taus, max)), color=series(1), label="best so far")
    if default is not None:
        axes.axhline(default, label="default", **_FAINT)
    most, middle = max(*taus, default or taus[0]), sorted(taus)[len(taus) // 2]
    axes.set_ylim(bottom=max(axes.get_ylim()[0], middle - 3 * (most - middle + 0.01)))  # bad settings may be cut off
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure


def _sizes(metric: str, sizes: Sequence[tuple[float, float]], chosen: Facts) -> Figure:
    """Draw validation tau by the size of the forest; a ring marks the one that was chosen."""
    figure, axes = _begin(metric, "sizes", "Size of the forest, validation tau", "nodes", "tau")
    axes.plot(*zip(*sizes, strict=True), color=series(0), label="measured", **_DOTS)
    if chosen["tau"] is not None:
        ring = {**_DOTS, "markersize": 9, "color": series(1), "fillstyle": "none"}
        axes.plot([chosen["n_nodes"]], [chosen["tau"]], label="chosen", **ring)
    set_scale(axes, "x", "log")
    axes.legend()
    return figure


def _begin(metric: str, name: str, title: str, x: str, y: str, *, height: float = 3.1) -> tuple[Figure, Axes]:
    drawing, axes = new_drawing(height)
    axes.set(xlabel=x, ylabel=y)
    return Figure(name=f"{metric}-{name}", caption=title, alt=title, drawing=drawing), axes


def _diagonal(axes: Axes, values: np.ndarray) -> None:
    axes.plot([values.min(), values.max()], [values.min(), values.max()], **_FAINT)


def _log_if_seconds(metric: str, axes: Axes) -> None:
    if METRICS[metric].unit == "s":
        set_scale(axes, "x", "log")
        set_scale(axes, "y", "log")


def _with_tau(rows: Sequence[Facts], key: str) -> list[tuple[float, float]]:
    return [(row[key], row["tau"]) for row in rows if row["tau"] is not None]
