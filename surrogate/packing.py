"""Turn fitted models and measurements into the parts of a release, check its answers, and number it.

The number, `version` in the manifest, changes with the release, independently of the package's version:

1.0.0  another protocol: answers are not comparable with older ones
0.2.0  other answers: measurements, models, noise or reference points have changed
0.1.1  the same answers, and something else in it has changed
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile
from jahs.files.tables import take
from jahs.models.forest import Forest, forest_from_xgboost, open_engine
from jahs.queries.completing import good_config
from jahs.release import MetricModel, Models, Pack, RecordedTable, Release, read_release
from jahs.release.manifest import MANIFEST, Manifest, read_manifest
from jahs.spaces.configs import Config
from splits.split import Split
from surrogate.data.measurements import Measurements, trained_configs
from surrogate.data.rows import Rows, assemble, by_part, features_of
from surrogate.models.model import Surrogate, booster_json
from workshop.measured import rows_of

FIRST: Final = "0.1.0"
_NUMBER: Final = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


def recorded_table(measured: Measurements) -> RecordedTable:
    """Return the trained configs with their measurements; configs that are only profiled are left out."""
    configs, profile = trained_configs(measured), measured.profile
    profile = take(profile, np.isin(profile["config_id"], configs["config_id"]))
    return RecordedTable(configs=configs, runs=measured.runs, profile=profile)


def pack_models(
    fitted: Mapping[str, Surrogate],
    file: str = "forests",
    trees_of: Callable[[str], dict[str, Any]] | None = None,  # Any: JSON
) -> tuple[Models, list[Forest]]:
    """Return the models of a release, and one forest for each set of features.

    Args:
        file: prefix of the names of the forests' files.
        trees_of: returns the trees of a metric as XGBoost's JSON; None: the trees of `fitted`.
    """
    trees_of = trees_of or (lambda metric: booster_json(fitted[metric]))
    sets = list(dict.fromkeys(model.features for model in fitted.values()))
    members = {features: [m for m, model in fitted.items() if model.features == features] for features in sets}
    forests = [forest_from_xgboost([trees_of(metric) for metric in members[features]]) for features in sets]
    models = Models(
        costs="exact",
        packs=tuple(Pack(file=f"{file}-{i}.npz", features=features) for i, features in enumerate(sets)),
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


def reference_config(measured: Measurements, split: Split) -> Config | None:
    """Return the validation config at the 0.9 quantile of validation accuracy, at full size; None if there is none.

    The validation configs that were trained to the last epoch are sorted by their mean validation accuracy at
    that epoch, ties by config id. The one at the quantile (nearest rank) is taken, so it is good but not the best.
    """
    recorded = by_part(assemble("valid_acc", measured), split)["valid"]
    ids, means = recorded.take(recorded.epoch == measured.task.max_epoch).config_means
    return good_config(rows_of(measured.configs, ids), means) if len(ids) else None


def release_answers(release: Release, metric: str, X: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the answers of a release's forest for encoded rows, by the numpy engine."""
    model = release.models.metrics[metric]
    F = features_of(X, release.models.packs[model.pack].features, release.task)
    assert model.transform is not None, "every fitted model has a transform"
    values = model.transform.inverse(
        open_engine(release.forests[model.pack], "numpy").predict(F, forests=[model.forest])[:, 0]
    )
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


def standing_release(out: Path) -> Manifest | None:
    """Return the manifest of the release that will be replaced; None if there is none.

    Raises:
        CorruptFile, UnknownFormat, MissingData: it cannot be read, so its number is not known.
    """
    return read_manifest(out) if (out / MANIFEST).is_file() else None


def number_after(old: Manifest | None, new: Manifest) -> str:
    """Return the number of a release that replaces `old`; the first number if `old` has no valid one."""
    match = None if old is None else _NUMBER.fullmatch(str(old.facts.get("version")))
    if old is None or match is None:
        return FIRST
    first, second, third = map(int, match.groups())
    if old.facts.get("protocol") != new.facts.get("protocol"):
        return f"{first + 1}.0.0"
    if _query_files(old) != _query_files(new):
        return f"{first}.{second + 1}.0"
    has_changed = old.files != new.files or old.facts.get("reference_config") != new.facts.get("reference_config")
    return f"{first}.{second}.{third + has_changed}"


def number_facts(old: Manifest | None, new: Manifest) -> dict[str, Any]:  # Any: JSON
    """Return the number of a manifest after the release that it replaces, and the releases with the same answers.

    `same_answers` holds the sha256 of every earlier manifest since the second part of the number last changed, also of
    one with the same number.
    """
    number, old_number = number_after(old, new), "" if old is None else str(old.facts.get("version"))
    same = [] if old is None else list(old.facts.get("same_answers", ()))
    if old is not None and (number != old_number or _other_facts(old) != _other_facts(new)):
        is_same = _NUMBER.fullmatch(old_number) and number.rpartition(".")[0] == old_number.rpartition(".")[0]
        same = [*same, old.sha256] if is_same else []
    return {"version": number, **({"same_answers": same} if same else {})}


def _other_facts(release: Manifest) -> dict[str, Any]:  # Any: JSON
    """Return the facts that do not follow from the releases before it."""
    return {name: fact for name, fact in release.facts.items() if name not in {"version", "same_answers"}}


def _query_files(release: Manifest) -> dict[str, tuple[int, str]]:
    """Return the files that queries read."""
    return {name: entry for name, entry in release.files.items() if name != "quality.json"}
