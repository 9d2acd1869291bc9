"""Fit the models of several metrics in parallel, with given settings or those of a search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jahs.errors import CorruptFile, InvalidArgument
from jahs.files.sealed_json import read_sealed
from jahs.models.features import DEFAULT_TIMES, TimeCoefficients
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import LEARNED
from surrogate.data.rows import Rows
from surrogate.models.model import ForestSettings, Surrogate, fit_surrogate
from workshop.jobs import in_processes


def fit_each(
    training: Mapping[str, Rows],
    of_task: Task,
    settings: Mapping[str, ForestSettings],
    *,
    times: TimeCoefficients = DEFAULT_TIMES,
    workers: int = 1,
) -> dict[str, Surrogate]:
    """Fit one model for each metric, with default settings for metrics without any.

    Fits are spread over processes, the largest first. The number of workers does not change a byte.
    """
    by_size = sorted(training, key=lambda metric: -len(training[metric]))
    calls = [
        {
            "metric": m,
            "rows": training[m],
            "of_task": of_task,
            "settings": settings.get(m, ForestSettings()),
            "times": times,
        }
        for m in by_size
    ]
    found = dict(zip(by_size, in_processes(fit_surrogate, calls, workers=workers), strict=True))
    return {metric: found[metric] for metric in training}


def read_params(path: Path) -> dict[str, ForestSettings]:
    """Read the settings of some metrics, as `surrogate.tune` writes them.

    Raises:
        MissingData: there is no such file.
        CorruptFile, UnknownFormat: it was damaged or edited, or was written by another version.
        InvalidArgument: a setting does not exist or is out of range.
    """
    content = read_sealed(path)
    if not isinstance(metrics := content.get("metrics"), dict):
        raise CorruptFile(f"{path}: 'metrics' must be an object with the settings of each metric")
    settings, faults = {}, []
    for metric, given in metrics.items():
        if metric not in LEARNED:
            faults.append(f"{metric!r} is not a learned metric")
            continue
        try:
            settings[metric] = ForestSettings.from_dict(given)
        except InvalidArgument as err:
            faults.append(f"{metric}: {err}")
    if faults:
        raise InvalidArgument("\n".join(f"{path}: {fault}" for fault in faults))
    return settings
