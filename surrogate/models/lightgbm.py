"""A second family of models for the accuracies: LightGBM's trees in the flat format that answers queries.

Conclusions from one surrogate may be artefacts of its model; those that hold for another family of models are more
likely to hold for trainings. Rows, features and transform are the same as for the release's first family.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.adapters.importing import import_tool
from jahs.models.forest import forest_from_xgboost, open_engine
from surrogate.data.rows import Rows, features_of
from surrogate.models.model import Surrogate

ONE_THREAD: Final = {
    "objective": "regression",
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
}
"""Settings of every fit: a regression on one core, which gives the same trees again."""

_SETTINGS: Final = {
    **ONE_THREAD,
    "num_leaves": 31,
    "learning_rate": 0.05,
    "feature_fraction": 0.5,
    "min_data_in_leaf": 20,
    "lambda_l2": 1.0,
    "seed": 0,
}
_N_TREES: Final = 300


def fit_lightgbm(rows: Rows, first: Surrogate) -> Any:  # Any: LightGBM's types are partial
    """Fit a booster to rows of an accuracy, with the features and the transform of the first family's model."""
    lightgbm = import_tool("lightgbm", needs="lightgbm")
    F = features_of(rows.X, first.features, first.task)
    data = lightgbm.Dataset(F, first.transform.forward(rows.y), params={"verbosity": -1})
    return lightgbm.train(_SETTINGS, data, _N_TREES)


def predict_lightgbm(booster: Any, X: NDArray[np.float32], first: Surrogate) -> NDArray[np.float64]:
    """Return the answers of the flat forest of a booster for encoded rows, by the numpy engine."""
    engine = open_engine(forest_from_xgboost([as_xgboost(booster)]), "numpy")
    return first.transform.inverse(engine.predict(features_of(X, first.features, first.task))[:, 0])


def as_xgboost(booster: Any) -> dict[str, Any]:  # Any: LightGBM's types are partial; JSON
    """Return a booster of a regression as the JSON that `forest_from_xgboost` reads.

    LightGBM compares `x <= t` in float64, a forest `x < s` in float32: for every float32 x both are the same if s is
    the float32 after the last one up to t. Leaves are rounded to float32.
    """
    nodes = booster.trees_to_dataframe()
    is_leaf = nodes["left_child"].isna()
    assert (nodes["decision_type"][~is_leaf] == "<=").all(), "features are numbers"
    numbers = {name: number for number, name in enumerate(booster.feature_name())}
    places = dict(zip(nodes["node_index"], nodes.groupby("tree_index").cumcount(), strict=True))
    columns = {
        "left_children": [places.get(child, -1) for child in nodes["left_child"]],  # a leaf has none
        "right_children": [places.get(child, -1) for child in nodes["right_child"]],
        "split_indices": [numbers.get(name, 0) for name in nodes["split_feature"]],
        "split_conditions": np.where(is_leaf, nodes["value"], _first_above(nodes["threshold"])),
    }
    by_tree = nodes.assign(**columns).groupby("tree_index")[[*columns]]
    trees = [{"tree_param": {}, **tree.to_dict("list")} for _, tree in by_tree]
    return {
        "learner": {
            "learner_model_param": {"base_score": "0", "num_feature": str(len(numbers))},
            "objective": {"name": "reg:squarederror"},
            "gradient_booster": {"name": "gbtree", "model": {"gbtree_model_param": {}, "trees": trees}},
        }
    }


def _first_above(thresholds: ArrayLike) -> NDArray[np.float64]:
    """Return the smallest float32 above each number."""
    exact = np.asarray(thresholds, np.float64)
    near = exact.astype(np.float32)
    return np.where(near > exact, near, np.nextafter(near, np.float32(np.inf))).astype(np.float64)
