"""Fit the noise between trainings, and measure the coverage of its 90 % intervals on held-out repeats.

python -m surrogate.noise RUNS --split SPLIT [--part test] [--out noise.json]

By default, coverage is cross-validated over the configs of the train and valid parts. With --part, the model is fitted
to those parts and measured on another. See `surrogate.judging.coverage`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from jahs.errors import InvalidArgument
from surrogate.card.page import noise_blocks
from surrogate.command import runs_parser
from surrogate.data.measurements import read_with_split
from surrogate.judging.coverage import coverage, realism
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
from workshop.pages.document import Document, sections_of
from workshop.pages.markdown import to_markdown

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
        if given.out:
            write_json(given.out, model.to_dict())
        covered = coverage(model, held_out) if given.part else cross_validated_coverage(folded, measured.task)
        found = {"coverage": [asdict(c) for c in covered], "realism": [asdict(r) for r in realism(model, held_out)]}
        if given.json:
            return found
        shown = {"folds": [], "test": [], "test" if given.part else "folds": found["coverage"]}
        blocks = noise_blocks({**found, **shown, "counts": model.counts})
        return to_markdown(
            Document(title="Noise between runs", subtitle="", sections=sections_of(["Coverage", *blocks]))
        )

    return run_command("surrogate.noise", work)


if __name__ == "__main__":
    sys.exit(main())
