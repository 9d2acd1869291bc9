"""XGBoost's own model JSON, of versions 1.5 to 3.2, turned into a `Forest`. XGBoost itself is not needed.

A model is what `json.loads` makes of `Booster.save_raw("json")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidArgument, UnknownFormat
from jahs.models.forest.flat import MAX_DEPTH, Float32s, Forest, Int64s, Splits, join_forests

# Objectives whose prediction is the plain sum of the leaves.
OBJECTIVES = frozenset(
    {"reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror"}
)

_NO_NODES = (*(np.empty(0, np.int64) for _ in range(3)), np.empty(0, np.float32))

# Any: JSON, whose shape is what this module finds out.
Json = Mapping[str, Any]


def forest_from_xgboost(models: Sequence[Json]) -> Forest:
    """Pack single-output regression models over the same features into one `Forest`, in the order given.

    Answers are bit for bit equal to `Booster.inplace_predict` on a CPU.

    Raises:
        UnknownFormat: a model is more than a sum over the leaves of numerical trees (other boosters or objectives,
            categorical splits, several outputs, early stopping without a slice).
        CorruptFile: a model contradicts itself.
        InvalidArgument: no model, or models over different numbers of features.
    """
    if not models:
        raise InvalidArgument("models is empty; give at least one XGBoost model")
    forests = [_forest_of(model, f"XGBoost model {number}") for number, model in enumerate(models)]
    n_features = [forest.n_features for forest in forests]
    if len(set(n_features)) > 1:
        raise InvalidArgument(f"models over different numbers of features: {n_features}; they must share the columns")
    return join_forests(forests, [range(n) for n in n_features], n_features=n_features[0])


def _forest_of(model: Json, where: str) -> Forest:
    try:
        parameters, trees = _checked(model, where)
        # "5E-1" until XGBoost 3.0, then a list of one, "[5E-1]".
        base_score = float(parameters["base_score"].strip().removeprefix("[").removesuffix("]"))
        n_features = int(parameters["num_feature"])
        columns = [_columns(tree, n_features, f"{where}, tree {k}") for k, tree in enumerate(trees)]
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError) as err:
        if isinstance(err, (CorruptFile, UnknownFormat)):
            raise
        raise CorruptFile(f"{where}: not the JSON of an XGBoost model ({type(err).__name__}: {err})") from err
    n_nodes = [left.size for left, *_ in columns]
    root = np.cumsum([0, *n_nodes])[:-1]
    parts = zip(_NO_NODES, *columns, strict=True)
    left, right, feature, condition = (np.concatenate(part) for part in parts)
    first = np.repeat(root, n_nodes)
    order, tree_of = _breadth_first(root, left + first, right + first, is_leaf=left < 0)
    is_leaf, condition = left[order] < 0, condition[order]
    # Equal splits share one row of the table. Adding 0.0 makes -0.0 and 0.0, which compare alike, one.
    pairs = np.empty((~is_leaf).sum(), dtype=[("feature", np.uint16), ("threshold", np.float32)])
    pairs["feature"] = feature[order][~is_leaf]
    pairs["threshold"] = condition[~is_leaf] + np.float32(0.0)
    table, split = np.unique(pairs, return_inverse=True)
    node_split: Splits = np.full(order.size, table.size, np.uint32)
    if table.size < 2**16:
        node_split = node_split.astype(np.uint16)
    node_split[~is_leaf] = split
    return Forest(
        n_features=n_features,
        split_feature=np.ascontiguousarray(table["feature"]),
        split_threshold=np.ascontiguousarray(table["threshold"]),
        node_split=node_split,
        node_value=np.where(is_leaf, condition, np.float32(0.0)),
        tree_start=np.searchsorted(tree_of, np.arange(len(trees) + 1)).astype(np.int64),
        forest_start=np.array([0, len(trees)], np.int64),
        base_score=np.array([base_score], np.float32),
    )


def _breadth_first(root: Int64s, left: Int64s, right: Int64s, *, is_leaf: NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Return nodes, tree by tree in breadth-first order, and each node's tree; unreachable nodes are dropped."""
    node, tree = root, np.arange(root.size)
    nodes, owners = [node], [tree]
    n_seen = node.size
    while node.size:
        inner = ~is_leaf[node]
        node, tree = node[inner], np.repeat(tree[inner], 2)
        node = np.column_stack([left[node], right[node]]).ravel()
        n_seen += node.size
        if n_seen > left.size or len(nodes) > MAX_DEPTH:
            raise CorruptFile(f"XGBoost model: a node has two parents, or a tree is deeper than {MAX_DEPTH}")
        nodes.append(node)
        owners.append(tree)
    all_nodes, all_owners = np.concatenate(nodes), np.concatenate(owners)
    if np.bincount(all_nodes).max(initial=0) > 1:
        raise CorruptFile("XGBoost model: a node has two parents")
    order = np.argsort(all_owners, kind="stable")
    return all_nodes[order], all_owners[order]


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
