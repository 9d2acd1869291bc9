"""The cells and the sources of a folder of runs: a map, accuracies by depth and by source, and noise by accuracy."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from jahs.files.tables import take
from jahs.spaces.cell.paths import effective_depth
from pipeline.describe.measured import MeasuredRuns
from workshop.exhaustive import ops_of
from workshop.pages.drawing import draw_points, new_panels
from workshop.pages.style import LIGHT, dash, series
from workshop.resampling import within_configs

FEWEST_CELLS: Final = 30
"""Distinct cells that their map requires."""

_FEWEST: Final = 5  # values that a violin requires
_N_COLOURS: Final = 8  # matplotlib rasterises a colour bar of more than 50
_GRID: Final = 16
_N_BINS: Final = 8
_Floats = NDArray[np.float64]


def n_cells(measured: MeasuredRuns) -> int:
    """Return the number of distinct cells."""
    return len(np.unique(ops_of(measured.configs), axis=0))


def embedding(measured: MeasuredRuns) -> _Floats:
    """Return the position of each config's cell, (n_configs, 2): t-SNE of the distinct cells, operations one-hot."""
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]  # ships no types

    cells, inverse = np.unique(ops_of(measured.configs), axis=0, return_inverse=True)
    one_hot = (cells[:, :, None] == np.arange(5)).reshape(len(cells), -1).astype(np.float64)
    tsne = TSNE(perplexity=min(30, len(cells) // 4), init="pca", random_state=0, n_jobs=1)
    positions: _Floats = np.asarray(tsne.fit_transform(one_hot), dtype=np.float64)
    return positions.round(2)[inverse.reshape(-1)]


def map_of_cells(measured: MeasuredRuns) -> Figure:
    """Draw the density, the mean accuracy and the sources of cells on their map."""
    x, y = embedding(measured).T
    sources = by_source(measured)
    figure, axes = new_panels(1, 2 + (len(sources) > 1), width=8.4 if len(sources) == 1 else 11.4, height=3.6)
    colours = mpl.colormaps["viridis"].resampled(_N_COLOURS)
    coloured = {"configs": None, "mean validation accuracy, %": measured.final}
    for ax, (label, values) in zip(axes, coloured.items(), strict=False):
        hexagons = ax.hexbin(x, y, C=values, mincnt=1, gridsize=_GRID, linewidths=0.2, cmap=colours)
        figure.colorbar(hexagons, ax=ax, label=label)
    if len(sources) > 1:
        for number, (source, is_in) in enumerate(sources.items()):
            draw_points(axes[2], x[is_in], y[is_in], number, source)
        axes[2].legend(loc="upper right")
    for ax, title in zip(axes, ("density", "accuracy", "source"), strict=False):
        ax.set(title=title, xticks=[], yticks=[])
        ax.grid(visible=False)
    return figure


def accuracy_by_source(measured: MeasuredRuns) -> Figure:
    """Draw the cumulative distribution of validation accuracy at the last epoch by the source of the config."""
    figure, (ax,) = new_panels(1, 1, width=5.6, height=3.4)
    for number, (source, is_in) in enumerate(by_source(measured).items()):
        x = np.sort(measured.final[is_in])
        label = f"{source}, {len(x):,} configs"
        shares = np.arange(len(x) + 1) / len(x)
        ax.step([0, *x, 100], [*shares, 1], where="post", color=series(number), linestyle=dash(number), label=label)
    ax.set(xlabel="validation accuracy, %", ylabel="share of configs")
    ax.legend(loc="upper left")
    return figure


def accuracy_by_depth(measured: MeasuredRuns) -> Figure:
    """Draw violins of validation accuracy at the last epoch by the depth of the cell."""
    figure, (ax,) = new_panels(1, 1, width=5.6, height=3.4)
    depth = effective_depth(ops_of(measured.configs))
    groups = {d: measured.final[depth == d] for d in np.unique(depth).tolist()}
    groups = {d: values for d, values in groups.items() if len(values) >= _FEWEST}
    parts: Any = ax.violinplot([*groups.values()], [*groups], showmedians=True, widths=0.8) if groups else {}
    # Any: lines and a list of bodies, which matplotlib's types do not say
    for body in parts.pop("bodies", ()):
        body.set(color=series(0), alpha=0.45)
    for name, lines in parts.items():
        lines.set(color=series(3) if name == "cmedians" else LIGHT["muted"], linewidth=1.2)
    ax.set_xticks([*groups], [f"{d}\n{len(values):,} configs" for d, values in groups.items()])
    ax.set(xlabel="convolutions in sequence on a live path", ylabel="validation accuracy, %")
    return figure


def noise_by_accuracy(measured: MeasuredRuns) -> Figure:
    """Draw the standard deviation between seeds against the mean accuracy of each repeated config."""
    mean, sd = seed_spread(measured)
    figure, (ax,) = new_panels(1, 1, width=5.6, height=3.4)
    ax.plot(mean, sd, linestyle="", marker="o", markersize=3.4, markeredgewidth=0, alpha=0.6, color=series(0))
    edges = np.quantile(mean, np.linspace(0, 1, min(_N_BINS, max(1, len(mean) // 5)) + 1))
    bins = np.clip(np.searchsorted(edges, mean, side="right") - 1, 0, len(edges) - 2)
    medians = [(mean[bins == i].mean(), np.median(sd[bins == i])) for i in np.unique(bins).tolist()]
    ax.plot(*zip(*medians, strict=True), color=series(1), marker="s", markersize=4, label="median of bins")
    ax.set(xlabel="mean validation accuracy, %", ylabel="sd between seeds, points")
    ax.legend(loc="upper right")
    return figure


def seed_spread(measured: MeasuredRuns) -> tuple[_Floats, _Floats]:
    """Return mean and standard deviation of validation accuracy of each config with two or more finished seeds."""
    finished = take(measured.last, measured.last["status"] == "finished")
    _, mean, freedom, squares = within_configs(finished["config_id"], finished["valid_acc"].astype(np.float64))
    is_repeated = freedom > 0
    return mean[is_repeated], np.sqrt(squares[is_repeated] / freedom[is_repeated])


def by_source(measured: MeasuredRuns) -> dict[str, NDArray[np.bool_]]:
    """Return a mask of the configs of each source, the most frequent first."""
    sources = measured.configs["source"]
    return {name: sources == name for name, _ in Counter(sources.tolist()).most_common()}
