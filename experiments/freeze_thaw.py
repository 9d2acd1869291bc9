"""Write the page of freeze-thaw: how well the first epochs of recorded trainings predict their last one.

    python -m experiments.freeze_thaw --docs --out docs/studies/freeze_thaw

Reads folders of runs with `split.json` and `search/params.json` beside them. The same inputs give the same bytes.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from experiments.analysis.freeze_thaw import read_curves, score
from experiments.report.build import add_page_arguments, check_target, write_document, written
from experiments.report.freeze_thaw_page import freeze_thaw_document
from jahs.errors import InvalidArgument
from jahs.files.runs import read_protocol
from workshop.command import new_parser, run_command
from workshop.folders import commit, package_versions, versions_text

_RUNS: Final = (Path("data/cifar10_mini/runs"), Path("data/fashion_mnist_mini/runs"))


def write_freeze_thaw(runs: Sequence[Path], *, out: Path, n_resamples: int, is_for_docs: bool) -> Path:
    """Write the page and return its path.

    Args:
        runs: folders of runs.
        out: folder of the page, see `experiments.report.build.check_target`.
        n_resamples: of the bootstrap.
        is_for_docs: write only Markdown with SVG figures.

    Raises:
        JahsError: a folder cannot be read, or `out` cannot be written.
    """
    if n_resamples < 1:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 1")
    target = check_target(out)
    curves = [read_curves(folder) for folder in runs]
    command = ["python", "-m", "experiments.freeze_thaw", "--runs", *map(str, runs), "--resamples", str(n_resamples)]
    document = freeze_thaw_document(
        [(each, score(each, n_resamples=n_resamples)) for each in curves],
        facts=(
            ("command", shlex.join([*command, "--out", "DIR"])),
            ("commit", str(commit())),
            ("protocols", ", ".join(read_protocol(folder).digest for folder in runs)),
            ("versions", versions_text(package_versions())),
        ),
    )
    return write_document(document, target, is_for_docs=is_for_docs)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of freeze-thaw: how well the first epochs of recorded trainings predict their last one."
    parser = new_parser("experiments.freeze_thaw", about, example="--out out/freeze_thaw")
    parser.add_argument("--runs", type=Path, nargs="+", default=_RUNS, help="folders of runs")
    parser.add_argument("--resamples", type=int, default=1000, help="of the bootstrap (default: %(default)s)")
    add_page_arguments(parser)
    given = parser.parse_args(argv)

    def work() -> object:
        page = write_freeze_thaw(given.runs, out=given.out, n_resamples=given.resamples, is_for_docs=given.docs)
        return written(page)

    return run_command("experiments.freeze_thaw", work)


if __name__ == "__main__":
    sys.exit(main())
