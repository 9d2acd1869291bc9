"""A release as typed arrays for the browser: its models, and the recorded runs."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.explorer.trace import feature_script
from jahs.files.runs import first_rows, is_timed, sorted_runs, timing_machine
from jahs.files.tables import Table
from jahs.models.cost import n_macs, n_params
from jahs.models.features import schedule
from jahs.models.features.builder import OF_CLASS
from jahs.models.features.cells import SIGNAL_FEATURES, cell_features, signal_features
from jahs.models.features.timing import SIZES
from jahs.models.forest import Forest
from jahs.models.noise.chance import quantile
from jahs.models.noise.spread import LEVELS, RATES, with_tail
from jahs.release import RecordedTable, Release
from jahs.schema import COLUMNS, CONFIG_KEYS, OPS, SIZE_KEYS
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, IDENTITY
from jahs.spaces.columns import codes
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES
from jahs.tasks.pareto import is_non_dominated

Arrays: TypeAlias = "Mapping[str, NDArray[np.generic]]"

_WORD: Final = 8  # bytes; a typed array begins at a multiple of its item's size


def pack_arrays(arrays: Arrays, *, compressed: bool) -> tuple[dict[str, Any], str]:  # Any: JSON
    """Return the position of each array, as {name: [type, first byte, length]}, and all arrays in base64."""
    places: dict[str, Any] = {}
    whole = bytearray()
    for name, array in arrays.items():
        places[name] = [f"{array.dtype.name.capitalize()}Array", len(whole), array.size]  # JavaScript's name of a type
        whole += array.astype(array.dtype.newbyteorder("<")).tobytes()
        whole += bytes(-len(whole) % _WORD)
    return places, base64.b64encode(gzip.compress(whole, 9, mtime=0) if compressed else whole).decode()


LEVEL: Final = 0.9
"""Share of trainings inside a predictive band."""


def model_parts(release: Release) -> tuple[dict[str, Any], Arrays, str]:  # Any: JSON
    """Return the facts of the models, their arrays, and the script that computes their features."""
    models = release.models
    script, names = feature_script([pack.features for pack in models.packs])
    facts = {
        "metrics": {
            name: {
                "pack": model.pack,
                "forest": model.forest,
                "per_epoch": model.target == "per_epoch",
                "transform": None if model.transform is None else asdict(model.transform),
            }
            for name, model in models.metrics.items()
        },
        "widths": [len(pack.features.columns) for pack in models.packs],
        "facts": names,
        "schedule": schedule(release.task.max_epoch),
        "band": _band(release),
    }
    arrays = dict(fact_arrays(names, release.task))
    for i, forest in enumerate(release.forests):
        arrays |= {f"forest{i}_{name}": array for name, array in _forest_arrays(forest).items()}
    return facts, arrays, script


def fact_arrays(names: Iterable[str], task: Task) -> Arrays:
    """Return the lookup arrays of exact costs and of cells' facts, each as positions among at most 65,536 values."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for name in names:
        values, places = np.unique(_fact(name), return_inverse=True)
        arrays[f"{name}_codes"] = places.astype(np.uint8 if values.size <= 2**8 else np.uint16)
        arrays[f"{name}_values"] = values
    return {**arrays, **_costs(task)}


def _fact(name: str) -> NDArray[np.float64]:
    """Return a fact of every cell; a fact of the signal is returned for each depth of networks."""
    plain, canonical = name.removesuffix(OF_CLASS), name.endswith(OF_CLASS)
    if plain not in SIGNAL_FEATURES:
        return cell_features(canonical=canonical)[plain].astype(np.float64)
    depths = [int(n) for n in PARAMETERS["N"].codes]
    return np.concatenate([signal_features(n, canonical=canonical)[plain] for n in depths])


def _costs(task: Task) -> Arrays:
    """Return exact costs by size and by the cell's numbers of 3x3 and 1x1 convolutions, 7 times 7 for each size."""
    most = len(OPS) + 1
    tables = {name: np.zeros((len(SIZES), most, most)) for name in ("n_params", "n_macs")}
    for (i, size), n3, n1 in product(enumerate(SIZES), range(most), range(most)):
        if n3 + n1 < most:
            X = np.ones((1, len(COLUMNS)), np.float32)
            X[0, [COLUMNS.index(key) for key in SIZE_KEYS]] = size
            ops = [CONV3X3] * n3 + [CONV1X1] * n1 + [IDENTITY] * (most - 1 - n3 - n1)
            X[0, [COLUMNS.index(op) for op in OPS]] = ops
            for name, formula in (("n_params", n_params), ("n_macs", n_macs)):
                tables[name][i, n3, n1] = formula(X, task)[0]
    return {name: table.ravel() for name, table in tables.items()}


def _forest_arrays(forest: Forest) -> dict[str, NDArray[np.generic]]:
    is_leaf = forest.node_split == forest.n_splits
    return {
        "split_feature": forest.split_feature,
        "split_threshold": forest.split_threshold,
        "node_split": forest.node_split,
        "leaf_value": forest.node_value[is_leaf],
        "tree_start": forest.tree_start.astype(np.int32),
        "forest_start": forest.forest_start.astype(np.int32),
        "base_score": forest.base_score,
    }


def _band(release: Release) -> dict[str, Any] | None:  # Any: JSON
    """Return the predictive band of one more training; None if the release has no noise."""
    if release.noise is None:
        return None
    spreads = {name: kinds["outcome"] for name, kinds in release.noise.accuracies.items()}
    g = quantile((1 + LEVEL) / 2)
    return {
        "level": LEVEL,
        "levels": LEVELS,
        "rates": RATES,
        "metrics": {name: {**asdict(spread), "shift": with_tail(g, spread.tail)} for name, spread in spreads.items()},
    }


MOST_RUNS: Final = 4000
"""Maximum number of trainings on a page; beyond it, only the front and every k-th config are kept."""

_MOST_EPOCHS: Final = 25


def recorded_columns(table: RecordedTable, task: Task) -> tuple[dict[str, Any], Arrays] | None:  # Any: JSON
    """Return the facts of the recorded runs, and their arrays; every array has a row per config or per training.

    A config's metrics are means over its trainings that reached the last recorded epoch; NaN without such a training.
    If no config has one, there is nothing to compare, and None is returned.
    """
    runs = dict(sorted_runs(table.runs))
    starts = first_rows(runs)
    lengths = np.diff(np.append(starts, len(runs["epoch"])))
    ends = starts + lengths - 1
    is_finished = runs["status"][ends] == "finished"
    at_end = ends[(runs["epoch"][ends] == runs["epoch"].max(initial=0)) & is_finished]
    is_known = np.ones(len(runs["epoch"]), np.bool_)
    is_known[ends] = is_finished  # an unfinished training diverged in its last row
    is_timed_row = is_timed(runs, timing_machine(runs, table.profile))
    for name, is_shown in {**dict.fromkeys(ACCURACIES, is_known), "runtime": is_timed_row}.items():
        runs[name] = np.where(is_shown, runs[name], np.float32(np.nan))
    ids = table.configs["config_id"]
    metrics = _metrics_of_configs(table, task, runs, at_end)
    n_full = int(np.isfinite(metrics["valid_acc"]).sum())
    if not n_full:
        return None
    shown = _shown_configs(metrics, n_runs=len(starts))
    position = {config_id: i for i, config_id in enumerate(ids[shown].tolist())}
    config_ids = runs["config_id"][starts].tolist()
    trainings = [i for i, config_id in enumerate(config_ids) if config_id in position]
    training = np.repeat(np.arange(len(starts)), lengths)
    epochs = _shown_epochs(runs)
    arrays = _configs({key: table.configs[key][shown] for key in CONFIG_KEYS})
    arrays |= {name: column[shown].astype(np.float32) for name, column in metrics.items() if np.isfinite(column).any()}
    arrays["config"] = np.array([position[config_ids[i]] for i in trainings], np.uint32)
    is_shown = np.isin(runs["epoch"], epochs)
    for name in ACCURACIES:  # each training at the shown epochs; NaN where it was not measured
        curves = np.full((len(starts), len(epochs)), np.nan, np.float32)
        curves[training[is_shown], np.searchsorted(epochs, runs["epoch"][is_shown])] = runs[name][is_shown]
        arrays[f"curve_{name}"] = curves[trainings].ravel()
    facts = {
        "n_configs": len(ids),
        "n_trainings": len(starts),
        "n_shown": len(shown),
        "n_unfinished": len(ids) - n_full,
        "epochs": epochs,
        "metrics": [name for name in metrics if name in arrays],
    }
    return facts, arrays


def _configs(columns: Table) -> dict[str, NDArray[np.generic]]:
    """Return a column for each key: positions among its choices, or numbers."""
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
    row_of_config = order[np.searchsorted(ids[order], runs["config_id"][at_end])]
    metrics: dict[str, NDArray[np.float64]] = {}
    for name in (*ACCURACIES, "runtime"):
        values = runs[name][at_end].astype(np.float64)
        is_known = np.isfinite(values)
        total = np.bincount(row_of_config[is_known], values[is_known], len(ids))
        count = np.bincount(row_of_config[is_known], minlength=len(ids))
        metrics[name] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    metrics["latency"] = np.full(len(ids), np.nan)
    profiled = order[np.searchsorted(ids[order], table.profile["config_id"])]
    metrics["latency"][profiled] = table.profile["latency"]
    X = encode({key: table.configs[key] for key in CONFIG_KEYS}, 1)
    metrics["n_params"], metrics["n_macs"] = (cost(X, task).astype(np.float64) for cost in (n_params, n_macs))
    return metrics


def _shown_configs(metrics: dict[str, NDArray[np.float64]], *, n_runs: int) -> NDArray[np.intp]:
    """Return the configs to show: all, or the front of accuracy and size, and every k-th of the other configs."""
    n_configs = len(metrics["valid_acc"])
    step = -(-n_runs // MOST_RUNS)
    is_shown = np.arange(n_configs) % max(step, 1) == 0
    known = np.flatnonzero(np.isfinite(metrics["valid_acc"]))
    if step > 1 and known.size:
        points = np.column_stack([-metrics["valid_acc"][known], metrics["n_params"][known]])
        is_shown[known[is_non_dominated(points)]] = True
    return np.flatnonzero(is_shown)


def _shown_epochs(runs: Table) -> list[int]:
    epochs = np.unique(runs["epoch"])
    if epochs.size > _MOST_EPOCHS:
        epochs = epochs[np.unique(np.linspace(0, epochs.size - 1, _MOST_EPOCHS).round().astype(int))]
    return list(epochs.tolist())
