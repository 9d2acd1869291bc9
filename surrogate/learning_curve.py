"""Show how scores grow with the number of training configs, and extrapolate them.

python -m surrogate.learning_curve RUNS --split SPLIT --metric valid_acc --sizes 100 200 400 800 1400 --target 1400

Sizes count training configs: 70 % of those collected, so 2,000 collected configs are 1,400. 1 - tau falls as a power of
the size, log(1 - tau) = a + b log(size), fitted by least squares over all sizes and seeds. The interval is that of one
more fit with one more seed, by Student's t, with one degree of freedom less 2 for each *size*: seeds of one size share
their validation rows, and large subsets share configs, so they are not worth as many fits. As a check, the largest size
is predicted from the others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np

from jahs.errors import InvalidArgument
from jahs.models.features import feature_set
from surrogate.command import add_workers, runs_parser
from surrogate.data.measurements import read_with_split
from surrogate.data.rows import assemble, by_part
from surrogate.judging.curve import Point, Prediction, curve, predictions
from surrogate.models.model import ForestSettings
from workshop.command import run_command
from workshop.folders import write_json

__all__ = ["CURVE_FORMAT", "curve_text", "main"]

CURVE_FORMAT: Final = 1


def curve_text(points: Sequence[Point], predictions: Mapping[str, Prediction]) -> str:
    """Return the curve as Markdown, one size per row, with the predictions below."""
    lines = [
        "| training configs | seeds | tau, last epoch | spread | R2, all epochs |",
        "| --- | --- | --- | --- | --- |",
    ]
    for size in sorted({point.n_configs for point in points}):
        taus = [point.tau for point in points if point.n_configs == size]
        r2 = [point.r2 for point in points if point.n_configs == size]
        spread = float(np.std(taus, ddof=1)) if len(taus) > 1 else math.nan
        lines.append(f"| {size} | {len(taus)} | {np.mean(taus):.4f} | {spread:.4f} | {np.mean(r2):.4f} |")
    lines += [
        f"\n{name}: {p.value:.4f} with {p.n_configs} training configs, {100 * p.level:.0f} % interval {p.low:.4f} to "
        f"{p.high:.4f}; 1 - score falls with size to the power {p.exponent:.2f}"
        for name, p in predictions.items()
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = runs_parser("learning_curve", __doc__, example="runs/ --split split.json --sizes 100 200 400 800 1400")
    parser.add_argument("--metric", default="valid_acc", help="a learned metric (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="numbers of training configs, five or more")
    parser.add_argument("--seeds", type=int, default=5, help="subsets of each size (%(default)s)")
    parser.add_argument("--target", type=int, default=1400, help="training configs to predict for (%(default)s)")
    parser.add_argument("--features", help="a feature set other than the metric's own")
    parser.add_argument("--trees", type=int, default=300, help="in every forest (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="of every forest (%(default)s)")
    add_workers(parser, 1)
    parser.add_argument("--out", type=Path, help="a JSON file for the points and predictions")
    given = parser.parse_args(argv)

    def work() -> str:
        measured, split = read_with_split(given.runs, given.split)
        points = curve(
            given.metric,
            measured,
            by_part(assemble(given.metric, measured), split),
            sorted(set(given.sizes)),
            seeds=range(given.seeds),
            settings=ForestSettings(n_trees=given.trees, learning_rate=given.learning_rate),
            features=feature_set(given.features) if given.features else None,
            workers=given.workers,
        )
        found, reasons = predictions(points, given.target)
        if "tau" in reasons:
            raise InvalidArgument(reasons["tau"])
        if given.out:
            content = {"points": [asdict(p) for p in points], "predictions": {k: asdict(p) for k, p in found.items()}}
            write_json(given.out, {"format": CURVE_FORMAT, "metric": given.metric, "split": split.digest, **content})
        return curve_text(points, found)

    return run_command("surrogate.learning_curve", work)


if __name__ == "__main__":
    sys.exit(main())
