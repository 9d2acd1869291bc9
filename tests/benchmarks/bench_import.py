"""How long an import of official size takes, what it needs, and how fast the imported release answers.

    python -m tests.benchmarks.bench_import --tasks 3 --work FOLDER

Makes files in JAHS-Bench-201's format with trees of random shape (500 a model, up to depth 14, 571,000 nodes a model:
4 million a task of seven metrics, 12 million in all), imports them, opens one task in a fresh process, and asks it for
all metrics of random configs. `--official` asks the same models with pandas, scikit-learn and XGBoost of today, in the
way the published code does: one row as a DataFrame, one pipeline after the other. Times are of the CPU, with one
thread; each step is a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import gzip
import json
import resource
import shutil
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.pickle_writer import call, dumps
from tests.published_files import (
    METRICS,
    N_COLUMNS,
    THRESHOLDS,
    make_handle,
    make_params,
    make_pipeline,
    make_trees,
)

TASKS = ("cifar10", "colorectal_histology", "fashion_mnist")
DEPTH = 14


def random_tree(rng: np.random.Generator, n_nodes: int, number: int) -> str:
    """One tree as JSON: leaves are split at random, never beyond `DEPTH`, until there are `n_nodes` nodes."""
    left, right = [-1], [-1]
    depth, leaves, parents = [0], [0], [2147483647]
    order = rng.random(n_nodes)
    while len(left) + 2 <= n_nodes and leaves:
        node = leaves.pop(int(order[len(left)] * len(leaves)))
        left[node], right[node] = len(left), len(left) + 1
        for child in (len(left), len(left) + 1):
            left.append(-1)
            right.append(-1)
            depth.append(depth[node] + 1)
            parents.append(node)
            if depth[child] < DEPTH:
                leaves.append(child)
    n = len(left)
    is_inner = np.array(left) >= 0
    feature = np.where(is_inner, rng.integers(0, N_COLUMNS, n), 0)
    condition = rng.normal(0, 0.05, n).astype(np.float32)
    for column in range(N_COLUMNS):
        is_column = is_inner & (feature == column)
        low, high = THRESHOLDS.get(column + 1, (0.5, 0.5))
        condition[is_column] = low + (high - low) * rng.integers(0, 256, is_column.sum()).astype(np.float32) / 255
    numbers = rng.normal(0, 1, n).astype(np.float32)

    def floats(values: np.ndarray) -> str:
        return "[" + ",".join(map(str, values.tolist())) + "]"

    integers = floats
    zeros = "[" + ",".join(["0"] * n) + "]"
    parts = {
        "base_weights": floats(numbers),
        "categories": "[]",
        "categories_nodes": "[]",
        "categories_segments": "[]",
        "categories_sizes": "[]",
        "default_left": zeros,
        "id": str(number),
        "left_children": integers(np.array(left)),
        "loss_changes": floats(numbers),
        "parents": integers(np.array(parents)),
        "right_children": integers(np.array(right)),
        "split_conditions": floats(condition),
        "split_indices": integers(feature),
        "split_type": zeros,
        "sum_hessian": floats(np.abs(numbers)),
        "tree_param": json.dumps(
            {"num_deleted": "0", "num_feature": str(N_COLUMNS), "num_nodes": str(n), "size_leaf_vector": "0"}
        ),
    }
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def build(work: Path, *, n_tasks: int, n_trees: int, n_nodes: int) -> None:
    """Write the files of one task, and link them for the others."""
    source = work / "assembled_surrogates"
    for number, metric in enumerate(METRICS):
        rng = np.random.default_rng(number)
        trees = ",".join(random_tree(rng, n_nodes, k) for k in range(n_trees))
        handle = make_handle([])
        for empty, full in (
            (b'"trees":[]', b'"trees":[' + trees.encode() + b"]"),
            (b'"tree_info":[]', b'"tree_info":[' + b",".join([b"0"] * n_trees) + b"]"),
            (b'"num_trees":"0"', b'"num_trees":"%d"' % n_trees),
            (b'"best_iteration":"-1"', b'"best_iteration":"%d"' % (n_trees - 1)),
            (b'"best_ntree_limit":"0"', b'"best_ntree_limit":"%d"' % n_trees),
        ):
            handle = handle.replace(empty, full, 1)
        pipeline = make_pipeline(metric, make_trees(1, seed=0), slope=0.25 * (number + 1))
        booster = pipeline.state["steps"][1][1].state["regressor_"].state["regressor_"].state["_Booster"]
        booster.state["handle"] = call("__builtin__", "bytearray", handle)
        folder = source / TASKS[0] / metric
        folder.mkdir(parents=True)
        (folder / "model.pkl.gz").write_bytes(gzip.compress(dumps(pipeline, 0), compresslevel=3))
        (folder / "params.pkl.gz").write_bytes(gzip.compress(dumps(make_params((metric,)), 0)))
    for task in TASKS[1:n_tasks]:
        shutil.copytree(source / TASKS[0], source / task, copy_function=os.link)


def do_import(work: Path) -> dict[str, float]:
    from jahs.published.surrogates import import_surrogates

    start, cpu = time.perf_counter(), time.process_time()
    import_surrogates(work / "assembled_surrogates", work / "releases")
    return {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu, "peak_mb": peak_mb()}


def open_and_ask(work: Path, engine: str, n_queries: int) -> dict[str, float | str]:
    import jahs

    before = peak_mb()
    start = time.process_time()
    bench = jahs.Benchmark(TASKS[0], release=work / "releases", engine=engine)
    configs = jahs.space().sample(n_queries, seed=0)
    bench.query(configs[0])
    opened = time.process_time() - start
    epochs = np.random.default_rng(0).integers(1, 201, n_queries).tolist()
    seconds = timed(lambda k: bench.query(configs[k], at=epochs[k]), n_queries)
    return {
        "engine": bench._oracle.engine,
        "open_cpu_s": opened,
        "peak_mb": peak_mb(),
        "peak_before_mb": before,
        "query_us": 1e6 * statistics.median(seconds),
        "query_p90_us": 1e6 * statistics.quantiles(seconds, n=10)[-1],
    }


def ask_officially(work: Path, n_queries: int) -> dict[str, float]:
    """The published way: a DataFrame of one row, and for each metric a pipeline of scikit-learn and XGBoost."""
    import pandas as pd
    import xgboost
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    import jahs
    import jahs.published.models as models
    from tests.published_files import ENCODED, FEATURES

    handles = []
    models.parse_booster = lambda handle, where: handles.append(handle)
    regressors, transforms = [], []
    for metric in METRICS:
        path = work / "assembled_surrogates" / TASKS[0] / metric / "model.pkl.gz"
        with path.open("rb") as file:
            (model,) = models.read_model(file, str(path))
        booster = xgboost.Booster()
        with warnings.catch_warnings(action="ignore"):  # the format dates from 2021
            booster.load_model(bytearray(json.dumps(json.loads(handles.pop())["Model"]).encode()))

        booster.set_param({"nthread": 1})
        regressors.append(booster)
        transforms.append(model.transform)
    configs = jahs.space().sample(n_queries, seed=0)
    many = pd.DataFrame([{**config, "epoch": 1} for config in jahs.space().sample(2000, seed=1)])[list(FEATURES)]
    encoders = [
        ColumnTransformer(
            [("one_hot", OneHotEncoder(drop="if_binary", sparse_output=False), list(ENCODED))], remainder="passthrough"
        ).fit(many)
        for _ in METRICS
    ]

    def ask(k: int) -> None:
        row = pd.DataFrame([{**configs[k], "epoch": 100}]).loc[:, list(FEATURES)]
        for encoder, regressor, transform in zip(encoders, regressors, transforms, strict=True):
            transform.inverse(regressor.inplace_predict(np.ascontiguousarray(encoder.transform(row), np.float32)))

    ask(0)
    return {"query_us": 1e6 * statistics.median(timed(ask, n_queries))}


def timed(ask: Callable[[int], object], n_queries: int) -> list[float]:
    """Seconds of each query, after as many to warm up."""
    seconds = []
    for _ in range(2):
        seconds = []
        for k in range(n_queries):
            start = time.process_time()
            ask(k)
            seconds.append(time.process_time() - start)
    return seconds


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="an empty or absent folder for 1 GB of files")
    parser.add_argument("--tasks", type=int, default=1, help="how many of the three tasks (default: 1)")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=1143, help="of a tree (default: 1143)")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--official", action="store_true", help="ask the published way, too")
    parser.add_argument("--step", choices=("import", "numpy", "compiled", "official"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    work: Path = arguments.work
    if arguments.step == "import":
        print(json.dumps(do_import(work)))
    elif arguments.step == "official":
        print(json.dumps(ask_officially(work, max(20, arguments.queries // 20))))
    elif arguments.step:
        print(json.dumps(open_and_ask(work, arguments.step, arguments.queries)))
    else:
        if not (work / "assembled_surrogates").exists():
            build(work, n_tasks=arguments.tasks, n_trees=arguments.trees, n_nodes=arguments.nodes)
        steps = ["import", "numpy", "compiled", *(["official"] if arguments.official else [])]
        for step in steps:
            command = [sys.executable, "-m", __spec__.name, "--work", str(work), "--queries", str(arguments.queries)]
            run = subprocess.run([*command, "--step", step], capture_output=True, text=True, check=False)
            print(step, run.stdout.strip() or run.stderr[-2000:], flush=True)


if __name__ == "__main__":
    main()
