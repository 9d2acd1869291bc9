"""Fit linear models of the time of a network: the coefficients in `jahs.models.features.timing`.

python -m surrogate.timing RUNS --split SPLIT

The time of an evaluation is fitted to `latency`, and the time of a training step, as a share of that and a rest, to
`step_time_s`: relative errors, non-negative coefficients. Prints the coefficients in milliseconds, and the scores on
the validation part.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable
from jahs.files.tables import Table
from jahs.models.features import FeatureBuilder, FeatureSet
from jahs.models.features.timing import BACKWARD, FORWARD
from jahs.tasks.definitions import Task
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import Rows, assemble, by_part
from workshop.command import run_command
from workshop.ranks import kendall_tau

__all__ = ["TimeModel", "fit_times", "main"]

_MS: Final = 1e3
_SHARE: Final = "share of the time forwards"


class TimeModel(NamedTuple):
    """A linear model of a time.

    Attributes:
        coefficients: milliseconds per term; the share has no unit.
        tau, error: Kendall's tau and the median relative error on the validation part.
    """

    coefficients: dict[str, float]
    tau: float
    error: float


def fit_times(measured: Measurements, split: Split) -> dict[str, TimeModel]:
    """Fit `forward_time` and `training_time` to the training part of the quiet profile.

    Raises:
        InvalidTable: too few configs of a part are profiled; also see `surrogate.data.rows.assemble`.
    """
    rows = assemble("latency", measured)
    parts = by_part(rows.take(split.parts_of(rows.config_id) >= 0), split)  # the others may become test configs
    train, valid = parts["train"], parts["valid"]
    if faults := [
        f"{name}: {len(rows)} configs are profiled, {fewest} are needed; python -m pipeline.profile measures them"
        for name, rows, fewest in (("train", train, 2 * len(FORWARD)), ("valid", valid, 2))
        if len(rows) < fewest
    ]:
        raise InvalidTable("\n".join(faults))
    forward = [_terms(FORWARD, rows, measured.task) for rows in (train, valid)]
    found = _fit(list(FORWARD), forward, [_MS * rows.y for rows in (train, valid)])
    weights = np.array(list(found.coefficients.values()))
    both = [
        np.column_stack([terms @ weights, _terms(BACKWARD, rows, measured.task)])
        for terms, rows in zip(forward, (train, valid), strict=True)
    ]
    steps = [_MS * _step_times(measured.profile, rows) for rows in (train, valid)]
    return {"forward_time": found, "training_time": _fit([_SHARE, *BACKWARD], both, steps)}


def _terms(names: Iterable[str], rows: Rows, of_task: Task) -> NDArray[np.float64]:
    features = FeatureSet(name="terms", columns=tuple(names), is_canonical=False)
    return FeatureBuilder(features, of_task).build(rows.X).astype(np.float64)


def _step_times(profile: Table, rows: Rows) -> NDArray[np.float64]:
    order = np.argsort(profile["config_id"])
    places = order[np.searchsorted(profile["config_id"], rows.config_id, sorter=order)]
    return profile["step_time_s"][places].astype(np.float64)


def _fit(names: Sequence[str], terms: Sequence[NDArray[np.float64]], times: Sequence[NDArray[np.float64]]) -> TimeModel:
    """Fit to the first of each pair, the training part, and score on the second."""
    from scipy.optimize import nnls

    train, valid = terms
    scale = train.max(axis=0)
    weights, _ = nnls(train / scale / times[0][:, None], np.ones(len(train)))
    predicted = valid / scale @ weights
    return TimeModel(
        coefficients=dict(zip(names, (weights / scale).tolist(), strict=True)),
        tau=kendall_tau(times[1], predicted),
        error=float(np.median(np.abs(predicted / times[1] - 1))),
    )


def _page(found: Mapping[str, TimeModel]) -> str:
    lines = []
    for name, model in found.items():
        lines += [f"{name}: tau {model.tau:.3f}, median error {100 * model.error:.1f} % on the validation part"]
        lines += [f"    {term:30} {value:.3g}" for term, value in model.coefficients.items()]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    given = runs_parser("timing", __doc__, example="runs/ --split split.json").parse_args(argv)
    return run_command("surrogate.timing", lambda: _page(fit_times(*read_with_split(given.runs, given.split))))


if __name__ == "__main__":
    sys.exit(main())
