"""Write the report of a study: `python -m experiments.report DIR`."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.benches import open_benchmark
from experiments.folder import read_folder
from experiments.report.build import write_report
from jahs.errors import JahsError
from jahs.stdout import write_stdout

__all__ = ["main"]

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.report",
        description="Write one HTML page, and the same as Markdown with pictures, from a study's trial logs.",
        epilog="Example: python -m experiments.report out/joint",
    )
    parser.add_argument("folder", type=Path, help="a folder that python -m experiments.run has written")
    parser.add_argument("--release", type=Path, help="folder of a release, or of one per task (default: found by jahs)")
    parser.add_argument("--out", type=Path, help="where to write (default: FOLDER/report)")
    parser.add_argument("--docs", action="store_true", help="write Markdown with SVG figures alone, as in docs/studies")
    parser.add_argument("--workers", type=int, default=2, help="processes that read logs (default: %(default)s)")
    given = parser.parse_args(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        bench = {task: open_benchmark(task, given.release) for task in read_folder(given.folder).tasks}
        workers = max(given.workers, 1)
        page = write_report(given.folder, bench=bench, out=given.out, workers=workers, is_for_docs=given.docs)
    except JahsError as err:
        _log.error("%s", err)
        return 2
    write_stdout(json.dumps({"page": str(page), "markdown": str(page.with_name("report.md"))}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
