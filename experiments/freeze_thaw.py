"""Write the page of freeze-thaw: how well the first epochs of recorded trainings predict their last one.

    python -m experiments.freeze_thaw --docs --out docs/studies/freeze_thaw

Reads folders of runs with `split.json` and `search/params.json` beside them. The same inputs give the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from experiments.analysis.freeze_thaw import read_curves, score
from experiments.report.build import page_parser, run_page
from experiments.report.freeze_thaw_page import freeze_thaw_document
from jahs.errors import InvalidArgument
from jahs.files.runs import read_protocol
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Document

_COMMAND: Final = "experiments.freeze_thaw"
_RUNS: Final = (Path("data/cifar10_mini/runs"), Path("data/fashion_mnist_mini/runs"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of freeze-thaw: how well the first epochs of recorded trainings predict their last one."
    parser = page_parser(_COMMAND, about)
    parser.add_argument("--runs", type=Path, nargs="+", default=_RUNS, help="folders of runs")
    parser.add_argument("--resamples", type=int, default=1000, help="of the bootstrap (default: %(default)s)")
    given = parser.parse_args(argv)
    flags = ("--runs", *map(str, given.runs), "--resamples", str(given.resamples))
    return run_page(_COMMAND, given, lambda: _document(given.runs, n_resamples=given.resamples), *flags)


def _document(runs: Sequence[Path], *, n_resamples: int) -> Document:
    if n_resamples < 1:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 1")
    curves = [read_curves(folder) for folder in runs]
    protocols = ", ".join(read_protocol(folder).digest for folder in runs)
    return freeze_thaw_document(
        [(each, score(each, n_resamples=n_resamples)) for each in curves],
        facts=(commit_fact(), ("protocols", protocols), versions_fact()),
    )


if __name__ == "__main__":
    sys.exit(main())
