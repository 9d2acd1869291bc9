"""The plots of the page, one function each, in the style of `workshop.pages`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from jahs.schema import OPS, SIZE_KEYS
from jahs.spaces.parameters import PARAMETERS, Parameter
from jahs.tasks.definitions import RESOLUTIONS
from jahs.tasks.metrics import ACCURACIES
from jahs.tasks.pareto import pareto_front
from pipeline.describe.measured import MeasuredRuns
from workshop.measured import trained_with_both
from workshop.numbered import FIDELITY_GROUPS
from workshop.pages.drawing import Curve, draw_curves, draw_points, new_panels
from workshop.pages.style import LIGHT, dash, series

_PARTS: Final = {"train_acc": "training", "valid_acc": "validation", "test_acc": "testing"}
_OP_NAMES: Final = ("identity", "zero", "conv 3×3", "conv 1×1", "avg pool")
_SUPERSCRIPT: Final = str.maketrans("-012345", "⁻⁰¹²³⁴⁵")
_BLUE: Final = series(0)
_RED: Final = series(3)
_MOST_STEPS: Final = 200
_N_BINS: Final = 9
_FEWEST_OF_BIN: Final = 3
_Floats = NDArray[np.float64]


def learning_curves(measured: MeasuredRuns) -> Figure:
    """Draw validation accuracy by epoch: a panel for each N and W, a line and a band for each Resolution."""
    sizes = list(dict.fromkeys((n, w) for n, w, _ in FIDELITY_GROUPS))
    figure, axes = new_panels(3, 3, width=8.4, height=6.8, share_x=True, share_y=True)
    epochs = np.arange(1, measured.curves["valid_acc"].shape[1] + 1)
    for (n, w), ax in zip(sizes, axes, strict=True):
        for number, resolution in enumerate(RESOLUTIONS):
            colour = series(number)
            curves = measured.curves["valid_acc"][measured.group == FIDELITY_GROUPS.index((n, w, resolution))]
            if not len(curves):
                continue
            low, middle, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
            ax.fill_between(epochs, low, high, color=colour, alpha=0.18, linewidth=0)
            ax.plot(epochs, middle, color=colour, linestyle=dash(number), label=f"Resolution {resolution:g}")
        ax.set(title=f"N = {n}, W = {w}", ylim=(0, 100))
    for ax in axes[6:]:
        ax.set_xlabel("epoch")
    for ax in axes[::3]:
        ax.set_ylabel("validation accuracy, %")
    _legend_once(axes)
    return figure


def agreement_by_epoch(curve: Sequence[Mapping[str, Any]]) -> Figure:  # Any: JSON
    """Draw the task's agreement with each epoch of the real landscape, and that epoch's with the last one."""
    titles = {"ours": "this task with that epoch", "real": "that epoch with the last one"}
    epochs = np.array([at["epoch"] for at in curve], np.float64)
    curves = [
        Curve(title=title, x=epochs, y=np.array([at[whose] for at in curve], np.float64), number=i, is_step=False)
        for i, (whose, title) in enumerate(titles.items())
    ]
    return draw_curves(curves, x_label="epoch of the real landscape", y_label="Spearman's rho")


def distributions(measured: MeasuredRuns) -> Figure:
    """Draw the cumulative distribution of each accuracy at the last epoch, and of validation accuracy by fidelity."""
    figure, axes = new_panels(1, 4, width=10.6, height=3.0, share_y=True)
    for number, metric in enumerate(ACCURACIES):
        _steps(axes[0], measured.curves[metric][:, -1], number, _PARTS[metric])
    axes[0].set_title("all configs")
    for key, ax in zip(SIZE_KEYS, axes[1:], strict=True):
        for number, choice in enumerate(PARAMETERS[key].choices):
            _steps(ax, measured.final[measured.configs[key] == choice], number, f"{key} = {choice:g}")
        ax.set_title(f"validation, by {key}")
    for ax in axes:
        ax.set(xlabel="accuracy, %", xlim=(0, 100), ylim=(0, 1))
        ax.legend(loc="upper left")
    axes[0].set_ylabel("share of configs")
    return figure


def marginal_effects(measured: MeasuredRuns) -> Figure:
    """Draw validation accuracy at the last epoch by the value of each parameter: median, quartiles, middle 80 %."""
    keys = ("LearningRate", "WeightDecay", "Activation", "TrivialAugment", *SIZE_KEYS, *OPS)
    figure, axes = new_panels(4, 4, width=10.6, height=9.2, share_y=True)
    for key, ax in zip(keys, axes, strict=False):
        parameter = PARAMETERS[key]
        if parameter.kind == "float":
            _binned(ax, parameter, measured.configs[key].astype(np.float64), measured.final)
        else:
            names = list(_OP_NAMES) if key in OPS else [str(choice) for choice in parameter.choices]
            groups = [measured.final[measured.configs[key] == choice] for choice in parameter.choices]
            _boxes(ax, np.arange(len(groups), dtype=np.float64), groups)
            ax.set_xticks(range(len(names)), names, rotation=30 if key in OPS else 0)
            ax.set_xlim(-0.6, len(names) - 0.4)
        ax.set(title=key, ylim=(0, 100))
    for ax in axes[len(keys) :]:
        ax.set_axis_off()
    for ax in axes[::4]:
        if ax.axison:
            ax.set_ylabel("validation accuracy, %")
    return figure


def accuracy_against_work(measured: MeasuredRuns) -> Figure:
    """Draw validation accuracy at the last epoch against multiply-adds, with the Pareto front."""
    figure, (ax,) = new_panels(1, 1, width=7.6, height=4.6)
    for number, resolution in enumerate(RESOLUTIONS):
        is_in = measured.configs["Resolution"] == np.float32(resolution)
        draw_points(ax, measured.macs[is_in], measured.final[is_in], number, f"Resolution {resolution:g}")
    x, error = pareto_front(np.column_stack([measured.macs, 100 - measured.final])).T
    label = f"Pareto front, {len(x)} configs"
    ax.step(x, 100 - error, where="post", color=_RED, linewidth=1.4, marker="o", markersize=3.6, label=label)
    ax.set(xscale="log", xlabel="multiply-adds of one image", ylabel="validation accuracy, %", ylim=(0, 100))
    ax.legend(loc="lower right")
    return figure


def epochs_against_last(overall: _Floats, within: _Floats) -> Figure:
    """Draw Kendall's tau between each epoch and the last."""
    epochs = np.arange(1.0, len(overall) + 1)
    lines = {"all configs": overall, "within fidelity groups": within}
    curves = [
        Curve(title=title, x=epochs, y=tau, number=2 * i, is_step=False, has_markers=True)
        for i, (title, tau) in enumerate(lines.items())
        if np.isfinite(tau).any()
    ]
    lowest = min((float(np.nanmin(curve.y)) for curve in curves), default=0.0)
    limits = (min(0.0, lowest), 1.02)
    return draw_curves(curves, x_label="epoch", y_label="Kendall's tau with the last epoch", y_limits=limits)


def values_against_values(taus: Mapping[str, _Floats]) -> Figure:
    """Draw Kendall's tau between the rankings by two values' additive models; the diagonal compares two halves."""
    figure, axes = new_panels(1, len(taus), width=3.2 * len(taus), height=3.1)
    for (key, values), ax in zip(taus.items(), axes, strict=True):
        names = [f"{choice:g}" for choice in PARAMETERS[key].choices]
        ax.pcolormesh(values, cmap="Blues", vmin=0, vmax=1)
        ax.grid(visible=False)
        ax.invert_yaxis()
        ax.set_aspect("equal")
        ax.set_xticks(np.arange(len(names)) + 0.5, names)
        ax.set_yticks(np.arange(len(names)) + 0.5, names)
        ax.set_title(key)
        for (i, j), tau in np.ndenumerate(values):
            ax.text(
                j + 0.5, i + 0.5, f"{tau:.2f}", ha="center", va="center", color="#ffffff" if tau > 0.55 else "#10304f"
            )
    return figure


def seed_against_seed(measured: MeasuredRuns) -> Figure:
    """Draw each accuracy at the last epoch: seed 1 against seed 0."""
    figure, axes = new_panels(1, 3, width=9.0, height=3.3)
    one, other = trained_with_both(measured.last, (0, 1))
    for metric, ax in zip(ACCURACIES, axes, strict=True):
        ax.plot([0, 100], [0, 100], color=LIGHT["muted"], linewidth=0.8)
        ax.plot(one[metric], other[metric], linestyle="", marker="o", markersize=3.6, alpha=0.6, color=_BLUE)
        title = f"{_PARTS[metric]} accuracy, %"
        ax.set(title=title, xlim=(0, 100), ylim=(0, 100), aspect="equal", xlabel="seed 0")
    axes[0].set_ylabel("seed 1")
    return figure


def _steps(ax: Axes, values: _Floats, number: int, label: str) -> None:
    if len(values):
        shares = np.linspace(0, 1, min(len(values), _MOST_STEPS) + 1)
        x = np.quantile(values, shares, method="inverted_cdf")
        x, y = np.append(0, np.append(x, 100)), np.append(0, np.append(shares, 1))
        ax.step(x, y, where="post", color=series(number), linestyle=dash(number), label=label)


def _boxes(ax: Axes, places: _Floats, groups: list[_Floats], *, width: float = 0.5) -> None:
    """Draw medians as ticks, interquartile ranges as bars, and the middle 80 % as lines."""
    for place, values in zip(places.tolist(), groups, strict=True):
        if len(values) < _FEWEST_OF_BIN:
            continue
        lowest, low, middle, high, highest = np.quantile(values, [0.1, 0.25, 0.5, 0.75, 0.9])
        ax.vlines(place, lowest, highest, color=_BLUE, linewidth=1)
        ax.bar(place, high - low, width, bottom=low, color=_BLUE, alpha=0.45, linewidth=0)
        ax.hlines(middle, place - width / 2, place + width / 2, color=_RED, linewidth=2)


def _binned(ax: Axes, parameter: Parameter, x: _Floats, y: _Floats) -> None:
    """Draw the same boxes for bins of equal width on a log scale."""
    edges = np.linspace(np.log10(parameter.lower), np.log10(parameter.upper), _N_BINS + 1)
    bins = np.clip(np.searchsorted(edges, np.log10(x), side="right") - 1, 0, _N_BINS - 1)
    step = float(edges[1] - edges[0])
    _boxes(ax, (edges[:-1] + edges[1:]) / 2, [y[bins == i] for i in range(_N_BINS)], width=0.7 * step)
    decades = np.arange(edges[0], edges[-1] + 0.5).tolist()
    ax.set_xticks(decades, ["10" + str(round(decade)).translate(_SUPERSCRIPT) for decade in decades])
    ax.set_xlim(edges[0], edges[-1])


def _legend_once(axes: list[Axes]) -> None:
    """Draw one legend, in the last panel that has lines."""
    for ax in reversed(axes):
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="lower right")
            return
