"""Write the page that compares model families, from the result files of `surrogate.zoo`; it takes seconds.

    python -m experiments.zoo --out out/zoo

`make zoo` fits the families first, which takes minutes.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.report.build import add_page_arguments, check_target, write_document, written
from experiments.report.zoo_page import zoo_document
from jahs.errors import InvalidArgument
from jahs.tasks.definitions import task
from surrogate.zoo import read_zoo
from workshop.command import new_parser, run_command
from workshop.folders import versions_text

_FOUND = (Path("data/fashion_mnist_mini/zoo.json"), Path("data/cifar10_mini/zoo.json"))


def write_zoo(results: Sequence[Path], *, out: Path, n_resamples: int, is_for_docs: bool) -> Path:
    """Write the page and return its path.

    Args:
        results: files of `surrogate.zoo`, one for each task.
        out: folder of the page, see `experiments.report.build.check_target`.
        n_resamples: of the bootstrap.
        is_for_docs: write only Markdown with SVG figures.

    Raises:
        InvalidArgument: a number is out of range, or a result has no XGBoost.
        JahsError: a result cannot be read, or `out` cannot be written.
    """
    if n_resamples < 1:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 1")
    target = check_target(out)
    found = [(path, read_zoo(path)) for path in results]
    if lacking := [str(path) for path, of in found if "xgboost" not in of["families"]]:
        raise InvalidArgument(f"{', '.join(lacking)}: no XGBoost, which all others are compared with; fit it first")
    command = ["python", "-m", "experiments.zoo", "--results", *map(str, results), "--resamples", str(n_resamples)]
    facts = [("command", shlex.join([*command, "--out", "DIR"]))]
    for path, of in found:
        versions = versions_text(of["versions"])
        facts.append((str(path), f"split {of['split']}, measurements {of['measurements']}, fitted with {versions}"))
    document = zoo_document([(task(of["task"]), of) for _, of in found], n_resamples=n_resamples, facts=facts)
    return write_document(document, target, is_for_docs=is_for_docs)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page that compares model families."
    parser = new_parser("experiments.zoo", about, example="--out out/zoo")
    parser.add_argument("--results", type=Path, nargs="+", default=_FOUND, help="files of surrogate.zoo")
    parser.add_argument("--resamples", type=int, default=200, help="of the bootstrap (default: %(default)s)")
    add_page_arguments(parser)
    given = parser.parse_args(argv)

    def work() -> object:
        page = write_zoo(given.results, out=given.out, n_resamples=given.resamples, is_for_docs=given.docs)
        return written(page)

    return run_command("experiments.zoo", work)


if __name__ == "__main__":
    sys.exit(main())
