"""Write the page of the zero-cost proxies from whatever has been scored so far.

    python -m experiments.proxies --out out/proxies

`pipeline.proxies` scores the configs of folders of runs, and `experiments.nasbench201` cells of NAS-Bench-201.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from experiments.analysis.proxy_tasks import read_scored
from experiments.report.build import page_parser, run_page
from experiments.report.proxies_page import proxies_document
from jahs.errors import InvalidArgument
from jahs.files.sealed_json import read_sealed
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Document

_COMMAND: Final = "experiments.proxies"
_RUNS: Final = (Path("data/fashion_mnist_mini/runs"), Path("data/cifar10_mini/runs"))
_CELLS: Final = Path("data/nasbench201/agreement.json")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of the zero-cost proxies from whatever has been scored so far."
    parser = page_parser(_COMMAND, about)
    parser.add_argument("--runs", type=Path, nargs="+", default=_RUNS, help="folders of runs with scores")
    parser.add_argument("--cells", type=Path, default=_CELLS, help="comparison of NAS-Bench-201 (default: %(default)s)")
    parser.add_argument("--resamples", type=int, default=200, help="of the bootstrap (default: %(default)s)")
    given = parser.parse_args(argv)
    flags = ("--runs", *map(str, given.runs), "--cells", str(given.cells))
    return run_page(_COMMAND, given, lambda: _document(given.runs, given.cells, n_resamples=given.resamples), *flags)


def _document(runs: Sequence[Path], cells: Path, *, n_resamples: int) -> Document:
    """Return the page; the comparison of NAS-Bench-201 is left out where it does not exist."""
    if n_resamples < 0:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 0")
    tasks = [read_scored(folder) for folder in runs]
    found = read_sealed(cells) if cells.exists() else None
    scorers = {version for task in tasks for version in task.versions} | {
        version for key in ("torch", "machine") for version in (found or {}).get(key, ())
    }
    facts = (commit_fact(), ("scored with torch, on", ", ".join(sorted(scorers))), versions_fact())
    return proxies_document(tasks, found, n_resamples=n_resamples, facts=facts)


if __name__ == "__main__":
    sys.exit(main())
