"""A round of proposals: the predictions of the release at the time, and the measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.files.tables import rows_of
from jahs.schema import FINAL_SOURCE, SOURCES
from splits.split import Split
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Rows, development_rows
from surrogate.judging.agreement import Scores, agreement, first_seed
from surrogate.models.optima import MAIN

Known: TypeAlias = tuple[Callable[[NDArray[np.float32]], NDArray[np.float64]], NDArray[np.uint64]]
"""A release's predictions for encoded configs, and the configs that it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """One source of one round.

    Attributes:
        round, source: of the proposals.
        release: that predicted it, "" if none is known.
        n_configs, n_runs: trained, of train and valid.
        n_new: configs that the release did not know, which the numbers are of.
        predicted, measured: means over the new configs; None where there is none, or the release is not at hand.
        scores: agreement of predictions and measurements, first seeds.
    """

    round: int
    source: str
    release: str
    n_configs: int
    n_runs: int
    n_new: int
    predicted: float | None
    measured: float | None
    scores: Scores | None


def rounds_of(measured: Measurements, split: Split, releases: Mapping[str, Known]) -> list[Came]:
    """Return the outcome of each source in each round, in order; configs of the test part are not read.

    A source that no release proposed is judged by the one release of its round.

    Args:
        measured, split: see `surrogate.data.measurements.read_with_split`.
        releases: those at hand, by every sha256 that they answer as.
    """
    if "source" not in measured.configs:
        return []
    rows = development_rows(MAIN, measured, split)
    rows = rows.take(rows.epoch == measured.task.max_epoch)
    configs = rows_of(measured.configs, rows.config_id)
    source, number, release = (configs[name] for name in ("source", "round", "release"))
    is_listed = ~np.isin(source, ["uniform", FINAL_SOURCE])
    found = []
    for this in np.unique(number[is_listed]).tolist():
        of_round = is_listed & (number == this)
        proposers = [one for one in np.unique(release[of_round]).tolist() if one]
        for name in [one for one in SOURCES if one in source[of_round]]:
            is_in = of_round & (source == name)
            own = [one for one in np.unique(release[is_in]).tolist() if one] or proposers
            by = own[0] if len(own) == 1 else ""
            found.append(_came(rows.take(is_in), releases.get(by), int(this), name, by))
    return found


def _came(rows: Rows, known: Known | None, number: int, source: str, release: str) -> Came:
    came = Came(
        round=number, source=source, release=release, n_configs=rows.n_configs, n_runs=len(rows), n_new=0,
        predicted=None, measured=None, scores=None,
    )  # fmt: skip
    if known is None:
        return came
    ask, seen = known
    first = rows.take(first_seed(rows) & ~np.isin(rows.config_id, seen))
    if not len(first):
        return came
    predicted = ask(first.X)
    return replace(
        came,
        n_new=len(first),
        predicted=float(predicted.mean()),
        measured=float(first.y.mean()),
        scores=agreement(MAIN, first.y, predicted),
    )
