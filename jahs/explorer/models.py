"""The models of a release as arrays and numbers for the browser: forests, facts of all cells, costs, spreads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.explorer.arrays import Arrays, as_codes
from jahs.explorer.trace import OF_CLASS, feature_script
from jahs.models.cost import n_macs, n_params
from jahs.models.features import schedule
from jahs.models.features.cells import SIGNAL_FEATURES, cell_features, signal_features
from jahs.models.features.timing import SIZE_KEYS, SIZES
from jahs.models.forest import Forest
from jahs.models.noise.chance import quantile
from jahs.models.noise.spread import LEVELS, RATES, with_tail
from jahs.release import Release
from jahs.schema import COLUMNS, OPS
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, IDENTITY
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import Task

__all__ = ["LEVEL", "fact_arrays", "model_parts"]

LEVEL: Final = 0.9
"""Share of trainings that a predictive band holds."""


def model_parts(release: Release) -> tuple[dict[str, Any], Arrays, str]:  # Any: JSON
    """Return what is said of the models, their arrays, and the script that computes their features."""
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
    """Return the arrays in which facts of a cell and exact costs are looked up."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for name in names:
        arrays[f"{name}_codes"], arrays[f"{name}_values"] = as_codes(_fact(name))
    return {**arrays, **_costs(task)}


def _fact(name: str) -> NDArray[np.float64]:
    """Return a fact of every cell; of the signal, for each depth of networks."""
    plain, canonical = name.removesuffix(OF_CLASS), name.endswith(OF_CLASS)
    if plain not in SIGNAL_FEATURES:
        return cell_features(canonical=canonical)[plain].astype(np.float64)
    depths = [int(n) for n in PARAMETERS["N"].codes]
    return np.concatenate([signal_features(n, canonical=canonical)[plain] for n in depths])


def _costs(task: Task) -> Arrays:
    """Return exact costs by size and by how many 3x3 and 1x1 convolutions the cell has, 7 times 7 for each size."""
    most = len(OPS) + 1
    tables = {name: np.zeros((len(SIZES), most, most)) for name in ("n_params", "n_macs")}
    for (i, size), n3, n1 in product(enumerate(SIZES), range(most), range(most)):
        if n3 + n1 < most:
            X = np.ones((1, len(COLUMNS)), np.float32)
            X[0, [COLUMNS.index(key) for key in SIZE_KEYS]] = size
            X[0, [COLUMNS.index(op) for op in OPS]] = (
                [CONV3X3] * n3 + [CONV1X1] * n1 + [IDENTITY] * (most - 1 - n3 - n1)
            )
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
    """Return how far one more training may be from the prediction; None if the release has no noise."""
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
