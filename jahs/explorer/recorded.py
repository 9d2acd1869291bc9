"""The recorded runs as the columns that a page shows: configs, their metrics, and the curves of their trainings."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.explorer.arrays import Arrays
from jahs.files.runs import first_rows, is_timed, sorted_runs, timing_machine
from jahs.files.tables import Table
from jahs.models.cost import n_macs, n_params
from jahs.release import RecordedTable
from jahs.schema import COLUMNS, CONFIG_KEYS
from jahs.spaces.columns import codes
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES
from jahs.tasks.pareto import is_non_dominated

__all__ = ["MOST_RUNS", "recorded_columns"]

MOST_RUNS: Final = 4000
"""Trainings that a page holds; of more, those of the front and every k-th config are kept."""

_MOST_EPOCHS: Final = 25


def recorded_columns(table: RecordedTable, task: Task) -> tuple[dict[str, Any], Arrays] | None:  # Any: JSON
    """Return what is said of the recorded runs, and their arrays; every array has a row per config or per training.

    A config's metrics are means over its trainings that reached the last recorded epoch; NaN where there is none.
    Without any such training there is nothing to compare, and None is returned.
    """
    runs = dict(sorted_runs(table.runs))
    starts = first_rows(runs)
    ends = np.append(starts[1:], len(runs["epoch"])) - 1
    is_finished = runs["status"][ends] == "finished"
    at_end = ends[(runs["epoch"][ends] == runs["epoch"].max(initial=0)) & is_finished]
    is_known = np.ones(len(runs["epoch"]), np.bool_)
    is_known[ends] = is_finished  # the last row of another one is the epoch in which it diverged
    is_timed_row = is_timed(runs, timing_machine(runs, table.profile))
    for name, is_shown in {**dict.fromkeys(ACCURACIES, is_known), "runtime": is_timed_row}.items():
        runs[name] = np.where(is_shown, runs[name], np.float32(np.nan))
    ids = table.configs["config_id"]
    metrics = _metrics_of_configs(table, task, runs, at_end)
    n_full = int(np.isfinite(metrics["valid_acc"]).sum())
    if not n_full:
        return None
    kept = _kept(metrics, n_runs=len(starts))
    place = {config_id: i for i, config_id in enumerate(ids[kept].tolist())}
    chosen = [i for i, start in enumerate(starts) if int(runs["config_id"][start]) in place]
    epochs = _shown_epochs(runs)
    arrays = _configs({key: table.configs[key][kept] for key in CONFIG_KEYS})
    arrays |= {name: column[kept].astype(np.float32) for name, column in metrics.items() if np.isfinite(column).any()}
    arrays["config"] = np.array([place[int(runs["config_id"][starts[i]])] for i in chosen], np.uint32)
    for name in ACCURACIES:
        arrays[f"curve_{name}"] = _curves(runs, starts, chosen, runs[name], epochs)
    facts = {
        "n_configs": len(ids),
        "n_trainings": len(starts),
        "n_shown": len(kept),
        "n_unfinished": len(ids) - n_full,
        "epochs": epochs,
        "metrics": [name for name in metrics if name in arrays],
    }
    return facts, arrays


def _configs(columns: Table) -> dict[str, NDArray[np.generic]]:
    """Return a column for each key: places among its choices, or numbers."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for key, column in zip(CONFIG_KEYS, codes(columns).T, strict=True):
        choices = np.array(PARAMETERS[key].codes)
        arrays[key] = (column[:, None] == choices).argmax(axis=1).astype(np.uint8) if choices.size else column
    return arrays


def _metrics_of_configs(
    table: RecordedTable, task: Task, runs: Table, at_end: NDArray[np.intp]
) -> dict[str, NDArray[np.float64]]:
    ids = table.configs["config_id"]
    order = np.argsort(ids)
    of_config = order[np.searchsorted(ids[order], runs["config_id"][at_end])]
    metrics: dict[str, NDArray[np.float64]] = {}
    for name in (*ACCURACIES, "runtime"):
        values = runs[name][at_end].astype(np.float64)
        is_known = np.isfinite(values)
        total = np.bincount(of_config[is_known], values[is_known], len(ids))
        count = np.bincount(of_config[is_known], minlength=len(ids))
        metrics[name] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    metrics["latency"] = np.full(len(ids), np.nan)
    profiled = order[np.searchsorted(ids[order], table.profile["config_id"])]
    metrics["latency"][profiled] = table.profile["latency"]
    X = np.ones((len(ids), len(COLUMNS)), dtype=np.float32)
    X[:, :-1] = codes({key: table.configs[key] for key in CONFIG_KEYS})
    metrics["n_params"], metrics["n_macs"] = (cost(X, task).astype(np.float64) for cost in (n_params, n_macs))
    return metrics


def _kept(metrics: dict[str, NDArray[np.float64]], *, n_runs: int) -> NDArray[np.intp]:
    """Return the configs that are shown: all, or those of the front of accuracy and size and every k-th other."""
    n_configs = len(metrics["valid_acc"])
    every = -(-n_runs // MOST_RUNS)
    is_kept = np.arange(n_configs) % max(every, 1) == 0
    known = np.flatnonzero(np.isfinite(metrics["valid_acc"]))
    if every > 1 and known.size:
        points = np.column_stack([-metrics["valid_acc"][known], metrics["n_params"][known]])
        is_kept[known[is_non_dominated(points)]] = True
    return np.flatnonzero(is_kept)


def _shown_epochs(runs: Table) -> list[int]:
    epochs = np.unique(runs["epoch"])
    if epochs.size > _MOST_EPOCHS:
        epochs = epochs[np.unique(np.linspace(0, epochs.size - 1, _MOST_EPOCHS).round().astype(int))]
    found: list[int] = epochs.tolist()
    return found


def _curves(
    runs: Table, starts: NDArray[np.intp], chosen: list[int], values: NDArray[Any], epochs: list[int]
) -> NDArray[np.float32]:
    """Return what a metric was at each shown epoch of each chosen training, NaN where it was not measured."""
    training = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))
    row_of = np.full(len(starts), -1)
    row_of[chosen] = np.arange(len(chosen))
    column = np.minimum(np.searchsorted(epochs, runs["epoch"]), max(len(epochs) - 1, 0))
    is_shown = (row_of[training] >= 0) & (np.array(epochs)[column] == runs["epoch"]) if len(epochs) else []
    table = np.full((len(chosen), len(epochs)), np.nan, np.float32)
    table[row_of[training[is_shown]], column[is_shown]] = values[is_shown]
    return table.ravel()
