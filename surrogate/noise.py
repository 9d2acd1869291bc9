"""Fit the noise between trainings, and measure whether its 90 % intervals hold 90 % of repeats that it has not seen.

python -m surrogate.noise RUNS --split SPLIT [--part test] [--out noise.json]

Without --part the repeats of the train and valid parts are held out fold by fold, in configs; with it the model is
fitted on those parts and measured on another. What is measured is said in `surrogate.judging.coverage`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np

from jahs.errors import InvalidArgument, InvalidTable
from jahs.models.noise import NoiseModel
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES
from surrogate.command import runs_parser
from surrogate.data.measurements import read_with_split
from surrogate.fit import read_params
from surrogate.judging.coverage import Coverage, Realism, coverage, held, realism, report, summary
from surrogate.judging.predicted import (
    FOLDED,
    NOISY,
    Predicted,
    choose_configs,
    fold_predictions,
    join_predicted,
    outcome_deviations,
    repeated_configs,
    seed_deviations,
)
from surrogate.judging.spreads import fit_correlation, fit_spreads, fit_time_spread
from workshop.command import run_command
from workshop.folders import write_json

__all__ = [
    "NOISY",
    "Coverage",
    "Predicted",
    "Realism",
    "coverage",
    "cross_validated_coverage",
    "fit_noise",
    "fold_predictions",
    "join_predicted",
    "main",
    "realism",
]

_FEWEST: Final = 5


def fit_noise(predicted: Mapping[str, Predicted], of_task: Task) -> NoiseModel:
    """Fit both spreads and the correlation.

    Args:
        predicted: every metric of `NOISY`, with predictions by models that have not seen the configs.
        of_task: whose.

    Raises:
        InvalidTable: fewer than five configs have repeats.
    """
    between = {metric: seed_deviations(metric, predicted[metric]) for metric in NOISY}
    around = {metric: outcome_deviations(metric, predicted[metric]) for metric in NOISY}
    n_repeated = min(len(np.unique(between[metric].config_id)) for metric in ACCURACIES)
    if n_repeated < _FEWEST:
        raise InvalidTable(
            f"{n_repeated} configs were trained with more than one seed; noise needs {_FEWEST} at least: collect more"
        )
    seeds, outcomes = (
        fit_spreads({metric: of[metric] for metric in ACCURACIES}, of_task.max_epoch) for of in (between, around)
    )
    return NoiseModel(
        task=of_task.name,
        max_epoch=of_task.max_epoch,
        accuracies={name: {"seed": seeds[name], "outcome": outcomes[name]} for name in ACCURACIES},
        runtime={"seed": fit_time_spread(between["runtime"]), "outcome": fit_time_spread(around["runtime"])},
        correlation=fit_correlation({name: between[name] for name in ACCURACIES}, seeds, of_task.max_epoch),
        counts={
            "configs": len(np.unique(around["valid_acc"].config_id)),
            "repeated_configs": n_repeated,
            "timed_repeated_configs": len(np.unique(between["runtime"].config_id)),
        },
    )


def cross_validated_coverage(predicted: Mapping[str, Predicted], of_task: Task, *, n_folds: int = 5) -> list[Coverage]:
    """Measure `coverage` with every config held out once; five configs with repeats must remain."""
    repeated = repeated_configs(predicted)
    others = np.setdiff1d(np.unique(predicted["valid_acc"].rows.config_id), repeated)
    found = []
    for number in range(n_folds):
        held_out = np.concatenate([repeated[number::n_folds], others[number::n_folds]])
        model = fit_noise(choose_configs(predicted, held_out, is_in=False), of_task)
        here = choose_configs(predicted, held_out, is_in=True)
        found += [part for metric in NOISY for part in held(model, metric, here[metric])]
    return summary(found)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = runs_parser("noise", __doc__, example="runs/ --split split.json --out noise.json")
    parser.add_argument("--part", choices=["test"], help="measure on this part, once, instead of fold by fold")
    parser.add_argument("--folds", type=int, default=10, help="of the ensemble that predicts (%(default)s)")
    parser.add_argument("--params", type=Path, help="settings that surrogate.tune found (params.json)")
    parser.add_argument("--seed", type=int, default=0, help="of the folds (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file for the model, fitted on train and valid")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)

    def work() -> object:
        measured, split = read_with_split(given.runs, given.split)
        settings = read_params(given.params) if given.params else None
        parts = fold_predictions(measured, split, n_folds=given.folds, settings=settings, seed=given.seed)
        folded = {metric: join_predicted([of[part] for part in FOLDED]) for metric, of in parts.items()}
        model = fit_noise(folded, measured.task)
        held_out = {metric: of["test"] for metric, of in parts.items()} if given.part else folded
        if given.part and not len(repeated_configs(held_out)):
            raise InvalidArgument("part=test has no repeats; leave --part out")
        found = coverage(model, held_out) if given.part else cross_validated_coverage(folded, measured.task)
        compared = realism(model, held_out)
        if given.out:
            write_json(given.out, model.to_dict())
        if not given.json:
            return report(found, compared)
        return {"coverage": [asdict(c) for c in found], "realism": [asdict(r) for r in compared]}

    return run_command("surrogate.noise", work)


if __name__ == "__main__":
    sys.exit(main())
