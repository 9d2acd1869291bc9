"""Forests and rows for the tests, and the answer spelled out."""

from __future__ import annotations

import json
import mmap

import numpy as np

from jahs.models.forest import Forest, map_forest, parse_forest


def random_forest(rng, *, n_features=4, trees=(3, 9, 0), max_depth=5, n_values=6, p_inner=0.7) -> Forest:
    """Trees of random shape. Thresholds are small integers, so that rows of small integers meet them exactly."""
    pairs = [(f, t) for f in range(n_features) for t in range(n_values)]
    n_splits = len(pairs)
    node_split, sizes = [], []
    for _ in range(sum(trees)):
        width, n_nodes = 1, 0
        for depth in range(max_depth + 1):
            inner = rng.random(width) < (p_inner if depth < max_depth else 0)
            node_split.append(np.where(inner, rng.integers(0, n_splits, width), n_splits))
            n_nodes += width
            width = 2 * inner.sum()
        sizes.append(n_nodes)
    node_split = np.concatenate(node_split) if node_split else np.empty(0)
    values = rng.normal(size=node_split.size).astype(np.float32)
    return Forest(
        n_features=n_features,
        split_feature=np.array([f for f, _ in pairs], np.uint16),
        split_threshold=np.array([t for _, t in pairs], np.float32),
        node_split=node_split.astype(np.uint16 if n_splits < 2**16 else np.uint32),
        node_value=np.where(node_split == n_splits, values, np.float32(0)),
        tree_start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        forest_start=np.concatenate([[0], np.cumsum(trees)]).astype(np.int64),
        base_score=rng.normal(size=len(trees)).astype(np.float32),
    )


def load_forest(path) -> Forest:
    """The forest of an npz, which a release reads through its manifest."""
    return parse_forest(path, path.read_bytes())


def load_mapped_forest(folder) -> Forest:
    """The forest of a folder, mapped as a release's manifest maps it."""

    def mapped(path):
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    return map_forest(folder, mapped)


def random_rows(rng, n_rows, *, n_features=4, n_values=6):
    return rng.integers(-1, n_values + 1, (n_rows, n_features)).astype(np.float32)


def spelled_out(forest: Forest, X):
    """The definition, node by node: left if less, then float32 additions in the order of the trees."""
    out = np.empty((len(X), forest.n_forests), np.float32)
    for r, row in enumerate(X):
        for k in range(forest.n_forests):
            total = forest.base_score[k]
            for t in range(forest.forest_start[k], forest.forest_start[k + 1]):
                splits = forest.node_split[forest.tree_start[t] : forest.tree_start[t + 1]]
                node = 0
                while (s := splits[node]) < forest.n_splits:
                    left = 1 + 2 * np.count_nonzero(splits[:node] < forest.n_splits)
                    node = left if row[forest.split_feature[s]] < forest.split_threshold[s] else left + 1
                total = np.float32(total + forest.node_value[forest.tree_start[t] + node])
            out[r, k] = total
    return out


def fit(X, y, n_rounds=20, **parameters):
    """A fitted booster."""
    import xgboost

    settings = {"nthread": 1, "tree_method": "hist", "max_depth": 4, **parameters}
    return xgboost.train(settings, xgboost.DMatrix(X, y, nthread=1), n_rounds)


def as_json(booster):
    return json.loads(bytes(booster.save_raw("json")))
