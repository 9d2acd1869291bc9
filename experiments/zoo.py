"""Write the page that compares model families, from the result files of `surrogate.zoo`; it takes seconds.

    python -m experiments.zoo --out out/zoo

`make zoo` fits the families first, which takes minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from experiments.report.build import page_parser, run_page
from experiments.report.zoo_page import zoo_document
from jahs.errors import InvalidArgument
from jahs.tasks.definitions import task
from surrogate.zoo import read_zoo
from workshop.folders import versions_text
from workshop.pages.document import Document

_COMMAND: Final = "experiments.zoo"
_FOUND: Final = (Path("data/fashion_mnist_mini/zoo.json"), Path("data/cifar10_mini/zoo.json"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = page_parser(_COMMAND, "Write the page that compares model families.")
    parser.add_argument("--results", type=Path, nargs="+", default=_FOUND, help="files of surrogate.zoo")
    parser.add_argument("--resamples", type=int, default=200, help="of the bootstrap (default: %(default)s)")
    given = parser.parse_args(argv)
    flags = ("--results", *map(str, given.results), "--resamples", str(given.resamples))
    return run_page(_COMMAND, given, lambda: _document(given.results, n_resamples=given.resamples), *flags)


def _document(results: Sequence[Path], *, n_resamples: int) -> Document:
    if n_resamples < 1:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 1")
    found = {str(path): read_zoo(path) for path in results}
    if lacking := [path for path, of in found.items() if "xgboost" not in of["families"]]:
        raise InvalidArgument(f"{', '.join(lacking)}: no XGBoost, which all others are compared with; fit it first")
    facts = [
        (path, f"split {of['split']}, measurements {of['measurements']}, fitted with {versions_text(of['versions'])}")
        for path, of in found.items()
    ]
    return zoo_document([(task(of["task"]), of) for of in found.values()], n_resamples=n_resamples, facts=facts)


if __name__ == "__main__":
    sys.exit(main())
