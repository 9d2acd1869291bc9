"""How fast flat forests answer, beside XGBoost's own `inplace_predict` with one thread on the same models.

Everything is measured in one process, in CPU time, in alternating blocks: each round gives every engine one block, so
that a slow minute of the machine meets them all alike. Printed are medians over the rounds. Run it from a checkout:

    python -m tests.benchmarks.bench_forest
    python -m tests.benchmarks.bench_forest --trees 200 --depth 13 --rounds 5
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import platform
import sys

import numpy as np
import xgboost

from jahs.models.forest import forest_from_xgboost, open_engine
from tests.benchmarks.blocks import measured

N_CONFIGS = 2000
N_EPOCHS = 200


def rows_of_configs(rng, n_rows):
    """Columns as of an encoded config: one-hot groups, ordinals, two continuous ones, the epoch, a decayed rate."""
    groups = [np.eye(size, dtype=np.float32)[rng.integers(0, size, n_rows)] for size in (5, 5, 5, 5, 5, 5, 3)]
    ordinals = rng.integers(0, 3, (n_rows, 4)).astype(np.float32)
    rate = 10 ** rng.uniform(-3, 0, n_rows)
    decay = 10 ** rng.uniform(-5, -2, n_rows)
    epoch = rng.integers(1, N_EPOCHS + 1, n_rows)
    return with_epochs(np.column_stack([*groups, ordinals, rate, decay, epoch, rate]).astype(np.float32), epoch)


def with_epochs(X, epoch):
    X = X.copy()
    X[:, -2] = epoch
    X[:, -1] = X[:, -4] * (1 + np.cos(np.pi * epoch / N_EPOCHS)) / 2
    return X


def fitted(rng, *, n_forests, n_trees, depth):
    """Boosters on made-up metrics with interactions and noise, so that trees grow as deep as they may."""
    X = rows_of_configs(rng, 20_000)
    boosters = []
    for _ in range(n_forests):
        hidden = np.tanh(X @ rng.normal(size=(X.shape[1], 12)) / 4)
        y = hidden @ rng.normal(size=12) + np.log1p(X[:, -2]) * hidden[:, 0] + rng.normal(0, 0.2, len(X))
        settings = {"max_depth": depth, "eta": 0.1, "nthread": 1, "tree_method": "hist"}
        boosters.append(xgboost.train(settings, xgboost.DMatrix(X, y, nthread=1), n_trees))
    return boosters


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forests", type=int, default=7, help="metrics")
    parser.add_argument("--trees", type=int, default=500, help="trees of each forest")
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=7, help="blocks of each engine")
    parser.add_argument("--block", type=int, default=1000, help="single queries in a block")
    parser.add_argument("--rows", type=int, default=100_000, help="largest batch")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    boosters = fitted(rng, n_forests=arguments.forests, n_trees=arguments.trees, depth=arguments.depth)
    forest = forest_from_xgboost([json.loads(bytes(booster.save_raw("json"))) for booster in boosters])
    plain, compiled = open_engine(forest, "numpy"), open_engine(forest, "compiled")

    def ask_xgboost(X):
        return np.column_stack([booster.inplace_predict(X) for booster in boosters])

    X = rows_of_configs(rng, N_CONFIGS)
    assert np.array_equal(plain.predict(X), ask_xgboost(X))
    assert np.array_equal(compiled.predict(X), ask_xgboost(X))
    alone = [X[i : i + 1].copy() for i in range(N_CONFIGS)]
    walk = [with_epochs(np.repeat(row, N_EPOCHS, axis=0), np.arange(1, N_EPOCHS + 1)) for row in alone[:100]]
    assert np.array_equal(compiled.predict_walk(walk[0]), ask_xgboost(walk[0]))

    many, few = arguments.block, max(1, arguments.block // 10)
    result = {
        "single": measured(
            {
                "numpy": lambda i: plain.predict(alone[i % N_CONFIGS]),
                "compiled": lambda i: compiled.predict(alone[i % N_CONFIGS]),
                "xgboost": lambda i: ask_xgboost(alone[i % N_CONFIGS]),
            },
            n={"numpy": many, "compiled": many, "xgboost": few},
            n_rounds=arguments.rounds,
        ),
        "trajectory": measured(
            {
                "compiled walk": lambda i: compiled.predict_walk(walk[i % 100]),
                "compiled rows": lambda i: compiled.predict(walk[i % 100]),
                "numpy": lambda i: plain.predict_walk(walk[i % 100]),
                "xgboost": lambda i: ask_xgboost(walk[i % 100]),
            },
            n={"compiled walk": few, "compiled rows": few, "numpy": 1, "xgboost": few // 10 + 1},
            n_rounds=arguments.rounds,
        ),
    }
    sizes = [size for size in (1, 2, 5, 10, 30, 100, 1000, 10_000, 100_000) if size <= arguments.rows]
    batch = rows_of_configs(rng, max(sizes))
    for size in sizes:
        n = max(1, many // 3 // size)
        result[f"batch of {size}"] = measured(
            {
                "compiled": lambda i, size=size: compiled.predict(batch[:size]),
                "xgboost": lambda i, size=size: ask_xgboost(batch[:size]),
            },
            n={"compiled": n, "xgboost": max(1, n // 3)},
            n_rounds=arguments.rounds if size < 10_000 else 3,
        )
    facts = {"n_trees": forest.n_trees, "n_nodes": forest.n_nodes, "n_splits": forest.n_splits}
    facts |= {"linked": compiled._linked, "machine": platform.processor() or platform.machine()}
    facts |= {"xgboost": xgboost.__version__, "numpy": np.__version__}
    if arguments.json:
        print(json.dumps({"facts": facts, "seconds": result}, indent=2, sort_keys=True))
        return 0
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    for what, seconds in result.items():
        n_rows = int(what.split()[-1]) if what.startswith("batch") else 1
        figures = [f"{name} {value / n_rows * 1e6:.1f} us" for name, value in seconds.items()]
        ratio = seconds["xgboost"] / next(seconds[name] for name in ("compiled walk", "compiled") if name in seconds)
        print(f"{what + (' (a row)' if n_rows > 1 else ''):24} {', '.join(figures)}; XGBoost / compiled {ratio:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
