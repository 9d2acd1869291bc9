"""Fit one model per learned metric on the training part, and write them into a folder.

python -m surrogate.fit RUNS --split SPLIT --out DIR [--metrics ...] [--params FILE]
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument, JahsError, UnknownFormat, UnknownName
from jahs.metrics import LEARNED
from splits.split import Split, read_split
from surrogate.dataset import FEWEST, Measurements, Rows, assemble, check_groups, read_measurements
from surrogate.folders import new_folder, write_manifest
from surrogate.model import Settings, fit_surrogate, write_surrogate

__all__ = ["PARAMS_FORMAT", "fit_all", "main", "read_params"]

PARAMS_FORMAT = 1

_log = logging.getLogger(__name__)


def fit_all(
    measured: Measurements,
    split: Split,
    out: Path,
    *,
    metrics: Sequence[str] = LEARNED,
    settings: dict[str, Settings] | None = None,
    fewest: int = FEWEST,
    command: Sequence[str] = (),
) -> dict[str, dict[str, int]]:
    """Fit the metrics' models on the training part and write the folder, whole or not at all.

    Everything is checked before the first model is fitted.

    Returns:
        How many rows and configs each model was fitted on.

    Raises:
        UnknownName: a metric is not learned.
        InvalidTable, ProtocolMismatch: see `surrogate.dataset`.
        InvalidArgument: `out` is there already or cannot be written.
    """
    if unknown := [name for name in metrics if name not in LEARNED]:
        raise UnknownName.of("metric", unknown[0], LEARNED)
    with new_folder(out) as folder:
        training: dict[str, Rows] = {}
        for metric in dict.fromkeys(metrics):
            training[metric] = assemble(metric, measured, split)["train"]
            check_groups(metric, training[metric], fewest=fewest)
        counts = {}
        for number, (metric, rows) in enumerate(training.items(), 1):
            chosen = (settings or {}).get(metric, Settings())
            fitted = fit_surrogate(metric, rows, measured.task, settings=chosen)
            write_surrogate(folder, fitted)
            counts[metric] = fitted.counts
            _log.info("%d/%d %s: %d rows of %d configs", number, len(training), metric, *fitted.counts.values())
        write_manifest(
            folder,
            facts={
                "task": measured.task.name,
                "protocol": measured.protocol,
                "split": split.digest,
                "models": counts,
                "diverged_runs": _diverged(measured, split),
                "machines": dict(sorted(_counts(measured.runs["machine"].tolist()).items())),
            },
            command=command,
        )
    return counts


def read_params(path: Path) -> dict[str, Settings]:
    """Read the settings of some metrics, as `surrogate.tune` writes them.

    Raises:
        CorruptFile, UnknownFormat: it cannot be read, or was written by another version.
        InvalidArgument: a setting does not exist or is out of range.
    """
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())  # Any: JSON
        version, metrics = content["format"], dict(content["metrics"])
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise CorruptFile(f"{path} cannot be read as settings: {err!r}") from err
    if version != PARAMS_FORMAT:
        raise UnknownFormat(f"{path}: format {version!r}; this version reads format {PARAMS_FORMAT}")
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


def _diverged(measured: Measurements, split: Split) -> dict[str, int]:
    """Diverged runs of each part: they count although what follows their divergence is not fitted."""
    is_diverged = measured.runs["status"] == "diverged"
    ids, seeds = measured.runs["config_id"][is_diverged], measured.runs["seed"][is_diverged]
    runs = sorted({*zip(ids.tolist(), seeds.tolist(), strict=True)})
    parts = split.parts_of(np.array([i for i, _ in runs], dtype=np.uint64))
    return {name: int((parts == number).sum()) for number, name in enumerate(("train", "valid", "test"))}


def _counts(values: Sequence[str]) -> dict[str, int]:
    return {value: values.count(value) for value in set(values)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m surrogate.fit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m surrogate.fit runs/ --split split.json --out models/ --metrics valid_acc latency",
    )
    parser.add_argument("runs", type=Path, help="a folder of runs")
    parser.add_argument("--split", type=Path, required=True, help="the split of its configs")
    parser.add_argument("--out", type=Path, required=True, help="a folder that is not there yet")
    parser.add_argument("--metrics", nargs="+", default=list(LEARNED), help="default: every learned metric")
    parser.add_argument("--params", type=Path, help="settings that surrogate.tune found (params.json)")
    parser.add_argument("--fewest", type=int, default=FEWEST, help="training configs every group needs (%(default)s)")
    given = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    try:
        counts = fit_all(
            read_measurements(given.runs),
            read_split(given.split),
            given.out,
            metrics=given.metrics,
            settings=read_params(given.params) if given.params else None,
            fewest=given.fewest,
            command=sys.argv if argv is None else argv,
        )
    except JahsError as err:
        sys.stderr.write(f"surrogate.fit: {err}\n")
        return 2
    sys.stdout.write(json.dumps(counts, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
