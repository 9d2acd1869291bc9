"""How fast a benchmark answers, beside the code path of JAHS-Bench-201 on the same forests.

That path is a one-row DataFrame, a ColumnTransformer with a OneHotEncoder, a TransformedTargetRegressor and an
XGBRegressor, once per metric; what scikit-learn can check less, it is told to. Both answer 7 metrics with 500 trees of
depth 6 each, fitted here on made-up labels, and their answers are compared before anything is timed. A release of this
project (5 learned metrics over three feature sets, 2 exact ones) is timed besides: the embedded one, or `--release`, or
one that is fitted here. If it has LightGBM models, too, they may take at most five times as long.

Everything is measured in one process, in CPU time, in alternating blocks over 2,000 different configs; printed are
medians over the blocks, warm. The cold figure is a fresh process from its start to its first answer.

    python -m tests.benchmarks.bench_query
    python -m tests.benchmarks.bench_query --block 100 --rounds 3
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
import xgboost
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder

import jahs
from jahs.models.bounds import BoundedTransform
from jahs.models.features import FeatureBuilder, RowBuilder, feature_set, joint_columns, joint_times
from jahs.models.forest import forest_from_xgboost, join_forests, open_engine
from jahs.release import MetricModel, Models, Pack, read_release, releases, write_release
from jahs.schema import COLUMNS, OPS
from jahs.spaces.columns import codes as codes_of
from jahs.tasks.definitions import TASKS
from tests.benchmarks.blocks import measured
from tests.benchmarks.fresh import in_fresh_processes

N_CONFIGS = 2000
N_FIT = 20_000
MARGIN = 1e-6
PUBLISHED = ("n_macs", "latency", "runtime", "n_params", "test_acc", "train_acc", "valid_acc")
CATEGORICAL = ["Activation", *OPS, "Optimizer", "TrivialAugment"]
MOST_TIMES = 5.0  # of the time of a release's own models, for its LightGBM models
SIZES = (1, 10, 100, 1000, 10_000, 100_000)
COLD = """
import json, re, time
from pathlib import Path
import jahs
bench = jahs.Benchmark({task!r}, release={folder!r})
answer = bench.query(bench.sample(seed=0)).as_dict()
status = Path("/proc/self/status")  # getrusage would count what the parent had before exec
peak = int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) / 1024 if status.exists() else None
print(json.dumps([time.process_time(), peak]))
"""


def labels(X: np.ndarray, seed: int) -> np.ndarray:
    """Made-up targets in 0..100 with interactions and noise, so that trees grow as deep as they may."""
    rng = np.random.default_rng(seed)
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    hidden = np.tanh(Z @ rng.normal(size=(Z.shape[1], 12)) / 4)
    y = hidden @ rng.normal(size=12) + Z[:, -1] * hidden[:, 0] + rng.normal(0, 0.2, len(Z))
    return 100 / (1 + np.exp(-y))


def frame(columns: Mapping[str, np.ndarray], epochs: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({**{name: columns[name] for name in COLUMNS[:-1]}, "epoch": epochs})


def logit(s: np.ndarray) -> np.ndarray:
    return np.log(s / (1 - s))


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def published_model(n_trees: int, depth: int) -> Pipeline:
    """The structure of a published surrogate: encoder, two nested target transforms, booster."""
    booster = xgboost.XGBRegressor(n_estimators=n_trees, max_depth=depth, learning_rate=0.1, n_jobs=1)
    inner = TransformedTargetRegressor(booster, transformer=FunctionTransformer(logit, sigmoid, check_inverse=False))
    outer = TransformedTargetRegressor(inner, transformer=MinMaxScaler((MARGIN, 1 - MARGIN)))
    encoder = OneHotEncoder(drop="if_binary", sparse_output=False)
    columns = ColumnTransformer([("categories", encoder, CATEGORICAL)], remainder="passthrough")
    return Pipeline([("preprocess", columns), ("estimator", outer)])


def fit_published(folder: Path, n_trees: int, depth: int) -> dict[str, Pipeline]:
    """Fit the published pipelines, and write a release of the same boosters."""
    task, features = TASKS["cifar10"], feature_set("published")
    columns = jahs.space().sample_columns(N_FIT, seed=0)
    epochs = np.random.default_rng(0).integers(1, task.max_epoch + 1, N_FIT)
    X, table = jahs.encode(columns, epochs), frame(columns, epochs)
    pipelines, entries, boosters = {}, {}, []
    for i, name in enumerate(PUBLISHED):
        y = labels(X, seed=i)
        pipelines[name] = published_model(n_trees, depth).fit(table, y)
        boosters.append(pipelines[name]["estimator"].regressor_.regressor_.get_booster())
        transform = BoundedTransform(lower=y.min(), upper=y.max(), margin=MARGIN, published=True)
        entries[name] = MetricModel(pack=0, forest=i, transform=transform)
    models = [json.loads(bytes(booster.save_raw("json"))) for booster in boosters]
    write_release(
        folder,
        manifest_facts={"task": task.name, "version": "made up"},
        models=Models(costs="published", packs=(Pack(file="forests-0", features=features),), metrics=entries),
        forests=[forest_from_xgboost(models)],
    )
    return pipelines


def fit_release(folder: Path, n_trees: int, depth: int) -> None:
    """Write a release shaped like this project's releases, fitted on made-up labels."""
    task = TASKS["fashion_mnist_mini"]
    columns = jahs.space().sample_columns(N_FIT, seed=0)
    X = jahs.encode(columns, np.random.default_rng(0).integers(1, task.max_epoch + 1, N_FIT))
    packs, forests, entries = [], [], {}
    by_features = {
        "accuracy": ("train_acc", "valid_acc", "test_acc"),
        "latency": ("latency",),
        "epoch_time": ("runtime",),
    }
    for place, (features, names) in enumerate(by_features.items()):
        F = FeatureBuilder(feature_set(features), task).build(X)
        fitted = []
        for i, name in enumerate(names):
            y = labels(X, seed=10 * place + i)
            transform = BoundedTransform(lower=0.0, upper=100.0)
            settings = {"max_depth": depth, "eta": 0.1, "nthread": 1, "tree_method": "hist"}
            booster = xgboost.train(settings, xgboost.DMatrix(F, transform.forward(y), nthread=1), n_trees)
            fitted.append(json.loads(bytes(booster.save_raw("json"))))
            target = "per_epoch" if name == "runtime" else "value"
            entries[name] = MetricModel(pack=place, forest=i, transform=transform, target=target)
        packs.append(Pack(file=f"forests-{place}.npz", features=feature_set(features)))
        forests.append(forest_from_xgboost(fitted))
    write_release(
        folder,
        manifest_facts={"task": task.name, "version": "made up"},
        models=Models(costs="exact", packs=tuple(packs), metrics=entries),
        forests=forests,
    )


def compare_published(folder: Path, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Single queries and trajectories of 7 forests: ours on both engines, and the path of JAHS-Bench-201."""
    pipelines = fit_published(folder, arguments.trees, arguments.depth)
    sklearn.set_config(assume_finite=True, skip_parameter_validation=True)
    benches = {kind: jahs.Benchmark("cifar10", release=folder, engine=kind) for kind in ("compiled", "numpy")}
    configs = jahs.space().sample(N_CONFIGS, seed=1)
    order = list(COLUMNS)

    def as_published(i: int) -> dict[str, float]:
        row = pd.DataFrame([{**configs[i % N_CONFIGS], "epoch": 200}])[order]
        return {name: float(pipeline.predict(row)[0]) for name, pipeline in pipelines.items()}

    for i in range(20):
        theirs = as_published(i)
        for bench in benches.values():
            ours = bench.query(configs[i], at=200).as_dict()
            np.testing.assert_allclose([ours[name] for name in theirs], list(theirs.values()), rtol=1e-4)
    many = arguments.block
    ways: dict[str, Callable[[int], object]] = {
        kind: lambda i, bench=bench: bench.query(configs[i % N_CONFIGS], at=200).as_dict()
        for kind, bench in benches.items()
    }
    walks: dict[str, Callable[[int], object]] = {
        kind: lambda i, bench=bench: bench.trajectory(configs[i % N_CONFIGS]) for kind, bench in benches.items()
    }
    n = dict.fromkeys((*ways, "JAHS-Bench-201"), many)
    return {
        "7 metrics, one query": measured({**ways, "JAHS-Bench-201": as_published}, n=n, n_rounds=arguments.rounds),
        "7 metrics, 200 epochs": measured(walks, n=dict.fromkeys(walks, many // 10), n_rounds=arguments.rounds),
    }


def compare_release(task: str, folder: Path, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Single queries, trajectories and batches of a release of this project."""
    benches = {kind: jahs.Benchmark(task, release=folder, engine=kind) for kind in ("compiled", "numpy")}
    configs = jahs.space().sample(N_CONFIGS, seed=1)
    epochs = (np.arange(N_CONFIGS) % benches["numpy"].max_epoch + 1).tolist()
    ways: dict[str, Callable[[int], object]] = {
        kind: lambda i, bench=bench: bench.query(configs[i % N_CONFIGS], at=epochs[i % N_CONFIGS]).as_dict()
        for kind, bench in benches.items()
    }
    walks: dict[str, Callable[[int], object]] = {
        kind: lambda i, bench=bench: bench.trajectory(configs[i % N_CONFIGS]) for kind, bench in benches.items()
    }
    many = arguments.block
    names = len(benches["numpy"].metrics)
    seconds = {
        f"release, {names} metrics, one query": measured(ways, n=dict.fromkeys(ways, many), n_rounds=arguments.rounds),
        f"release, {names} metrics, trajectory": measured(
            walks, n=dict.fromkeys(walks, many // 10), n_rounds=arguments.rounds
        ),
    }
    if read_release(folder).has("lightgbm.json"):
        seconds |= second_family(task, folder, arguments)
    return seconds | batches(task, folder, benches, arguments)


def second_family(task: str, folder: Path, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Single queries and a batch of a release's own models and of its LightGBM models, which must not be far slower."""
    configs, batch = jahs.space().sample(N_CONFIGS, seed=1), jahs.space().sample_columns(1000, seed=2)
    benches = {
        f"{'LightGBM ' if model else ''}{engine}": jahs.Benchmark(task, release=folder, engine=engine, model=model)
        for engine in ("compiled", "numpy")
        for model in (None, "lightgbm")
    }
    single: dict[str, Callable[[int], object]] = {
        name: lambda i, bench=bench: bench.query(configs[i % N_CONFIGS]).as_dict() for name, bench in benches.items()
    }
    many: dict[str, Callable[[int], object]] = {
        name: lambda _, bench=bench: bench.query_many(batch) for name, bench in benches.items()
    }
    seconds = {
        "both families, one query": measured(
            single, n=dict.fromkeys(single, arguments.block), n_rounds=arguments.rounds
        ),
        "both families, batch of 1000": measured(many, n=dict.fromkeys(many, 1), n_rounds=arguments.rounds),
    }
    for what, by_way in seconds.items():
        for engine in ("compiled", "numpy"):
            ratio = by_way[f"LightGBM {engine}"] / by_way[engine]
            assert ratio <= MOST_TIMES, f"{what}, {engine}: LightGBM takes {ratio:.1f} times as long"
    return seconds


def batches(
    task: str, folder: Path, benches: Mapping[str, jahs.Benchmark], arguments: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Batches: a whole query of columns, our engine on ready rows, and XGBoost's `inplace_predict` on ready rows.

    Those of at most 1,000 rows are also queried with numpy alone.
    """
    release = read_release(folder)
    sets = [pack.features for pack in release.models.packs]
    columns, places = joint_columns(sets)
    engine = open_engine(join_forests(release.forests, places, n_features=len(columns)), "compiled")
    sizes = [size for size in SIZES if size <= arguments.rows]
    batch = jahs.space().sample_columns(max(sizes), seed=2)
    X = np.column_stack([codes_of(batch), np.full(max(sizes), benches["compiled"].max_epoch)]).astype(np.float32)
    F = RowBuilder(columns, TASKS[task], joint_times(sets)).build(X)
    boosters = [(booster, np.ascontiguousarray(F[:, place])) for booster, place in as_boosters(release, places)]
    seconds = {}
    theirs = np.column_stack([booster.inplace_predict(inputs[:100]) for booster, inputs in boosters])
    assert np.array_equal(engine.predict(F[:100]), theirs)
    for size in sizes:
        part = {name: values[:size] for name, values in batch.items()}
        rows, ready = F[:size].copy(), [(booster, inputs[:size].copy()) for booster, inputs in boosters]
        ways: dict[str, Callable[[int], object]] = {
            "query_many": lambda _, part=part: benches["compiled"].query_many(part),
            "engine": lambda _, rows=rows: engine.predict(rows),
            "XGBoost": lambda _, ready=ready: [booster.inplace_predict(inputs) for booster, inputs in ready],
        }
        if size <= 1000:
            ways["with numpy"] = lambda _, part=part: benches["numpy"].query_many(part)
        n = max(1, arguments.block // 3 // size)
        rounds = arguments.rounds if size < 10_000 else 3
        seconds[f"batch of {size}"] = measured(ways, n=dict.fromkeys(ways, n), n_rounds=rounds)
    return seconds


def as_boosters(release, places):
    """The release's forests as XGBoost's own models, one per metric, with the columns that each reads."""
    for forest, place in zip(release.forests, places, strict=True):
        for k in range(forest.n_forests):
            yield as_booster(forest, k), place


def as_booster(forest, k) -> xgboost.Booster:
    """One forest in XGBoost's JSON: the way back from `forest_from_xgboost`."""
    from jahs.models.forest.flat import left_steps

    steps = left_steps(forest)
    trees = []
    for number, t in enumerate(range(forest.forest_start[k], forest.forest_start[k + 1])):
        nodes = slice(forest.tree_start[t], forest.tree_start[t + 1])
        split, value, step = forest.node_split[nodes], forest.node_value[nodes], steps[nodes]
        node, is_leaf = np.arange(len(split)), split == forest.n_splits
        left = np.where(is_leaf, -1, node + step)
        safe = np.where(is_leaf, 0, split)
        parents = np.full(len(split), 2**31 - 1)
        parents[left[~is_leaf]] = parents[left[~is_leaf] + 1] = node[~is_leaf]
        trees.append(
            {
                "base_weights": [0.0] * len(split), "categories": [], "categories_nodes": [], "categories_segments": [],
                "categories_sizes": [], "default_left": [0] * len(split), "id": number, "left_children": left.tolist(),
                "right_children": np.where(is_leaf, -1, left + 1).tolist(), "loss_changes": [0.0] * len(split),
                "parents": parents.tolist(),
                "split_conditions": np.where(is_leaf, value, forest.split_threshold[safe]).astype(float).tolist(),
                "split_indices": np.where(is_leaf, 0, forest.split_feature[safe]).tolist(),
                "split_type": [0] * len(split), "sum_hessian": [1.0] * len(split),
                "tree_param": {
                    "num_deleted": "0", "num_feature": str(forest.n_features), "num_nodes": str(len(split)),
                    "size_leaf_vector": "1",
                },
            }
        )  # fmt: skip
    booster = xgboost.train(
        {"nthread": 1, "max_depth": 1}, xgboost.DMatrix(np.zeros((2, forest.n_features)), [0, 1]), 1
    )
    model = json.loads(bytes(booster.save_raw("json")))
    inner = model["learner"]["gradient_booster"]["model"]
    inner["trees"], inner["tree_info"] = trees, [0] * len(trees)
    inner["iteration_indptr"] = list(range(len(trees) + 1))
    inner["gbtree_model_param"] |= {"num_trees": str(len(trees))}
    model["learner"]["learner_model_param"]["base_score"] = f"[{float(forest.base_score[k])!r}]"
    restored = xgboost.Booster({"nthread": 1})
    restored.load_model(bytearray(json.dumps(model).encode()))
    return restored


def cold(task: str, folder: Path) -> dict[str, float]:
    """CPU seconds and MB of a fresh process with cached bytecode, from its start to its first answer."""
    code = COLD.format(task=task, folder=str(folder))
    figures = in_fresh_processes(code)
    return {"CPU seconds": statistics.median(f[0] for f in figures), "MB resident": max(f[1] or 0.0 for f in figures)}


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=500, help="trees of each forest that is fitted here")
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5, help="blocks of each way")
    parser.add_argument("--block", type=int, default=1000, help="single queries in a block")
    parser.add_argument("--rows", type=int, default=max(SIZES), help="largest batch")
    parser.add_argument("--release", type=Path, help="a release of fashion_mnist_mini (default: the embedded one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    task = "fashion_mnist_mini"
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.release or releases().get(task)
        if folder is None:
            folder = Path(scratch) / task
            fit_release(folder, arguments.trees, arguments.depth)
        seconds = compare_release(task, folder, arguments)
        seconds |= compare_published(Path(scratch) / "cifar10", arguments)
        fresh = cold(task, folder)
        forests = read_release(folder).forests
    facts = {
        "release": f"{sum(f.n_trees for f in forests)} trees, {sum(f.n_nodes for f in forests)} nodes",
        "machine": platform.processor() or platform.machine(), "numpy": np.__version__,
        "xgboost": xgboost.__version__, "sklearn": sklearn.__version__, "pandas": pd.__version__,
    }  # fmt: skip
    if arguments.json:
        print(json.dumps({"facts": facts, "seconds": seconds, "cold": fresh}, indent=2, sort_keys=True))
        return 0
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    for what, by_way in seconds.items():
        n_rows = int(what.split()[-1]) if "batch" in what else 1
        figures = [f"{name} {value / n_rows * 1e6:.1f} us" for name, value in by_way.items()]
        print(f"{what + (' (a row)' if n_rows > 1 else ''):32} {', '.join(figures)}")
    query = seconds["7 metrics, one query"]
    print(f"JAHS-Bench-201 / compiled {query['JAHS-Bench-201'] / query['compiled']:.0f}, "
          f"/ numpy {query['JAHS-Bench-201'] / query['numpy']:.0f}")  # fmt: skip
    print("cold: " + ", ".join(f"{name} {value:.2f}" for name, value in fresh.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
