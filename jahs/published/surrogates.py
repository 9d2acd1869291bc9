"""From `assembled_surrogates.tar` to releases: one folder for each task, which answers with numpy alone.

Models are read one at a time. Each finished one is kept beside the release until its task is whole, so that an import
that was stopped goes on where it was; a task that is there already, from the same files, is left alone.
"""

from __future__ import annotations

import logging
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument, JahsError, MissingData, UnknownFormat, UnknownName
from jahs.models.features import FEATURE_SETS, FeatureSet
from jahs.models.forest import Forest, forest_from_xgboost
from jahs.published.models import Headers, PublishedModel, read_headers, read_model
from jahs.published.parts import read_part, write_part
from jahs.published.sources import PUBLISHED_TASKS, PublishedFile, open_files
from jahs.release import Costs, MetricModel, Models, Pack, read_release, write_release
from jahs.tasks.definitions import task
from jahs.tasks.metrics import METRICS, metric

__all__ = ["import_surrogates"]

_log = logging.getLogger(__name__)

_MODEL: Final = "model.pkl.gz"
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
"""What the published models answer, where it is not what `jahs.tasks.metrics` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """The two files of one model."""

    model: PublishedFile
    params: PublishedFile


def import_surrogates(
    path: Path,
    out: Path,
    *,
    tasks: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    costs: Costs = "published",
    report: Callable[[str], None] = _log.info,
) -> dict[str, Path]:
    """Turn published surrogates into releases; nothing of the files is executed.

    Args:
        path: `assembled_surrogates.tar`, the folder it was unpacked to, or that of one task or one metric.
        out: a folder, made if need be; the release of each task goes to `out/<task>`.
        tasks: which ones; None for all that are there. Names the task of files whose path does not.
        metrics: which ones, by this project's or the published names; None for all that are there.
        costs: what the releases answer for costs; see `jahs.release.Costs`.
        report: is told of each model and each task, when it is done.

    Returns:
        The release of each task.

    Raises:
        MissingData: there are no such models at `path`.
        UnsafeFile: a file asks for more than data; nothing of it was executed.
        CorruptFile, UnknownFormat: a file is damaged, or not what JAHS-Bench-201 published.
        InvalidArgument, UnknownName: arguments that do not exist, or that do not fit together; or something else than
            this release stands where it would go.
    """
    wanted = None if tasks is None else [task(name).name for name in tasks]
    chosen = None if metrics is None else {metric(name).name for name in metrics}
    if costs not in ("published", "repaired"):
        raise InvalidArgument(f"costs={costs!r} is not one of 'published', 'repaired'")
    if wanted is not None and (others := [name for name in wanted if name not in PUBLISHED_TASKS]):
        raise UnknownName.of("task", others[0], PUBLISHED_TASKS)
    done = {}
    with open_files(path, (_MODEL, _PARAMS)) as files:
        for name, entries in _by_task(files, path, wanted).items():
            done[name] = _import_task(name, entries, out, chosen=chosen, costs=costs, report=report)
    return done


def _by_task(files: list[PublishedFile], path: Path, wanted: list[str] | None) -> dict[str, list[_Entry]]:
    params = {file.folder: file for file in files if file.name == _PARAMS}
    found: dict[str, list[_Entry]] = {}
    for file in files:
        if file.name != _MODEL:
            continue
        if file.folder not in params:
            raise MissingData(f"{file.where} stands without its {_PARAMS}")
        name = file.task or (wanted[0] if wanted is not None and len(wanted) == 1 else None)
        if name is None:
            raise InvalidArgument(
                f"{file.where}: its path does not name a task; give one of {', '.join(PUBLISHED_TASKS)}"
            )
        if wanted is None or name in wanted:
            found.setdefault(name, []).append(_Entry(model=file, params=params[file.folder]))
    if missing := [name for name in wanted or () if name not in found]:
        raise MissingData(f"{path} holds no models for {', '.join(missing)}")
    if not found:
        raise MissingData(f"{path} holds no {_MODEL}; see: jahs download jahs-bench-201")
    return found


def _import_task(
    name: str,
    entries: list[_Entry],
    out: Path,
    *,
    chosen: set[str] | None,
    costs: Costs,
    report: Callable[[str], None],
) -> Path:
    release = out / name
    headers = {}
    for entry in entries:
        with entry.params.open() as file:
            found = read_headers(file, entry.params.where)
        if chosen is None or chosen & {metric(m).name for m in found.metrics}:
            headers[entry.model.where] = found
    entries = [entry for entry in entries if entry.model.where in headers]
    if not entries:
        raise MissingData(f"{name}: no model of {', '.join(sorted(chosen or ()))}")
    answered = [m for found in headers.values() for m in found.metrics]
    if len(set(answered)) != len(answered):
        raise InvalidArgument(f"{name}: several models of one metric; import from one folder of models at a time")
    sources = {_key(headers[entry.model.where]): entry.model.sha256() for entry in entries}
    asked = {"models": sources, "metrics": None if chosen is None else sorted(chosen), "costs": costs}
    if _is_there(release, asked):
        report(f"{name}: {release} is there already, from the same files")
        return release
    parts = out / f".{name}.parts"
    parts.mkdir(parents=True, exist_ok=True)
    models: dict[str, PublishedModel] = {}
    where: dict[str, str] = {}  # each came from
    for number, entry in enumerate(entries, 1):
        found = headers[entry.model.where]
        own = _read_models(entry, found, parts / f"{sources[_key(found)][:16]}.npz")
        models |= own
        where |= dict.fromkeys(own, entry.model.where)
        report(f"{number}/{len(entries)} {name} {_key(found)}")
    kept = {m: models[m] for m in METRICS if m in models and (chosen is None or m in chosen)}
    _write(release, name, kept, asked, {_key(found): found for found in headers.values()}, where=where)
    shutil.rmtree(parts)
    report(f"{name}: {release}")
    return release


def _key(headers: Headers) -> str:
    return ",".join(headers.metrics)


def _is_there(release: Path, asked: dict[str, Any]) -> bool:
    """Whether this very release is there and whole; a damaged one is made again, anything else is not replaced."""
    if not release.exists() or (release.is_dir() and not any(release.iterdir())):
        return False
    refused = InvalidArgument(
        f"{release} is there and is no release of this import (of the same files, with the same --metric and --costs); "
        "choose another folder, or delete it"
    )
    try:
        found = read_release(release)
    except JahsError as err:
        raise refused from err
    if found.facts.get("imported") != asked:
        raise refused
    try:
        found.verify()
    except JahsError:
        return False
    return True


def _read_models(entry: _Entry, headers: Headers, part: Path) -> dict[str, PublishedModel]:
    """The models of one file by metric, from what an earlier import kept if it did."""
    if (kept := read_part(part)) is not None:
        return kept
    with entry.model.open() as file:
        found = read_model(file, entry.model.where)
    if len(found) != len(headers.metrics):
        raise CorruptFile(f"{entry.model.where}: {len(found)} models for {_key(headers)}")
    models = {metric(name).name: model for name, model in zip(headers.metrics, found, strict=True)}
    write_part(part, models)
    return models


def _forest_of(models: Mapping[str, PublishedModel], where: Mapping[str, str]) -> Forest:
    """The forest of models over the same columns; where their trees are none, the file at fault is named."""
    try:
        forest = forest_from_xgboost([model.booster.to_model() for model in models.values()])
        if all(len(model.columns) == forest.n_features for model in models.values()):
            return forest
    except (CorruptFile, InvalidArgument, UnknownFormat):
        pass  # only now are they looked at one by one
    for name, model in models.items():
        _check_forest(model, f"{where[name]}: {name}")
    raise CorruptFile(f"{', '.join(where[name] for name in models)}: their trees make no forest together")


def _check_forest(model: PublishedModel, where: str) -> None:
    """Refuse trees that are no forest over the columns."""
    try:
        forest = forest_from_xgboost([model.booster.to_model()])
    except (CorruptFile, InvalidArgument, UnknownFormat) as err:
        kind = UnknownFormat if isinstance(err, UnknownFormat) else CorruptFile
        raise kind("\n".join(f"{where}: {line}" for line in str(err).splitlines())) from err
    if forest.n_features != len(model.columns):
        raise CorruptFile(
            f"{where}: trees over {forest.n_features} features, of which {len(model.columns)} are encoded"
        )


def _write(
    release: Path,
    name: str,
    models: dict[str, PublishedModel],
    asked: dict[str, Any],
    headers: dict[str, Headers],
    *,
    where: Mapping[str, str],
) -> None:
    by_columns: dict[tuple[str, ...], list[str]] = {}
    for found, model in models.items():
        by_columns.setdefault(model.columns, []).append(found)
    packs, forests, entries = [], [], {}
    for place, (columns, members) in enumerate(by_columns.items()):
        packs.append(Pack(file=f"forests-{place}", features=_features(columns, name)))
        forests.append(_forest_of({member: models[member] for member in members}, where))
        for forest, member in enumerate(members):
            entries[member] = MetricModel(
                pack=place, forest=forest, transform=models[member].transform, overrides=_OVERRIDES.get(member, {})
            )
    facts = {
        "citation": _CITATION,
        "hyperparameters": {key: found.hyperparams for key, found in headers.items()},
        "imported": asked,
        "licence": "CC BY 4.0",
        "protocol": "jahs-bench-201",
        "seed": None,
        "source": "imported",
        "task": name,
        "version": "JAHS-Bench-201",
        "versions": {"numpy": np.__version__, "python": platform.python_version()},
    }
    metrics = {member: entries[member] for member in models}
    costs: Costs = asked["costs"]
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
        raise UnknownFormat(f"{name}: the models read what this version does not know: {err}") from err
