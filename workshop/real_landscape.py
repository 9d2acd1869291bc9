"""Compare a task's accuracies with the real landscape: JAHS-Bench-201's surrogate and NAS-Bench-201's cells.

A laptop task is useful if it ranks configs as the real benchmark does. The comparison takes configs and their
validation accuracies after the last epoch, queries an imported release of the real CIFAR-10 task for the same configs,
and reports rank correlations at several of its 200 epochs, marginal means of every key, and the effect of Resolution.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.errors import CorruptFile, InvalidArgument, MissingData, ProtocolMismatch
from jahs.files.sealed_json import read_sealed
from jahs.queries.benchmark import Benchmark
from jahs.spaces.cell import Cell
from jahs.spaces.cell.index import nb201_indices
from jahs.spaces.columns import Columns
from jahs.spaces.configs import Config, validate
from jahs.spaces.parameters import LARGEST, PARAMETERS
from jahs.spaces.space import space
from workshop.exhaustive import at_full_size
from workshop.ranks import kendall_tau, kendall_tau_within, spearman
from workshop.resampling import bootstrap_agreement

EPOCHS: Final = (200, 20, 3)  # epochs of the real task that are compared with; conclusions use the first
CURVE: Final = (3, 10, 20, 35, 50, 75, 100, 125, 150, 175, 200)
"""Epochs at which the real task's own agreement with the last of them is compared with ours."""

N_CELLS: Final = 15_625  # cells of NAS-Bench-201
_N_BINS: Final = 4
_N_FINE_BINS: Final = 8  # four bins hide a tenth of the learning rate's share
_N_RESAMPLES: Final = 2000
_FEWEST: Final = 3
_INTERACTION: Final = ("LearningRate", "WeightDecay")
_CELL_COLUMNS: Final = {200: "cifar10_test_200_epochs", 12: "cifar10_valid_12_epochs"}


def compare_with_landscape(columns: Columns, accuracies: Floats, landscape: Benchmark) -> dict[str, Any]:  # Any: JSON
    """Return the agreement of `accuracies` with the real landscape.

    Args:
        columns: n configs.
        accuracies: (n,) validation accuracies in percent after the last epoch.
        landscape: an imported release of the real task.

    Returns:
        Facts for JSON: `n_configs`, of them `n_full_size`; `epochs` (correlations by real epoch), `marginals` (mean
        accuracy of each value, ours and the real one's), `shares` (of the variance of ranks: the main effect of each
        key, and the interaction of learning rate and weight decay), `resolution` (gain in mean accuracy from 0.25
        to 1, ours and the real one's, and their ratio), `curve` (for each epoch of `CURVE`, rho of ours with it, and
        of the real task's with its last one). Values that too few configs leave undefined are null.

    Raises:
        InvalidArgument: fewer than 3 configs, or the release has too few epochs.
    """
    if len(accuracies) < _FEWEST:
        raise InvalidArgument(f"{len(accuracies)} configs were given; at least {_FEWEST} are needed to compare")
    real = real_accuracies(columns, landscape, CURVE)
    last = real[EPOCHS[0]]
    groups = np.unique(np.stack([columns[key] for key in LARGEST]), axis=1, return_inverse=True)[1]
    is_full = at_full_size(columns)
    return {
        "n_configs": len(accuracies),
        "n_full_size": int(is_full.sum()),
        "epochs": {str(epoch): _agreement(accuracies, real[epoch], groups.ravel(), is_full) for epoch in EPOCHS},
        "marginals": {
            key: _marginal(values, accuracies, last) for key, values in columns.items() if key != "Optimizer"
        },
        "shares": {
            whose: {name: known(share) for name, share in rank_shares(columns, values).items()}
            for whose, values in (("ours", accuracies), ("real", last))
        },
        "resolution": _resolution(columns["Resolution"], accuracies, last),
        "curve": [
            {"epoch": epoch, "ours": known(spearman(accuracies, of)), "real": known(spearman(of, last))}
            for epoch, of in real.items()
        ],
    }


def as_good_as(curve: Sequence[Mapping[str, Any]]) -> int | None:  # Any: JSON
    """Return the latest epoch whose ranks agree with the last ones no more than ours do, or None.

    Args:
        curve: `curve` of `compare_with_landscape`.
    """
    ours = curve[-1]["ours"]
    reached = [at["epoch"] for at in curve if None not in (ours, at["real"]) and at["real"] <= ours]
    return max(reached, default=None)


def real_accuracies(columns: Columns, landscape: Benchmark, epochs: Sequence[int] = EPOCHS) -> dict[int, Floats]:
    """Return the real validation accuracies of configs at each epoch, clipped to 0 and 100.

    Raises:
        InvalidArgument: the release has too few epochs.
    """
    if landscape.max_epoch < EPOCHS[0]:
        raise InvalidArgument(
            f"the landscape is {landscape.task.name!r} with {landscape.max_epoch} epochs; give an imported "
            f"release of JAHS-Bench-201's cifar10, which has {EPOCHS[0]} (`jahs import`)"
        )
    return {
        epoch: np.clip(landscape.query_many(columns, at=epoch, metrics=["valid_acc"])["valid_acc"], 0.0, 100.0)
        for epoch in epochs
    }


def check_path(runs: Path) -> Path:
    """Return the path of the saved comparison of a folder of runs: `data/TASK/landscape.json`."""
    return runs.resolve().parent / "landscape.json"


def read_check(runs: Path, *, protocol: str) -> dict[str, Any] | None:  # Any: JSON
    """Return the saved comparison of a folder of runs, or None.

    Raises:
        CorruptFile, UnknownFormat: the file is damaged, or was written by another version.
        ProtocolMismatch: it compares runs of another protocol.
    """
    path = check_path(runs)
    if not path.exists():
        return None
    comparison = read_sealed(path)
    if comparison.get("protocol") != protocol:
        raise ProtocolMismatch(
            f"{path} was saved for protocol {comparison.get('protocol')}, but the runs have {protocol}; save it again"
        )
    return comparison


def cell_configs(indices: Iterable[int]) -> list[Config]:
    """Return NAS-Bench-201 cells at full size with default hyperparameters."""
    fixed = {**space().default(), **LARGEST}
    return [validate({**fixed, **Cell.from_nb201_index(index).to_config()}) for index in indices]


def compare_cells(
    ops: NDArray[np.integer], accuracies: Floats, published: Mapping[int, Mapping[int, float]]
) -> dict[str, Any]:  # Any: JSON
    """Return Spearman's rho with NAS-Bench-201 at each of its epochs: its interval, and rho in the better half.

    Args:
        ops: (n_cells, 6) codes of the operations.
        accuracies: (n_cells,) validation accuracies in percent.
        published: published accuracies, as `read_cell_accuracies` returns them.
    """
    facts: dict[str, Any] = {"n_cells": len(accuracies)}  # Any: JSON
    for epoch, by_index in published.items():
        theirs = np.array([by_index[index] for index in nb201_indices(ops).tolist()])
        is_better = theirs >= np.median(theirs)
        facts[str(epoch)] = {
            **_rho(accuracies, theirs),
            "rho_better_half": known(spearman(accuracies[is_better], theirs[is_better])),
        }
    return facts


def read_cell_accuracies(path: Path) -> dict[int, dict[int, float]]:
    """Read NAS-Bench-201's accuracies on CIFAR-10: by epochs, then by the cell's index.

    Raises:
        MissingData: there is no such file.
        CorruptFile: it lacks a column, or a value is not a number in 0..100.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        accuracies = {
            epoch: {int(row["index"]): float(row[column]) for row in rows} for epoch, column in _CELL_COLUMNS.items()
        }
    except OSError as err:
        raise MissingData(f"{path} cannot be read: {err.strerror or err}; it holds NAS-Bench-201's accuracies") from err
    except (KeyError, TypeError, ValueError, csv.Error) as err:
        columns = ", ".join(["index", *_CELL_COLUMNS.values()])
        raise CorruptFile(f"{path} is not a table with the columns {columns}: {err}") from err
    for epoch, column in _CELL_COLUMNS.items():
        for index, value in accuracies[epoch].items():
            if not 0 <= value <= 100:
                raise CorruptFile(f"{path}: {column} must be in 0..100; it is {value} at index {index}")
    if missing := set(range(N_CELLS)) - set(next(iter(accuracies.values()))):
        raise CorruptFile(f"{path} lacks {len(missing):,} of {N_CELLS:,} cells, among them index {min(missing)}")
    return accuracies


def _rho(ours: Floats, real: Floats) -> dict[str, float | None]:
    """Return Spearman's rho with its 95 % bootstrap interval."""
    rho = bootstrap_agreement(spearman, ours, real, n_resamples=_N_RESAMPLES)
    return {"rho": known(rho.value), "rho_low": known(rho.low), "rho_high": known(rho.high)}


def _agreement(
    ours: Floats, real: Floats, groups: NDArray[np.int64], is_full: NDArray[np.bool_]
) -> dict[str, float | None]:
    """Return rho with its 95 % bootstrap interval, tau, tau within fidelity groups, and rho at full size."""
    return {
        **_rho(ours, real),
        "tau": known(kendall_tau(ours, real)),
        "tau_within_groups": known(kendall_tau_within(ours, real, groups)),
        "rho_full_size": known(spearman(ours[is_full], real[is_full])),
    }


def _marginal(values: NDArray[Any], ours: Floats, real: Floats) -> list[dict[str, Any]]:  # Any: of any key, JSON
    """Return mean accuracy for each value of a key, or each quarter of a continuous one."""
    members, labels = key_members(values, _N_BINS)
    return [
        {
            "value": label,
            "n_configs": int(is_in.sum()),
            "ours": round(float(ours[is_in].mean()), 2),
            "real": round(float(real[is_in].mean()), 2),
        }
        for i, label in enumerate(labels)
        if (is_in := members == i).any()
    ]


def key_members(values: NDArray[Any], n_bins: int) -> tuple[NDArray[np.intp], list[str]]:  # Any: of any key
    """Return which value of a key each config has, or which bin of a continuous one, and their labels."""
    if values.dtype.kind == "f" and len(np.unique(values)) > len(PARAMETERS["Resolution"].choices):
        edges = np.quantile(values, np.linspace(0, 1, n_bins + 1))
        members = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, n_bins - 1)
        return members, [f"{low:.2g} to {high:.2g}" for low, high in itertools.pairwise(edges)]
    levels, members = np.unique(values, return_inverse=True)
    return members, [str(level) for level in levels.tolist()]


def rank_shares(columns: Columns, accuracies: Floats) -> dict[str, float]:
    """Return the main effect of each key on ranks, a share of their variance, and one interaction; NaN: undefined."""
    ranks = scipy.stats.rankdata(accuracies)
    members = {key: key_members(values, _N_FINE_BINS)[0] for key, values in columns.items() if key != "Optimizer"}
    shares = {key: _explained(group, ranks) for key, group in members.items()}
    first, second = _INTERACTION
    joint = _explained(members[first] * _N_FINE_BINS + members[second], ranks)
    shares[f"{first} x {second}"] = joint - shares[first] - shares[second]
    return shares


def _explained(groups: NDArray[np.intp], ranks: Floats) -> float:
    """Return eta squared, adjusted for the number of groups (Ezekiel's formula); NaN where it is not defined."""
    _, groups = np.unique(groups, return_inverse=True)
    sizes = np.bincount(groups)
    total, n_free = float(np.sum((ranks - ranks.mean()) ** 2)), len(ranks) - len(sizes)
    if not total or n_free <= 0:
        return math.nan
    within = total - float(np.sum(sizes * (np.bincount(groups, ranks) / sizes - ranks.mean()) ** 2))
    return 1 - within / n_free * (len(ranks) - 1) / total


def _resolution(values: NDArray[Any], ours: Floats, real: Floats) -> dict[str, float | None]:  # Any: of any number
    low, high = values == PARAMETERS["Resolution"].choices[0], values == PARAMETERS["Resolution"].choices[-1]
    if not (low.any() and high.any()):
        return dict.fromkeys(("ours", "real", "ratio"))
    our_gain, real_gain = (float(accuracies[high].mean() - accuracies[low].mean()) for accuracies in (ours, real))
    return {"ours": our_gain, "real": real_gain, "ratio": known(our_gain / real_gain) if real_gain else None}


def known(value: float) -> float | None:
    """Return a finite number unchanged and None for any other, for JSON."""
    return float(value) if math.isfinite(value) else None
