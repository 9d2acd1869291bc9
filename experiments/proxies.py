"""Write the page of the zero-cost proxies from whatever has been scored so far.

    python -m experiments.proxies --out out/proxies

`pipeline.proxies` scores the configs of folders of runs, and `experiments.nasbench201` cells of NAS-Bench-201.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.analysis.proxy_tasks import read_scored
from experiments.report.build import add_page_arguments, check_target, write_document, written
from experiments.report.proxies_page import proxies_document
from jahs.errors import InvalidArgument
from jahs.files.sealed_json import read_sealed
from workshop.command import new_parser, run_command
from workshop.folders import commit, package_versions, versions_text

_RUNS = (Path("data/fashion_mnist_mini/runs"), Path("data/cifar10_mini/runs"))
_CELLS = Path("data/nasbench201/agreement.json")


def write_proxies(runs: Sequence[Path], *, cells: Path, out: Path, n_resamples: int, is_for_docs: bool) -> Path:
    """Write the page and return its path.

    Args:
        runs: folders of runs with scores.
        cells: saved comparison of NAS-Bench-201; left out where it does not exist.
        out: folder of the page, see `experiments.report.build.check_target`.
        n_resamples: of the bootstrap.
        is_for_docs: write only Markdown with SVG figures.

    Raises:
        JahsError: a folder cannot be read, or `out` cannot be written.
    """
    if n_resamples < 0:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 0")
    target = check_target(out)
    tasks = [read_scored(folder) for folder in runs]
    found = read_sealed(cells) if cells.exists() else None
    scorers = {version for task in tasks for version in task.versions} | {
        version for key in ("torch", "machine") for version in (found or {}).get(key, ())
    }
    command = ["python", "-m", "experiments.proxies", "--runs", *map(str, runs), "--cells", str(cells), "--out", "DIR"]
    document = proxies_document(
        tasks,
        found,
        n_resamples=n_resamples,
        facts=(
            ("command", shlex.join(command)),
            ("commit", str(commit())),
            ("scored with torch, on", ", ".join(sorted(scorers))),
            ("versions", versions_text(package_versions())),
        ),
    )
    return write_document(document, target, is_for_docs=is_for_docs)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of the zero-cost proxies from whatever has been scored so far."
    parser = new_parser("experiments.proxies", about, example="--out out/proxies")
    parser.add_argument("--runs", type=Path, nargs="+", default=_RUNS, help="folders of runs with scores")
    parser.add_argument("--cells", type=Path, default=_CELLS, help="comparison of NAS-Bench-201 (default: %(default)s)")
    parser.add_argument("--resamples", type=int, default=200, help="of the bootstrap (default: %(default)s)")
    add_page_arguments(parser)
    given = parser.parse_args(argv)

    def work() -> object:
        page = write_proxies(
            given.runs, cells=given.cells, out=given.out, n_resamples=given.resamples, is_for_docs=given.docs
        )
        return written(page)

    return run_command("experiments.proxies", work)


if __name__ == "__main__":
    sys.exit(main())
