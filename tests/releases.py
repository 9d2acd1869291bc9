"""A small made-up release: random forests by numpy alone, written in a fraction of a second, queried like a fitted one.

Trees split at values that features really take, so that configs differ in every metric; accuracies rise with the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import jahs
from jahs.files.hashing import sha256_file
from jahs.models.bounds import BoundedTransform
from jahs.models.features import FeatureBuilder, FeatureSet, feature_set
from jahs.models.forest import Forest
from jahs.release import MetricModel, Models, Pack, RecordedTable, write_release
from jahs.release.models import RefitPack, Refits
from jahs.tasks.definitions import TASKS
from tests.building import make_configs, make_profile, make_runs

ACCURACIES = ("train_acc", "valid_acc", "test_acc")
METRICS = (*ACCURACIES, "latency", "runtime")


def make_forest(
    features: FeatureSet,
    *,
    task: str,
    n_forests: int,
    n_trees: int = 20,
    depth: int = 4,
    n_values: int = 12,
    rise: float = 0.0,
    spread: float = 1.0,
    seed: int = 0,
) -> Forest:
    """Return full random trees over a feature set; `rise` is how much the epochs add to each answer.

    Args:
        features: the columns.
        task: task whose epochs and costs the features use.
        n_forests, n_trees, depth: sizes.
        n_values: number of thresholds of each column.
        rise: how much an answer gains from the first epoch to the last.
        spread: standard deviation of an answer over configs, about.
        seed: which trees.
    """
    rng = np.random.default_rng(seed)
    max_epoch = TASKS[task].max_epoch
    columns = jahs.space().sample_columns(500, seed=seed)
    X = jahs.encode(columns, rng.integers(1, max_epoch + 1, 500))
    F = FeatureBuilder(features, TASKS[task]).build(X)
    pairs = []
    for j, name in enumerate(features.columns):
        values = np.unique(F[:, j])
        if name == "epoch":
            values = np.arange(2, max_epoch + 1, dtype=np.float32)  # every epoch differs from the one before
        elif values.size > n_values:
            values = np.unique(np.quantile(values, np.linspace(0.05, 0.95, n_values)).astype(np.float32))
        pairs += [(j, value) for value in values.tolist()]
    table = np.array(pairs)
    at_epochs = [i for i, (j, _) in enumerate(pairs) if features.columns[int(j)] == "epoch"] if rise else []
    n_inner, n_leaves = 2**depth - 1, 2**depth
    splits, values, sizes = [], [], []
    for _ in range(n_forests):
        for split in at_epochs:
            step = rise / len(at_epochs) / 2
            splits.append([split, len(pairs), len(pairs)])
            values.append([0, -step, step])
        for _ in range(n_trees):
            splits.append([*rng.integers(0, len(pairs), n_inner), *[len(pairs)] * n_leaves])
            values.append([*[0] * n_inner, *rng.normal(0, spread / np.sqrt(n_trees), n_leaves)])
        sizes.append(len(at_epochs) + n_trees)
    return Forest(
        n_features=len(features.columns),
        split_feature=table[:, 0].astype(np.uint16),
        split_threshold=table[:, 1].astype(np.float32),
        node_split=np.concatenate(splits).astype(np.uint16),
        node_value=np.concatenate(values).astype(np.float32),
        tree_start=np.cumsum([0, *map(len, splits)]).astype(np.int64),
        forest_start=np.cumsum([0, *sizes]).astype(np.int64),
        base_score=np.zeros(n_forests, np.float32),
    )


def make_table(task: str, n_configs: int, *, diverged: Sequence[int] = (), seed: int = 0) -> RecordedTable:
    """Return made-up runs: every tenth config has three seeds, the others one."""
    configs = make_configs(n_configs, seed=seed)
    seeds = [(0, 1, 2) if i % 10 == 0 else (0,) for i in range(n_configs)]
    runs = make_runs(configs, seeds=seeds, n_epochs=TASKS[task].max_epoch, diverged=diverged)
    return RecordedTable(configs=configs, runs=runs, profile=make_profile(configs))


def make_release(
    path: Path,
    *,
    task: str = "digits",
    metrics: Sequence[str] = METRICS,
    n_trees: int = 20,
    depth: int = 4,
    mapped: bool = False,
    table: RecordedTable | None = None,
    noise: Mapping[str, object] | None = None,
    references: Mapping[str, object] | None = None,
    quality: Mapping[str, object] | None = None,
    facts: Mapping[str, object] | None = None,
    n_refits: int = 0,
    has_lightgbm: bool = False,
    seed: int = 0,
) -> Path:
    """Write a release that answers `metrics`, and return its folder.

    Args:
        path: the folder.
        task: name of its task.
        metrics: some of the learned metrics.
        n_trees, depth: sizes of each forest.
        mapped: whether forests are folders of arrays instead of npz.
        table, noise, references, quality: its other parts, if any.
        facts: facts of the manifest, besides the usual ones.
        n_refits: number of refits of each accuracy.
        has_lightgbm: whether other forests of the accuracies are a second family.
        seed: which forests.
    """
    packs, forests, models = [], [], {}
    for name in ("accuracy", "latency", "epoch_time"):
        members = [m for m in metrics if {"latency": "latency", "runtime": "epoch_time"}.get(m, "accuracy") == name]
        if not members:
            continue
        features = feature_set(name)
        is_accuracy = name == "accuracy"
        forest = make_forest(
            features, task=task, n_forests=len(members), n_trees=n_trees, depth=depth,
            rise=3.0 if is_accuracy else 0.0, seed=seed + len(packs),
        )  # fmt: skip
        for place, metric in enumerate(members):
            lower, upper = {"latency": (0.001, 0.5), "runtime": (0.2, 30.0)}.get(metric, (0.0, 100.0))
            models[metric] = MetricModel(
                pack=len(packs),
                forest=place,
                transform=BoundedTransform(lower=lower, upper=upper),
                target="per_epoch" if metric == "runtime" else "value",
            )
        packs.append(Pack(file=f"forests-{len(packs)}" + ("" if mapped else ".npz"), features=features))
        forests.append(forest)
    refits = None
    if n_refits:
        names = tuple(m for m in metrics if m in ACCURACIES)
        pack = RefitPack(file="refits-0.npz", pack=0, metrics=names)
        refits = Refits(n_refits=n_refits, packs=(pack,), scales=dict.fromkeys(names, 2.0))
        refit_forests = [
            make_forest(
                feature_set("accuracy"), task=task, n_forests=n_refits * len(names), n_trees=n_trees, depth=depth,
                rise=3.0, seed=seed + 100,
            )
        ]  # fmt: skip
    families = {}
    if has_lightgbm:
        names = [m for m in metrics if m in ACCURACIES]
        lightgbm = Models(
            costs="exact",
            packs=(Pack(file="lightgbm-0.npz", features=feature_set("accuracy")),),
            metrics={m: replace(models[m], pack=0, forest=i) for i, m in enumerate(names)},
        )
        settings = {"task": task, "n_forests": len(names), "n_trees": n_trees, "depth": depth, "rise": 3.0}
        families["lightgbm"] = lightgbm, [make_forest(feature_set("accuracy"), **settings, seed=seed + 200)]
    write_release(
        path,
        manifest_facts={
            "task": task,
            "version": "test",
            "source": "measured",
            "protocol": "0" * 16,
            "reference_config": jahs.space({"N": 5, "W": 16}).default(),
            **(facts or {}),
        },
        models=Models(
            costs="exact", packs=tuple(packs), metrics={m: models[m] for m in metrics}, counts={"configs": 0}
        ),
        forests=forests,
        refits=refits,
        refit_forests=refit_forests if n_refits else (),
        families=families,
        noise=noise,
        table=table,
        references=references,
        quality=quality,
    )
    return path


def edit_json(folder: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:  # Any: JSON
    """Change a JSON file of a release; the manifest vouches for it, unless it is the manifest."""
    content = json.loads((folder / name).read_bytes())
    change(content)
    (folder / name).write_text(json.dumps(content))
    if name != "manifest.json":
        vouch(folder, name)


def vouch(folder: Path, name: str) -> None:
    """Enter the present size and sha256 of a file of a release in its manifest."""
    entry = {"sha256": sha256_file(folder / name), "size": (folder / name).stat().st_size}
    edit_json(folder, "manifest.json", lambda manifest: manifest["files"].update({name: entry}))
