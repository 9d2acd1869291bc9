"""Compare forests of valid_acc that learn from a teacher with one that does not, by cross-validation.

python -m surrogate.top_fits RUNS --split SPLIT [--params TUNED/params.json] [--out FITS]

Only train and validation configs are read. Every fit predicts held-out configs at the last epoch, and is compared with
their first seed. The teacher (`surrogate.models.teacher`) is shown for comparison.
A forest is eligible if it loses at most 0.005 of tau over the whole space. Of the eligible ones, the one with the
highest tau in the measured top quarter is chosen, if the 90 % interval of its gain is above 0; for the last
line, the fit is chosen on all other folds before it predicts a fold, so that its scores are not biased by the choice.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.summaries import Interval
from jahs.errors import CorruptFile
from jahs.files.sealed_json import read_sealed, sealed_text
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import Rows, development_rows
from surrogate.judging.agreement import first_seed, top_tau
from surrogate.judging.top import full_rows
from surrogate.models.boosting import UNTUNED, ForestSettings
from surrogate.models.fitting import held_out_rows, read_params
from surrogate.models.model import default_features, fit_surrogate, fit_transform
from surrogate.models.optima import MAIN
from surrogate.models.teacher import teach
from workshop.command import run_command
from workshop.folders import check_file, commit, write_text
from workshop.pages.markdown import table_text
from workshop.ranks import kendall_tau
from workshop.resampling import bootstrap_estimates, interval_text

MOST_LOST: Final = 0.005  # the largest loss of tau over the whole space that a gain at the top may cost
_N_RESAMPLES: Final = 400
_FEWEST_FULL: Final = 20
_PRESENT: Final = "forest"
_SHOWN: Final = "Gaussian process"  # for comparison: it answers too slowly to ship
_DISTILLED: Final = (20_000, 80_000)
_HEADS: Final = (
    "fit", "tau, whole space", "difference", "tau, measured top quarter", "difference", "bias, predicted best tenth",
    "bias, measured best tenth", "MAE, predicted best tenth", "tau, full size",
    "bias, predicted best tenth at full size", "eligible",
)  # fmt: skip

_log = logging.getLogger(__name__)
_Floats = NDArray[np.float64]


def fit_all(train: Rows, out: Rows, measured: Measurements, settings: ForestSettings) -> dict[str, _Floats]:
    """Return the predictions of every fit to `train` for `out`, the plain forest first."""
    teacher = teach(train, measured.task, default_features(MAIN), fit_transform(MAIN, train.y))
    return {
        _PRESENT: fit_forest(train, out, measured, settings),
        _SHOWN: teacher.predict_last(out.X),
        **{f"{n:,} distilled": fit_forest(train, out, measured, settings, n_distilled=n) for n in _DISTILLED},
    }


def fit_forest(
    train: Rows, out: Rows, measured: Measurements, settings: ForestSettings, *, n_distilled: int = 0
) -> _Floats:
    """Return the predictions of a forest that learns from the teacher for `n_distilled` drawn configs."""
    settings = replace(settings, n_distilled=n_distilled)
    return fit_surrogate(MAIN, train, measured.task, settings=settings).predict(out.X)


def compare_fits(
    measured: Measurements,
    split: Split,
    *,
    settings: ForestSettings = UNTUNED,
    fit: Callable[[Rows, Rows, Measurements, ForestSettings], Mapping[str, _Floats]] = fit_all,
    n_folds: int = 5,
) -> dict[str, Any]:  # Any: JSON
    """Return the table of the fits, of which a plain forest is the first, and which one is chosen."""
    rows = development_rows(MAIN, measured, split)
    is_scored = (rows.epoch == measured.task.max_epoch) & first_seed(rows)
    scored = rows.take(is_scored)
    predicted: dict[str, _Floats] = {}
    fold = np.empty(len(scored), np.int64)
    for number, is_out in enumerate(held_out_rows(measured, rows, n_folds, seed=0)):
        train, out = rows.take(~is_out), rows.take(is_out & is_scored)
        _log.info("fold %d/%d", number + 1, n_folds)
        fold[is_out[is_scored]] = number
        for name, values in fit(train, out, measured, settings).items():
            predicted.setdefault(name, np.empty(len(scored)))[is_out[is_scored]] = values
    chosen = _choose(scored, predicted)
    nested = np.empty(len(scored))
    for number in range(n_folds):
        is_other, is_fold = fold != number, fold == number
        name = _choose(scored.take(is_other), {name: p[is_other] for name, p in predicted.items()})
        nested[is_fold] = predicted[name][is_fold]
    fits = {**predicted, "chosen on the other folds": nested}
    return {
        "chosen": chosen,
        "columns": list(_HEADS),
        "commit": commit(),
        "most_lost": MOST_LOST,
        "n_folds": n_folds,
        "n_configs": len(scored),
        "rows": [_row(name, scored, p, predicted[_PRESENT]) for name, p in fits.items()],
        "split": split.digest,
        "verdict": "no fit is clearly better at the top" if chosen == _PRESENT else f"“{chosen}” is chosen",
    }


def read_fits(path: Path) -> dict[str, Any]:  # Any: JSON
    """Read the result file of this command."""
    fits = read_sealed(path)
    if missing := {"columns", "most_lost", "n_configs", "rows", "verdict"} - fits.keys():
        raise CorruptFile(f"{path} lacks {', '.join(sorted(missing))}; run python -m surrogate.top_fits again")
    return fits


def _choose(scored: Rows, predicted: Mapping[str, _Floats]) -> str:
    present = predicted[_PRESENT]
    best, most = _PRESENT, -math.inf
    for name, p in predicted.items():
        if name in (_PRESENT, _SHOWN) or not _is_eligible(scored, p, present):
            continue
        gain = _gain(top_tau, scored, p, present)
        if gain.low > 0 and gain.value > most:
            best, most = name, gain.value
    return best


def _is_eligible(scored: Rows, p: _Floats, present: _Floats) -> bool:
    return kendall_tau(scored.y, p) >= kendall_tau(scored.y, present) - MOST_LOST


def _gain(score: Callable[[_Floats, _Floats], float], scored: Rows, p: _Floats, present: _Floats) -> Interval:
    """Return the gain in a score over the current fit, with a paired 90 % bootstrap interval."""
    y = scored.y
    (gain,) = bootstrap_estimates(
        lambda at: score(y[at], p[at]) - score(y[at], present[at]), len(y), level=0.9, n_resamples=_N_RESAMPLES
    )
    return gain


def _row(name: str, scored: Rows, p: _Floats, present: _Floats) -> list[str]:
    y = scored.y
    error = p - y
    is_predicted_best, is_measured_best = p >= np.quantile(p, 0.9), y >= np.quantile(y, 0.9)
    full = np.isin(scored.config_id, full_rows(scored, epoch=int(scored.epoch.max())).config_id)
    has_full = full.sum() >= _FEWEST_FULL
    differences = [
        "–" if name == _PRESENT else interval_text(_gain(score, scored, p, present), 3, sign="+")
        for score in (kendall_tau, top_tau)
    ]
    return [
        name,
        f"{kendall_tau(y, p):.3f}",
        differences[0],
        f"{top_tau(y, p):.3f}",
        differences[1],
        f"{error[is_predicted_best].mean():+.2f}",
        f"{error[is_measured_best].mean():+.2f}",
        f"{np.abs(error[is_predicted_best]).mean():.2f}",
        f"{kendall_tau(y[full], p[full]):.3f}" if has_full else "not measured yet",
        f"{error[full & (p >= np.quantile(p[full], 0.9))].mean():+.2f}" if has_full else "not measured yet",
        "–" if name in (_PRESENT, _SHOWN) else "yes" if _is_eligible(scored, p, present) else "no",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    parser = runs_parser("top_fits", __doc__, example="runs/ --split split.json --params tuned/params.json")
    parser.add_argument("--params", type=Path, help="settings that surrogate.tune found (params.json)")
    parser.add_argument("--out", type=Path, help="a file for surrogate.figures --fits")
    parser.add_argument("--folds", type=int, default=5, help="folds of the cross-validation (%(default)s)")
    given = parser.parse_args(argv)

    def work() -> str:
        if given.out:
            check_file(given.out)
        settings = read_params(given.params).get(MAIN, UNTUNED) if given.params else UNTUNED
        fits = compare_fits(*read_with_split(given.runs, given.split), settings=settings, n_folds=given.folds)
        if given.out:
            write_text(given.out, sealed_text(fits))
        table = table_text(fits["columns"], fits["rows"])
        return f"{table}\n\n{fits['n_configs']} configs, {given.folds} folds; {fits['verdict']}"

    return run_command("surrogate.top_fits", work)


if __name__ == "__main__":
    sys.exit(main())
