"""Fit linear models of the time of a network; their coefficients weigh the terms in the features of a release.

python -m surrogate.timing RUNS --split SPLIT

The time of an evaluation is fitted to `latency`; the time of a training step, a share of that plus other terms, to
`step_time_s`. Fits minimise relative errors with non-negative coefficients. Prints the coefficients in milliseconds,
and the scores on the validation part.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable
from jahs.models.features import DEFAULT_TIMES, GROUPS, FeatureSet, TimeCoefficients
from jahs.models.features.timing import BACKWARD_TERMS, FORWARD_TERMS
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import Rows, assemble, by_part, features_of
from workshop.command import run_command
from workshop.measured import rows_of
from workshop.ranks import kendall_tau

_MS: Final = 1e3
_FEWEST: Final = 2 * len(FORWARD_TERMS)


def fit_times(measured: Measurements, split: Split) -> tuple[TimeCoefficients, dict[str, tuple[float, float]]]:
    """Fit `forward_time` and `training_time` to the training part of the quiet profile.

    Returns:
        Milliseconds for each term; by time, Kendall's tau and the median relative error on the validation part.

    Raises:
        InvalidTable: too few configs of a part are profiled; also see `surrogate.data.rows.assemble`.
    """
    parts = _profiled(measured, split)
    if faults := [
        f"{name}: {n} configs are profiled, {fewest} are needed; python -m pipeline.profile measures them"
        for name, n, fewest in (("train", len(parts["train"]), _FEWEST), ("valid", len(parts["valid"]), 2))
        if n < fewest
    ]:
        raise InvalidTable("\n".join(faults))
    times, valid = _fitted(measured, parts["train"]), parts["valid"]
    features = FeatureSet(name="times", columns=GROUPS["time"], is_canonical=False, times=times)
    predicted = features_of(valid.X, features, measured.task).T.astype(np.float64)
    truth = (_MS * valid.y, _MS * rows_of(measured.profile, valid.config_id)["step_time_s"].astype(np.float64))
    return times, {
        name: (kendall_tau(y, p), float(np.median(np.abs(p / y - 1))))
        for name, y, p in zip(GROUPS["time"], truth, predicted, strict=True)
    }


def times_of(measured: Measurements, split: Split) -> TimeCoefficients:
    """Return the coefficients fitted to the training part; the default ones if too few configs are profiled."""
    if not len(measured.profile["config_id"]) or len(train := _profiled(measured, split)["train"]) < _FEWEST:
        return DEFAULT_TIMES
    return _fitted(measured, train)


def _profiled(measured: Measurements, split: Split) -> dict[str, Rows]:
    rows = assemble("latency", measured)
    return by_part(rows.take(split.parts_of(rows.config_id) >= 0), split)  # configs in no part may become test configs


def _fitted(measured: Measurements, train: Rows) -> TimeCoefficients:
    features = FeatureSet(name="terms", columns=GROUPS["time_terms"], is_canonical=False)
    columns = features_of(train.X, features, measured.task).T.astype(np.float64)
    terms = dict(zip(GROUPS["time_terms"], columns, strict=True))
    forward = _weights([terms[name] for name in FORWARD_TERMS], _MS * train.y)
    evaluation = sum(weight * terms[name] for weight, name in zip(forward, FORWARD_TERMS, strict=True))
    step = _MS * rows_of(measured.profile, train.config_id)["step_time_s"].astype(np.float64)
    share, *backward = _weights([evaluation, *(terms[name] for name in BACKWARD_TERMS)], step)
    return TimeCoefficients(forward=tuple(forward), share_forward=share, backward=tuple(backward))


def _weights(terms: Sequence[NDArray[np.float64]], times: NDArray[np.float64]) -> list[float]:
    """Return the weights >= 0 of terms that give times with the least relative errors.

    Three digits are as many as the measurements have, and the same on every machine.
    """
    from scipy.optimize import nnls

    X = np.column_stack(terms)
    scale = X.max(axis=0)
    scale[scale == 0] = 1.0  # a term that no config has
    weights, _ = nnls(X / scale / times[:, None], np.ones(len(times)))
    return [float(f"{weight:.3g}") for weight in weights / scale]


def _page(times: TimeCoefficients, scores: Mapping[str, tuple[float, float]]) -> str:
    lines = []
    for name, (tau, error) in scores.items():
        lines += [f"{name}: tau {tau:.3f}, median error {100 * error:.1f} % on the validation part"]
    lines += [f"    share of the time forwards     {times.share_forward:.3g}"]
    for part, names, values in (
        ("forward", FORWARD_TERMS, times.forward),
        ("backward", BACKWARD_TERMS, times.backward),
    ):
        lines += [f"    {part + ' ' + name:30} {value:.3g}" for name, value in zip(names, values, strict=True)]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    given = runs_parser("timing", __doc__, example="runs/ --split split.json").parse_args(argv)
    return run_command("surrogate.timing", lambda: _page(*fit_times(*read_with_split(given.runs, given.split))))


if __name__ == "__main__":
    sys.exit(main())
