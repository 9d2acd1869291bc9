"""Small files in the formats of JAHS-Bench-201's archives, with a few trees and a few runs. All numbers are made up."""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.pickle_writer import Call, Joblib, Name, Obj, call, dumps

FEATURES = (
    *("Activation", "LearningRate", "N", "Op1", "Op2", "Op3", "Op4", "Op5", "Op6"),
    *("Optimizer", "Resolution", "TrivialAugment", "W", "WeightDecay", "epoch"),
)
ENCODED = ("Activation", "Op1", "Op2", "Op3", "Op4", "Op5", "Op6", "Optimizer", "TrivialAugment")
N_COLUMNS = 41
METRICS = ("FLOPS", "latency", "runtime", "size_MB", "test-acc", "train-acc", "valid-acc")
BOUNDS = {
    "FLOPS": (0.05, 220.0),
    "latency": (0.006, 114.0),
    "runtime": (3.0, 150_000.0),
    "size_MB": (0.005, 1.5),
    "test-acc": (5.0, 93.0),
    "train-acc": (6.0, 99.5),
    "valid-acc": (5.5, 92.5),
}
# Two thresholds within the range of each numeric column.
THRESHOLDS = {36: (0.02, 0.3), 37: (2.0, 4.0), 38: (0.3, 0.6), 39: (5.0, 10.0), 40: (1e-4, 2e-3), 41: (20.0, 120.0)}


def make_trees(n_trees: int, *, seed: int, depth: int = 3) -> list[dict[str, Any]]:
    """Return whole trees in the form of XGBoost 1.5's JSON."""
    rng = random.Random(seed)
    trees = []
    for number in range(n_trees):
        n_inner, n_nodes = 2**depth - 1, 2 ** (depth + 1) - 1
        features, conditions = [], []
        for node in range(n_nodes):
            if node < n_inner:
                feature = rng.randrange(N_COLUMNS)
                features.append(feature)
                conditions.append(rng.choice(THRESHOLDS.get(feature + 1, (0.5, 0.5))))
            else:
                features.append(0)
                conditions.append(rng.randrange(-900, 900) / 1024)  # exact in float32
        inner = range(n_inner)
        trees.append(
            {
                "base_weights": [0.0] * n_nodes,
                "categories": [],
                "categories_nodes": [],
                "categories_segments": [],
                "categories_sizes": [],
                "default_left": [True] * n_nodes,
                "id": number,
                "left_children": [2 * k + 1 for k in inner] + [-1] * (n_nodes - n_inner),
                "loss_changes": [0.0] * n_nodes,
                "parents": [2147483647] + [(k - 1) // 2 for k in range(1, n_nodes)],
                "right_children": [2 * k + 2 for k in inner] + [-1] * (n_nodes - n_inner),
                "split_conditions": conditions,
                "split_indices": features,
                "split_type": [0] * n_nodes,
                "sum_hessian": [1.0] * n_nodes,
                "tree_param": {
                    "num_deleted": "0",
                    "num_feature": str(N_COLUMNS),
                    "num_nodes": str(n_nodes),
                    "size_leaf_vector": "0",
                },
            }
        )
    return trees


def make_handle(trees: list[dict[str, Any]]) -> bytes:
    """Return the state of a Booster of XGBoost 1.5."""
    model = {
        "learner": {
            "attributes": {"best_iteration": str(len(trees) - 1), "best_ntree_limit": str(len(trees))},
            "feature_names": [],
            "feature_types": [],
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {"num_trees": str(len(trees)), "size_leaf_vector": "0"},
                    "tree_info": [0] * len(trees),
                    "trees": trees,
                },
                "name": "gbtree",
            },
            "learner_model_param": {"base_score": "5E-1", "num_class": "0", "num_feature": str(N_COLUMNS)},
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
        "version": [1, 5, 2],
    }
    config = {"learner": {"generic_param": {"n_jobs": "1"}}, "version": [1, 5, 2]}
    return json.dumps({"Config": config, "Model": model}, separators=(",", ":")).encode()


def make_pipeline(
    metric: str, trees: list[dict[str, Any]], *, slope: float, sparse: bool = False, margin: float = 1e-6
) -> Obj:
    """Return the fitted pipeline of one metric, as version 1 pickled it."""
    names = "jahs_bench.surrogate.utils", "CustomTransformFunctions"
    inverse = call("__builtin__", "getattr", Name(*names), "inverse_sigmoid")
    sigmoid = call("__builtin__", "getattr", Name(*names), "sigmoid")
    function = Obj(
        "sklearn.preprocessing._function_transformer",
        "FunctionTransformer",
        {
            "func": inverse,
            "inverse_func": sigmoid,
            "validate": False,
            "kw_args": {"k": slope},
            "inv_kw_args": {"k": slope},
            "_sklearn_version": "1.0.2",
        },
    )
    lower, upper = BOUNDS[metric]
    scaler = Obj(
        "sklearn.preprocessing._data",
        "MinMaxScaler",
        {
            "feature_range": (margin, 1 - margin),
            "copy": True,
            "n_samples_seen_": 5182,
            "data_min_": Joblib(np.array([lower])),
            "data_max_": Joblib(np.array([upper])),
        },
    )
    target = "sklearn.compose._target", "TransformedTargetRegressor"
    inner = Obj(*target, {"regressor": None, "transformer_": function, "regressor_": make_regressor(trees)})
    outer = Obj(*target, {"regressor": None, "transformer_": scaler, "_training_dim": 2, "regressor_": inner})
    steps = [("preprocess", make_encoder(sparse=sparse)), ("estimator", outer)]
    return Obj("sklearn.pipeline", "Pipeline", {"steps": steps, "memory": None, "verbose": False})


def make_old_pipeline(outputs: list[list[dict[str, Any]]]) -> Obj:
    """Return the fitted pipeline of several metrics, as it was before version 1."""
    regressors = [make_regressor(trees) for trees in outputs]
    multi_output = Obj("sklearn.multioutput", "MultiOutputRegressor", {"n_jobs": 1, "estimators_": regressors})
    steps = [("preprocess", make_encoder()), ("multiout", multi_output)]
    return Obj("sklearn.pipeline", "Pipeline", {"steps": steps, "memory": None, "verbose": False})


def make_regressor(trees: list[dict[str, Any]]) -> Obj:
    booster = Obj("xgboost.core", "Booster", {"handle": call("__builtin__", "bytearray", make_handle(trees))})
    settings = {"n_estimators": len(trees), "missing": math.nan, "_Booster": booster}
    return Obj("xgboost.sklearn", "XGBRegressor", settings)


def make_encoder(*, sparse: bool = False) -> Obj:
    categories = [["Hardswish", "Mish", "ReLU"], *[[0, 1, 2, 3, 4]] * 6, ["SGD"], [False, True]]
    arrays = [Joblib(_array(values)) for values in categories]
    drop = Joblib(np.array([None] * 8 + [0], dtype=object))
    one_hot = Obj(
        "sklearn.preprocessing._encoders",
        "OneHotEncoder",
        {
            "categories": "auto",
            "dtype": Name("numpy", "float64"),
            "drop": "if_binary",
            "categories_": arrays,
            "drop_idx_": drop,
        },
    )
    passthrough = [i for i, name in enumerate(FEATURES) if name not in ENCODED]
    state = {
        "remainder": "passthrough",
        "sparse_threshold": 0.3,
        "feature_names_in_": Joblib(np.array(FEATURES, dtype=object)),
        "sparse_output_": np.bool_(sparse),
        "transformers_": [("OneHotEncoder", one_hot, list(ENCODED)), ("remainder", "passthrough", passthrough)],
        "output_indices_": {"OneHotEncoder": slice(0, 35, None), "remainder": slice(35, 41, None)},
    }
    return Obj("sklearn.compose._column_transformer", "ColumnTransformer", state)


def make_params(metrics: tuple[str, ...]) -> dict[str, Any]:
    """Return params.pkl.gz's dict, a random state of ConfigSpace included."""
    kind = "CategoricalHyperparameter"
    parameter = call(
        "ConfigSpace.hyperparameters",
        f"__pyx_unpickle_{kind}",
        Name("ConfigSpace.hyperparameters", kind),
        58514084,
        None,
        state=({0, 1, 2}, ("ReLU", "Hardswish", "Mish"), [0, 1, 2], "ReLU", {}, "Activation", 0.0, 3, None),
    )
    keys = {"key": Joblib(np.arange(624, dtype=np.uint32)), "pos": 624}
    numbers = {"bit_generator": "MT19937", "state": keys, "has_gauss": 0, "gauss": 0.0}
    random_state = call("numpy.random._pickle", "__randomstate_ctor", "MT19937", state=numbers)
    space = Obj(
        "ConfigSpace.configuration_space",
        "ConfigurationSpace",
        {
            "name": "jahs",
            "_hyperparameters": call("collections", "OrderedDict"),
            "_first": parameter,
            "random": random_state,
        },
    )
    return {
        "estimators_per_output": 500,
        "hyperparams": {"booster": "gbtree", "max_depth": 3, "learning_rate": 0.3, "objective": "reg:squarederror"},
        "config_space": space,
        "label_headers": _index(metrics, joblib=True),
        "feature_headers": _index(FEATURES, joblib=True),
        "trained_": True,
    }


def write_surrogates(folder: Path, *, task: str = "cifar10", n_trees: int = 5) -> Path:
    """Write the files of every metric of a task; return the task's folder."""
    for number, metric in enumerate(METRICS):
        target = folder / "assembled_surrogates" / task / metric
        target.mkdir(parents=True)
        pipeline = make_pipeline(metric, make_trees(n_trees, seed=number), slope=0.25 * (number + 1))
        (target / "model.pkl.gz").write_bytes(gzip.compress(dumps(pipeline, 0), mtime=0))
        (target / "params.pkl.gz").write_bytes(gzip.compress(dumps(make_params((metric,)), 0), mtime=0))
    return folder / "assembled_surrogates" / task


def write_tar(folder: Path, path: Path) -> Path:
    """Pack a folder."""
    with tarfile.open(path, "w") as archive:
        archive.add(folder, arcname=folder.name)
    return path


def make_frame(columns: Mapping[tuple[str, str], np.ndarray], labels: np.ndarray | None = None) -> Obj:
    """Return a DataFrame of pandas 1.3 with these columns and row labels (None: 0, 1, ...)."""
    blocks = []
    for place, values in enumerate(columns.values()):
        new_block = Name("pandas.core.internals.blocks", "new_block")
        block = call("functools", "partial", new_block, state=(new_block, (), {"ndim": 2}, None))
        blocks.append(Call(block, (values[None], slice(place, place + 1, 1))))
    groups = sorted({group for group, _ in columns})
    names = sorted({name for _, name in columns})
    codes = [np.array([level.index(key[i]) for key in columns], np.int8) for i, level in enumerate((groups, names))]
    header = {"levels": [_index(groups), _index(names)], "codes": codes, "sortorder": None, "names": [None, None]}
    axis = call("pandas.core.indexes.base", "_new_Index", Name("pandas.core.indexes.multi", "MultiIndex"), header)
    n_rows = len(next(iter(columns.values())))
    if labels is None:
        rows: Any = {"name": None, "start": 0, "stop": n_rows, "step": 1}
        kind = Name("pandas.core.indexes.range", "RangeIndex")
    else:
        rows, kind = {"data": labels, "name": None}, Name("pandas.core.indexes.numeric", "Int64Index")
    index = call("pandas.core.indexes.base", "_new_Index", kind, rows)
    manager = call("pandas.core.internals.managers", "BlockManager", tuple(blocks), [axis, index])
    state = {"_mgr": manager, "_typ": "dataframe", "_metadata": [], "attrs": {}, "_flags": {}}
    return Obj("pandas.core.frame", "DataFrame", state)


def frame_bytes(columns: Mapping[tuple[str, str], np.ndarray], labels: np.ndarray | None = None) -> bytes:
    """Return a DataFrame's pickle, compressed."""
    return gzip.compress(dumps(make_frame(columns, labels), 4), mtime=0)


def tar_bytes(members: Mapping[str, bytes]) -> bytes:
    """Return an archive of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _index(names: Any, *, joblib: bool = False) -> Call:
    data = np.array(list(names), dtype=object)
    state = {"data": Joblib(data) if joblib else data, "name": None}
    return call("pandas.core.indexes.base", "_new_Index", Name("pandas.core.indexes.base", "Index"), state)


def _array(values: list) -> np.ndarray:
    return np.array(values, dtype=object if isinstance(values[0], str) else None)
