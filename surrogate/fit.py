"""Fit one model per learned metric on the training part, and write them into a folder.

python -m surrogate.fit RUNS --split SPLIT --out DIR [--metrics ...] [--params FILE] [--workers 2]
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument
from jahs.files.sealed_json import read_sealed
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import LEARNED
from splits.split import Split
from surrogate.command import add_fewest, add_workers, runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import FEWEST, Rows, training_rows
from surrogate.models.model import Settings, Surrogate, fit_surrogate, write_surrogate
from workshop.command import run_command
from workshop.folders import new_folder, write_manifest
from workshop.jobs import check_workers, in_processes

__all__ = ["diverged_runs", "fit_all", "fit_each", "main", "read_params"]

_log = logging.getLogger(__name__)


def fit_all(
    measured: Measurements,
    split: Split,
    out: Path,
    *,
    metrics: Sequence[str] = LEARNED,
    settings: Mapping[str, Settings] | None = None,
    fewest: int = FEWEST,
    workers: int = 1,
    command: Sequence[str] = (),
) -> dict[str, dict[str, int]]:
    """Fit the metrics' models on the training part and write the folder, whole or not at all.

    Everything is checked before the first model is fitted.

    Returns:
        How many rows and configs each model was fitted on.

    Raises:
        UnknownName: a metric is not learned.
        InvalidTable: see `surrogate.data.rows`.
        InvalidArgument: `out` is there already or cannot be written.
    """
    check_workers(workers)
    parts = training_rows(metrics, measured, split, fewest=fewest)
    training = {metric: rows["train"] for metric, rows in parts.items()}
    with new_folder(out) as folder:
        counts = {}
        for metric, fitted in fit_each(training, measured.task, settings or {}, workers=workers).items():
            write_surrogate(folder, fitted)
            counts[metric] = fitted.counts
            _log.info("%s: %d rows of %d configs", metric, *fitted.counts.values())
        write_manifest(
            folder,
            facts={
                "task": measured.task.name,
                "protocol": measured.protocol,
                "split": split.digest,
                "models": counts,
                "diverged_runs": diverged_runs(measured, split),
                "only_profiled": _only_profiled(training, split),
                "timing_machine": measured.timing_machine,
                "profile_machine": measured.profile_machine,
                "machines": dict(sorted(_counts(measured.runs["machine"].tolist()).items())),
            },
            command=command,
        )
    return counts


def fit_each(
    training: Mapping[str, Rows], of_task: Task, settings: Mapping[str, Settings], *, workers: int = 1
) -> dict[str, Surrogate]:
    """Fit one model for each metric on its rows; a metric without settings has the default ones.

    Fits are spread over processes, the largest first. The number of workers does not change a byte.
    """
    by_size = sorted(training, key=lambda metric: -len(training[metric]))
    calls = [
        {"metric": m, "rows": training[m], "of_task": of_task, "settings": settings.get(m, Settings())} for m in by_size
    ]
    found = dict(zip(by_size, in_processes(fit_surrogate, calls, workers=workers), strict=True))
    return {metric: found[metric] for metric in training}


def read_params(path: Path) -> dict[str, Settings]:
    """Read the settings of some metrics, as `surrogate.tune` writes them.

    Raises:
        MissingData: there is no such file.
        CorruptFile, UnknownFormat: it was damaged or edited, or was written by another version.
        InvalidArgument: a setting does not exist or is out of range.
    """
    content = read_sealed(path)
    if not isinstance(metrics := content.get("metrics"), dict):
        raise CorruptFile(f"{path} holds no settings: 'metrics' must be an object with those of each metric")
    settings, faults = {}, []
    for metric, given in metrics.items():
        if metric not in LEARNED:
            faults.append(f"{metric!r} is not a learned metric")
            continue
        try:
            settings[metric] = Settings.from_dict(given)
        except InvalidArgument as err:
            faults.append(f"{metric}: {err}")
    if faults:
        raise InvalidArgument("\n".join(f"{path}: {fault}" for fault in faults))
    return settings


def diverged_runs(measured: Measurements, split: Split) -> dict[str, int]:
    """Diverged runs of each part: they count although what follows their divergence is not fitted."""
    is_diverged = measured.runs["status"] == "diverged"
    ids, seeds = measured.runs["config_id"][is_diverged], measured.runs["seed"][is_diverged]
    runs = sorted({*zip(ids.tolist(), seeds.tolist(), strict=True)})
    parts = split.parts_of(np.array([i for i, _ in runs], dtype=np.uint64))
    return {name: int((parts == number).sum()) for number, name in enumerate(("train", "valid", "test"))}


def _only_profiled(training: Mapping[str, Rows], split: Split) -> int:
    """How many configs train latency and have no part: once they are trained as well, they may get any."""
    return int((split.parts_of(training["latency"].config_id) < 0).sum()) if "latency" in training else 0


def _counts(values: Sequence[str]) -> dict[str, int]:
    return {value: values.count(value) for value in set(values)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = runs_parser("fit", __doc__, example="runs/ --split split.json --out models/ --metrics valid_acc latency")
    parser.add_argument("--out", type=Path, required=True, help="a folder that is not there yet")
    parser.add_argument("--metrics", nargs="+", default=list(LEARNED), help="default: every learned metric")
    parser.add_argument("--params", type=Path, help="settings that surrogate.tune found (params.json)")
    add_fewest(parser)
    add_workers(parser, 1)
    given = parser.parse_args(argv)

    def work() -> object:
        return fit_all(
            *read_with_split(given.runs, given.split),
            given.out,
            metrics=given.metrics,
            settings=read_params(given.params) if given.params else None,
            fewest=given.fewest,
            workers=given.workers,
            command=sys.argv if argv is None else argv,
        )

    return run_command("surrogate.fit", work)


if __name__ == "__main__":
    sys.exit(main())
