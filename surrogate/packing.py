"""Turn fitted models and measurements into the parts of a release, and check that it answers as its models do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile
from jahs.files.tables import take
from jahs.models.features import FeatureBuilder
from jahs.models.forest import Forest, forest_from_xgboost
from jahs.release import MetricModel, Models, Pack, RecordedTable, Release, read_release
from surrogate.data.measurements import Measurements, trained_configs
from surrogate.data.rows import Rows
from surrogate.models.model import Surrogate

__all__ = ["check_answers", "pack_models", "recorded_table", "release_answers"]


def recorded_table(measured: Measurements) -> RecordedTable:
    """Return the trained configs with their measurements; configs that are only profiled are left out."""
    configs, profile = trained_configs(measured), measured.profile
    profile = take(profile, np.isin(profile["config_id"], configs["config_id"]))
    return RecordedTable(configs=configs, runs=measured.runs, profile=profile)


def pack_models(fitted: Mapping[str, Surrogate]) -> tuple[Models, list[Forest]]:
    """Return the models of a release, and one forest for each set of features."""
    sets = list(dict.fromkeys(model.features for model in fitted.values()))
    members = {features: [m for m, model in fitted.items() if model.features == features] for features in sets}
    forests = [
        forest_from_xgboost([json.loads(fitted[m].booster.save_raw("json")) for m in members[features]])
        for features in sets
    ]
    models = Models(
        costs="exact",
        packs=tuple(Pack(file=f"forests-{i}.npz", features=features) for i, features in enumerate(sets)),
        metrics={
            metric: MetricModel(
                pack=sets.index(model.features),
                forest=members[model.features].index(metric),
                transform=model.transform,
                target=model.target,
            )
            for metric, model in fitted.items()
        },
        counts={metric: model.counts for metric, model in fitted.items()},
    )
    return models, forests


def release_answers(release: Release, metric: str, X: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the answers of a release's forest for encoded rows, by the numpy engine."""
    model = release.models.metrics[metric]
    F = FeatureBuilder(release.models.packs[model.pack].features, release.task).build(X)
    assert model.transform is not None, "this room writes a transform for every model"
    values = model.transform.inverse(release.engines("numpy")[model.pack].predict(F, forests=[model.forest])[:, 0])
    return values * X[:, -1].astype(np.float64) if model.target == "per_epoch" else values


def check_answers(folder: Path, fitted: Mapping[str, Surrogate], parts: Mapping[str, Mapping[str, Rows]]) -> None:
    """Refuse a release whose answers differ from its models', bit for bit."""
    release = read_release(folder)
    for metric, model in fitted.items():
        X = np.concatenate([rows.X for rows in parts[metric].values()])
        if not np.array_equal(release_answers(release, metric, X), model.predict(X)):
            raise CorruptFile(
                f"{metric}: the new release does not answer as its model; this is a bug, please report it"
            )
