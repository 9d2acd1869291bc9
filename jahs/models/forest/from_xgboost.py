"""XGBoost's own model JSON, of versions 1.5 to 3.2, turned into a `Forest`. XGBoost itself is not needed.

A model is what `json.loads` makes of `Booster.save_raw("json")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidArgument, UnknownFormat
from jahs.models.forest.flat import MAX_DEPTH, Float32s, Forest, Int64s, Splits

# Objectives whose prediction is the plain sum of the leaves.
OBJECTIVES = frozenset(
    {"reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror"}
)

# Any: JSON, whose shape is what this module finds out.
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """The trees of all models, nodes one after the other; children are counted over all of them, -1 in a leaf."""

    n_features: int
    base_score: Float32s
    n_trees: Int64s  # of each model
    root: Int64s
    left: Int64s
    right: Int64s
    feature: Int64s
    condition: Float32s


def forest_from_xgboost(models: Sequence[Json]) -> Forest:
    """Pack single-output regression models over the same features into one `Forest`, in the order given.

    Answers equal those of `Booster.inplace_predict` on a CPU bit for bit.

    Raises:
        UnknownFormat: a model does more than sum the leaves of numerical trees (other boosters or objectives,
            categorical splits, several outputs, early stopping without a slice).
        CorruptFile: a model contradicts itself.
        InvalidArgument: no model, or models over different numbers of features.
    """
    trees = _concatenate(models)
    order, left_of = _breadth_first(trees)
    tree_start = np.searchsorted(left_of, np.arange(trees.root.size + 1)).astype(np.int64)
    is_leaf = trees.left[order] < 0
    condition = trees.condition[order]
    inner = ~is_leaf
    # Equal splits share one row of the table. Adding 0.0 makes -0.0 and 0.0, which compare alike, one.
    pairs = np.empty(inner.sum(), dtype=[("feature", np.uint16), ("threshold", np.float32)])
    pairs["feature"] = trees.feature[order][inner]
    pairs["threshold"] = condition[inner] + np.float32(0.0)
    table, split = np.unique(pairs, return_inverse=True)
    node_split: Splits = np.full(order.size, table.size, np.uint16)
    if table.size >= 2**16:
        node_split = np.full(order.size, table.size, np.uint32)
    node_split[inner] = split
    return Forest(
        n_features=trees.n_features,
        split_feature=np.ascontiguousarray(table["feature"]),
        split_threshold=np.ascontiguousarray(table["threshold"]),
        node_split=node_split,
        node_value=np.where(is_leaf, condition, np.float32(0.0)),
        tree_start=tree_start,
        forest_start=np.concatenate([[0], np.cumsum(trees.n_trees)]).astype(np.int64),
        base_score=trees.base_score,
    )


def _breadth_first(trees: Trees) -> tuple[Int64s, Int64s]:
    """Nodes tree by tree in breadth-first order, and the tree of each; nodes that no path reaches are dropped."""
    node, tree = trees.root, np.arange(trees.root.size)
    nodes, owners = [node], [tree]
    n_seen = node.size
    while node.size:
        inner = trees.left[node] >= 0
        node, tree = node[inner], np.repeat(tree[inner], 2)
        node = np.column_stack([trees.left[node], trees.right[node]]).ravel()
        n_seen += node.size
        if n_seen > trees.left.size or len(nodes) > MAX_DEPTH:
            raise CorruptFile(f"XGBoost model: a node has two parents, or a tree is deeper than {MAX_DEPTH}")
        nodes.append(node)
        owners.append(tree)
    all_nodes, all_owners = np.concatenate(nodes), np.concatenate(owners)
    if np.bincount(all_nodes).max(initial=0) > 1:
        raise CorruptFile("XGBoost model: a node has two parents")
    order = np.argsort(all_owners, kind="stable")
    return all_nodes[order], all_owners[order]


def _concatenate(models: Sequence[Json]) -> Trees:
    if not models:
        raise InvalidArgument("models is empty; give at least one XGBoost model")
    columns: dict[str, list[NDArray[np.generic]]] = {"left": [], "right": [], "feature": [], "condition": []}
    n_features, base_scores, n_trees, roots = [], [], [], []
    n_nodes = 0
    for number, model in enumerate(models):
        where = f"XGBoost model {number}"
        try:
            parameters, trees = _checked(model, where)
            base_scores.append(_number(parameters["base_score"]))
            n_features.append(int(parameters["num_feature"]))
            n_trees.append(len(trees))
            for k, tree in enumerate(trees):
                left, right, feature, condition = _columns(tree, n_features[-1], f"{where}, tree {k}")
                columns["left"].append(np.where(left < 0, -1, left + n_nodes))
                columns["right"].append(np.where(left < 0, -1, right + n_nodes))
                columns["feature"].append(feature)
                columns["condition"].append(condition)
                roots.append(n_nodes)
                n_nodes += left.size
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError) as err:
            if isinstance(err, (CorruptFile, UnknownFormat)):
                raise
            raise CorruptFile(f"{where}: not the JSON of an XGBoost model ({type(err).__name__}: {err})") from err
    if len(set(n_features)) > 1:
        raise InvalidArgument(f"models over different numbers of features: {n_features}; they must share the columns")
    whole = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in columns.items()}
    return Trees(
        n_features=n_features[0],
        base_score=np.array(base_scores, np.float32),
        n_trees=np.array(n_trees, np.int64),
        root=np.array(roots, np.int64),
        left=whole["left"].astype(np.int64),
        right=whole["right"].astype(np.int64),
        feature=whole["feature"].astype(np.int64),
        condition=whole["condition"].astype(np.float32),
    )


def _checked(model: Json, where: str) -> tuple[Json, Sequence[Json]]:
    """Return the model's parameters and trees, if a forest can hold them."""
    learner = model["learner"]
    parameters, booster = learner["learner_model_param"], learner["gradient_booster"]
    faults = []
    if booster["name"] != "gbtree":
        faults.append(f"booster {booster['name']!r}; only 'gbtree' is read")
    if learner["objective"]["name"] not in OBJECTIVES:
        faults.append(f"objective {learner['objective']['name']!r}; only {', '.join(sorted(OBJECTIVES))} are read")
    if int(parameters.get("num_class", 0)) > 1 or int(parameters.get("num_target", 1)) > 1:
        faults.append("several outputs; fit one model for each metric")
    if faults:
        raise UnknownFormat("\n".join(f"{where}: {fault}" for fault in faults))
    trees: Sequence[Json] = booster["model"]["trees"]
    n_parallel = int(booster["model"]["gbtree_model_param"].get("num_parallel_tree", 1)) or 1
    best = learner.get("attributes", {}).get("best_iteration")
    if best is not None and (int(best) + 1) * n_parallel != len(trees):
        raise UnknownFormat(
            f"{where}: stopped early at iteration {best} of {len(trees) // n_parallel}; "
            f"slice the booster first: booster[: {int(best) + 1}]"
        )
    return parameters, trees


def _columns(tree: Json, n_features: int, where: str) -> tuple[Int64s, Int64s, Int64s, Float32s]:
    if len(tree.get("categories") or ()) or np.any(tree.get("split_type", 0)):
        raise UnknownFormat(f"{where}: categorical splits; encode the categories as numbers first")
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise UnknownFormat(f"{where}: leaves with several outputs; fit one model for each metric")
    left, right = np.array(tree["left_children"], np.int64), np.array(tree["right_children"], np.int64)
    feature, condition = np.array(tree["split_indices"], np.int64), np.array(tree["split_conditions"], np.float64)
    inner = left >= 0
    sizes = {array.size for array in (left, right, feature, condition)}
    if len(sizes) > 1 or not left.size:
        raise CorruptFile(f"{where}: columns of {sorted(sizes)} nodes")
    if (np.maximum(left, right)[inner] >= left.size).any() or (right[inner] < 0).any() or (right[~inner] >= 0).any():
        raise CorruptFile(f"{where}: a child that does not exist")
    if ((feature[inner] < 0) | (feature[inner] >= n_features)).any():
        raise CorruptFile(f"{where}: a split on a feature that does not exist; there are {n_features}")
    with np.errstate(over="ignore"):  # a value beyond float32 becomes infinite, which the forest refuses
        return left, right, feature, condition.astype(np.float32)


def _number(text: str) -> np.float32:
    """base_score: "5E-1" until XGBoost 3.0, then a list of one, "[5E-1]"."""
    number: np.float32 = np.float32(float(text.strip().removeprefix("[").removesuffix("]")))
    return number
