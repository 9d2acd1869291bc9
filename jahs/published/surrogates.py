"""From `assembled_surrogates.tar` to releases: one folder for each task, which answers with numpy alone.

A task that was already imported from the same files is skipped, so a stopped import resumes with the next task.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument, JahsError, MissingData, UnknownFormat, UnknownName
from jahs.files.atomic import make_folder
from jahs.models.features import FEATURE_SETS, FeatureSet
from jahs.models.forest import Forest, forest_from_xgboost, join_forests
from jahs.published.models import Headers, PublishedModel, read_headers, read_model
from jahs.published.sources import PublishedFile, files_by_task
from jahs.release import Costs, MetricModel, Models, Pack, read_release, write_release
from jahs.tasks.metrics import METRICS, metric

_log = logging.getLogger(__name__)

MODEL: Final = "model.pkl.gz"
_PARAMS: Final = "params.pkl.gz"
_CITATION: Final = (
    "Bansal, Stoll, Janowski, Zela, Hutter (2022). JAHS-Bench-201: A Foundation For Research On Joint Architecture And "
    "Hyperparameter Search. NeurIPS Datasets and Benchmarks."
)
_OVERRIDES: Final[dict[str, dict[str, Any]]] = {  # Any: each has the type of its field
    "latency": {
        "by_epoch": True,
        "description": "Seconds of one evaluation forward pass of a batch of up to 256 images, as published: a running "
        "average over all epochs so far, so that it may move with the epoch.",
    },
    "runtime": {
        "description": "Seconds from the start of training to the end of the queried epoch, as published: a model's "
        "answer for each epoch alone, so that it may fall from one epoch to the next.",
    },
    "n_params": {
        "unit": "million parameters",
        "published_scale": 1.0,
        "by_epoch": True,
        "description": "The published size_MB: trainable parameters in millions, not megabytes, predicted.",
    },
    "n_macs": {
        "unit": "million multiply-adds",
        "published_scale": 1.0,
        "by_epoch": True,
        "description": "The published FLOPS: multiply-adds of one image in millions, not a rate, predicted.",
    },
}
"""Facts of the published models' metrics that differ from `jahs.tasks.metrics`."""


def import_surrogates(
    path: Path,
    out: Path,
    *,
    tasks: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    costs: Costs = "published",
    report: Callable[[str], None] = _log.info,
) -> dict[str, Path]:
    """Turn published surrogates into releases, one for each task; no code in the files is executed.

    Args:
        path: `assembled_surrogates.tar`, the folder it was unpacked to, or the folder of one task or one metric.
        out: a folder, made if needed; the release of each task goes to `out/<task>`.
        tasks: names; None for all. A single one is the task of files whose path names no task.
        metrics: our names or the published ones; None for all.
        costs: mode of the releases' costs; see `jahs.release.Costs`.
        report: called with a line about each finished model and task.

    UnsafeFile names a file that holds more than data; CorruptFile and UnknownFormat, a file that JAHS-Bench-201 did not
    publish. InvalidArgument if the folder of a release has other content.
    """
    metric_names = None if metrics is None else {metric(name).name for name in metrics}
    if costs not in ("published", "repaired"):
        raise InvalidArgument(f"costs={costs!r} is not one of 'published', 'repaired'")
    with files_by_task(path, (MODEL, _PARAMS), tasks) as by_task:
        return {
            name: _import_task(name, files, out, metric_names=metric_names, costs=costs, report=report)
            for name, files in by_task.items()
        }


def _import_task(
    name: str,
    files: list[PublishedFile],
    out: Path,
    *,
    metric_names: set[str] | None,
    costs: Costs,
    report: Callable[[str], None],
) -> Path:
    release = out / name
    params = {file.folder: file for file in files if file.name == _PARAMS}
    selected: list[tuple[PublishedFile, Headers]] = []
    for file in files:
        if file.name == MODEL:
            if file.folder not in params:
                raise MissingData(f"{file.where} needs its {_PARAMS} beside it")
            with params[file.folder].open() as opened:
                headers = read_headers(opened, params[file.folder].where)
            if metric_names is None or metric_names & {metric(m).name for m in headers.metrics}:
                selected.append((file, headers))
    if not selected:
        raise MissingData(f"{name}: no model of {', '.join(sorted(metric_names or ()))}")
    outputs = [m for _, headers in selected for m in headers.metrics]
    if len(set(outputs)) != len(outputs):
        raise InvalidArgument(f"{name}: several models of one metric; import from one folder of models at a time")
    sources = {_key(headers): file.sha256() for file, headers in selected}
    request = {"models": sources, "metrics": None if metric_names is None else sorted(metric_names), "costs": costs}
    if _is_imported(release, request, report):
        report(f"{name}: {release} is there already, from the same files")
        return release
    make_folder(out)  # refused here, not after minutes of reading
    models: dict[str, PublishedModel] = {}
    for number, (file, headers) in enumerate(selected, 1):
        models |= _read_models(file, headers)
        report(f"{number}/{len(selected)} {name} {_key(headers)}")
    imported = {m: models[m] for m in METRICS if m in models and (metric_names is None or m in metric_names)}
    _write(release, name, imported, request, {_key(headers): headers for _, headers in selected})
    report(f"{name}: {release}")
    return release


def _key(headers: Headers) -> str:
    return ",".join(headers.metrics)


def _is_imported(release: Path, request: dict[str, Any], report: Callable[[str], None]) -> bool:
    """Return whether this release exists undamaged; a damaged one is made again, anything else is never replaced.

    Other files in its folder, such as notes, do not damage a release; a damaged one beside them is refused.
    """
    if not release.exists() or (release.is_dir() and not any(release.iterdir())):
        return False
    refusal = InvalidArgument(
        f"{release} exists and is not this import (the same files, --metric and --costs); "
        "choose another folder, or delete it"
    )
    try:
        existing = read_release(release)
    except JahsError as err:
        raise refusal from err
    if existing.facts.get("imported") != request:
        raise refusal
    try:
        for file in existing.manifest.files:
            existing.manifest.check(file)
    except JahsError as err:
        if others := existing.manifest.strangers():
            raise InvalidArgument(
                f"{err}\n{release} is not replaced, since it also holds {', '.join(others[:10])}; move what you want "
                "to keep to another folder, delete the release, and import again"
            ) from err
        front = "; its front must be searched again (--with-front)" if existing.has("references.json") else ""
        report(f"{existing.task.name}: {release} is damaged and is imported again{front}")
        return False
    return True


def _read_models(file: PublishedFile, headers: Headers) -> dict[str, PublishedModel]:
    """Return the models of one file by metric."""
    with file.open() as opened:
        models = read_model(opened, file.where)
    if len(models) != len(headers.metrics):
        raise CorruptFile(f"{file.where}: {len(models)} models for {_key(headers)}")
    return {metric(name).name: model for name, model in zip(headers.metrics, models, strict=True)}


def _forest_of(model: PublishedModel, name: str) -> Forest:
    """Return the forest of a metric's model; an error, such as trees that do not fit the columns, names its file."""
    where = f"{model.where}: {name}"
    try:
        forest = forest_from_xgboost([model.booster])
    except (CorruptFile, InvalidArgument, UnknownFormat) as err:
        kind = UnknownFormat if isinstance(err, UnknownFormat) else CorruptFile
        raise kind("\n".join(f"{where}: {line}" for line in str(err).splitlines())) from err
    if forest.n_features != len(model.columns):
        raise CorruptFile(
            f"{where}: trees over {forest.n_features} features, of which {len(model.columns)} are encoded"
        )
    return forest


def _write(
    release: Path,
    name: str,
    models: dict[str, PublishedModel],
    request: dict[str, Any],
    headers: dict[str, Headers],
) -> None:
    by_columns: dict[tuple[str, ...], list[str]] = {}
    for metric_name, model in models.items():
        by_columns.setdefault(model.columns, []).append(metric_name)
    packs, forests, entries = [], [], {}
    for place, (columns, members) in enumerate(by_columns.items()):
        packs.append(Pack(file=f"forests-{place}", features=_features(columns, name)))
        group = [_forest_of(models[member], member) for member in members]
        forests.append(join_forests(group, [range(len(columns))] * len(group), n_features=len(columns)))
        for forest, member in enumerate(members):
            entries[member] = MetricModel(
                pack=place, forest=forest, transform=models[member].transform, overrides=_OVERRIDES.get(member, {})
            )
    facts = {
        "citation": _CITATION,
        "hyperparameters": {key: header.hyperparams for key, header in headers.items()},
        "imported": request,
        "licence": "CC BY 4.0",
        "protocol": "jahs-bench-201",
        "seed": None,
        "source": "imported",
        "task": name,
        "version": "JAHS-Bench-201",
        "versions": {"numpy": np.__version__, "python": platform.python_version()},
    }
    metrics = {member: entries[member] for member in models}
    costs: Costs = request["costs"]
    write_release(
        release,
        manifest_facts=facts,
        models=Models(costs=costs, packs=tuple(packs), metrics=metrics),
        forests=forests,
    )


def _features(columns: tuple[str, ...], name: str) -> FeatureSet:
    if columns == FEATURE_SETS["published"].columns:
        return FEATURE_SETS["published"]
    try:
        return FeatureSet(name="imported", columns=columns, is_canonical=False)
    except (UnknownName, InvalidArgument) as err:
        raise UnknownFormat(f"{name}: the models use features that this version does not know: {err}") from err
