"""Fit one model per learned metric on the training part, and write them into a folder.

python -m surrogate.fit RUNS --split SPLIT --out DIR [--metrics ...] [--params FILE] [--workers 2]
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from jahs.tasks.metrics import LEARNED
from splits.split import Split
from surrogate.command import add_fewest, add_workers, runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import FEWEST, Rows, diverged_runs, training_rows
from surrogate.models.fitting import fit_each, read_params
from surrogate.models.model import ForestSettings, write_surrogate
from workshop.command import run_command
from workshop.folders import new_folder, write_manifest
from workshop.jobs import check_workers

__all__ = ["fit_all", "main"]

_log = logging.getLogger(__name__)


def fit_all(
    measured: Measurements,
    split: Split,
    out: Path,
    *,
    metrics: Sequence[str] = LEARNED,
    settings: Mapping[str, ForestSettings] | None = None,
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


def _only_profiled(training: Mapping[str, Rows], split: Split) -> int:
    """Return how many configs train latency and are in no part; once they are trained, they may be in any."""
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
