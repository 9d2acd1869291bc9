"""Fit the noise between trainings, and measure whether its 90 % intervals hold 90 % of repeats that it has not seen.

python -m surrogate.noise RUNS --split SPLIT [--part test] [--out noise.json]

Without --part the repeats of the train and valid parts are held out fold by fold, in configs; with it the model is
fitted on those parts and measured on another. What is measured is said in `surrogate.judging.coverage`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from jahs.errors import InvalidArgument
from surrogate.command import runs_parser
from surrogate.data.measurements import read_with_split
from surrogate.judging.coverage import coverage, realism, report
from surrogate.judging.noise import cross_validated_coverage, fit_noise
from surrogate.judging.predicted import (
    FOLDED,
    fold_predictions,
    join_predicted,
    repeated_configs,
)
from surrogate.models.fitting import read_params
from workshop.command import run_command
from workshop.folders import write_json

__all__ = ["main"]


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
