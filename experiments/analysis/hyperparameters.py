"""One setting of the hyperparameters for all architectures? Section 5.1 of NAS-Bench-101, in every fidelity group.

f*(A) is the best value of an architecture over all settings H. The shared setting H-dagger has the best mean over some
architectures; the others show how well f(A, H-dagger) ranks by f*(A), and what a shared setting loses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

import jahs
from experiments.analysis.landscape_measures import widened
from experiments.analysis.subjects import Subject, answers
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.queries.exhaustive import cell_columns, crossed, grid
from jahs.schema import OPS
from jahs.spaces.cell import all_ops
from jahs.spaces.columns import Columns
from workshop.ranks import spearman
from workshop.resampling import bootstrap_estimates

N_TUNED: Final = 50
"""Architectures that H-dagger is chosen on, as in NAS-Bench-101."""

N_CELLS: Final = 150
"""Architectures in all, drawn at random."""

N_FLOATS: Final = 5
"""Values of each rate in the grid of settings."""

_N_RESAMPLES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedSetting:
    """How a shared setting compares with the best setting of each architecture.

    Attributes:
        best: f*, (n_cells,), of the architectures that it was not chosen on.
        shared: f(A, H-dagger) of the same.
        setting: the position of H-dagger among the settings.
        measures: "rho" (Spearman's, of both), "rho in the better half" (of f*), "loss" (mean of f* - f-dagger),
            "loss of the worst tenth" (its 90 % quantile), and "loss of the winner" (best f* less f* of the
            architecture that is chosen by f-dagger).
    """

    best: Floats
    shared: Floats
    setting: int
    measures: Mapping[str, Interval]


def shared_setting(values: Floats, *, n_tuned: int, n_resamples: int = _N_RESAMPLES) -> SharedSetting:
    """Compare both for values of cells by settings, (n_cells, n_settings), more being better.

    Args:
        n_tuned: the first cells, on which H-dagger is chosen; the others are measured.
        n_resamples: of these others, for the intervals.
    """
    setting = int(values[:n_tuned].mean(axis=0).argmax())
    best, shared = values[n_tuned:].max(axis=1), values[n_tuned:, setting]
    names: dict[str, Callable[[Floats, Floats], float]] = {
        "rho": spearman,
        "rho in the better half": lambda f, g: spearman(f[f >= np.median(f)], g[f >= np.median(f)]),
        "loss": lambda f, g: float(np.mean(f - g)),
        "loss of the worst tenth": lambda f, g: float(np.quantile(f - g, 0.9)),
        "loss of the winner": lambda f, g: float(f.max() - f[np.argmax(g)]),
    }

    def measured(chosen: NDArray[np.int64]) -> list[float]:
        return [name(best[chosen], shared[chosen]) for name in names.values()]

    found = bootstrap_estimates(measured, len(best), level=0.95, n_resamples=n_resamples)
    return SharedSetting(best=best, shared=shared, setting=setting, measures=dict(zip(names, found, strict=True)))


def answers_of_cells(
    bench: jahs.Benchmark, sizes: Mapping[str, object], *, n_cells: int, n_floats: int, seed: int
) -> tuple[Floats, Columns]:
    """Return answers of random cells with every setting of a grid, (n_cells, n_settings), and the settings."""
    chosen = all_ops()[np.random.default_rng(seed).choice(len(all_ops()), n_cells, replace=False)]
    space = bench.space.fix(sizes)
    settings = grid(space, [name for name in space.searched if name not in OPS], n_floats=n_floats)
    fixed = {name: np.full(len(settings["LearningRate"]), value) for name, value in sizes.items()}
    columns = crossed(cell_columns(chosen), settings | fixed)
    return answers(bench, columns).reshape(n_cells, -1), settings


def measure_shared(
    subject: Subject, sizes: Mapping[str, object], *, seed: int, n_cells: int, n_floats: int
) -> tuple[SharedSetting, Mapping[str, object]]:
    """Return the comparison at these sizes, its intervals widened by the spread of the refits, and H-dagger."""
    found: list[SharedSetting] = []
    for bench in subject.models:
        values, settings = answers_of_cells(bench, sizes, n_cells=n_cells, n_floats=n_floats, seed=seed)
        n_resamples = 1 if found else _N_RESAMPLES  # the spread of refits needs no intervals of theirs
        found.append(shared_setting(values, n_tuned=min(N_TUNED, n_cells // 2), n_resamples=n_resamples))
    own, *refitted = found
    setting = {name: column[own.setting].item() for name, column in settings.items()}
    wide = widened(own.measures, [other.measures for other in refitted])
    measures = {name: _clipped(found, -1.0, 1.0) if "rho" in name else _clipped(found) for name, found in wide.items()}
    return SharedSetting(best=own.best, shared=own.shared, setting=own.setting, measures=measures), setting


def _clipped(found: Interval, least: float = 0.0, most: float = np.inf) -> Interval:
    """Return an interval without values that the measure cannot have."""
    return Interval(value=found.value, low=max(found.low, least), high=min(found.high, most))
