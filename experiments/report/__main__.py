"""Write the page of a study: `python -m experiments.report DIR`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.folder import read_folder
from experiments.imported import open_for_study
from experiments.live.declared import LIVE
from experiments.report.build import build_document
from experiments.report.results import read_results
from experiments.report.shipping import ship
from experiments.report.writing import check_target, write_document, written
from jahs.errors import InvalidArgument, refuse
from jahs.files.atomic import check_folder
from workshop.command import add_release, add_workers, new_parser, run_command
from workshop.jobs import Where


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of a study's trial logs, as HTML and as Markdown."
    parser = new_parser("experiments.report", about, example="out/joint")
    parser.add_argument("folder", type=Path, help="a folder written by python -m experiments.run or experiments.pack")
    add_release(parser)
    parser.add_argument("--out", type=Path, help="target folder (default: FOLDER/report)")
    parser.add_argument("--docs", action="store_true", help="write only Markdown with SVG figures, as in docs/studies")
    parser.add_argument("--ship", type=Path, help="folder for what jahs compare shows, such as jahs/seasons")
    add_workers(parser)
    about = "a record of python -m experiments.retrain; repeatable (default: the one in FOLDER)"
    parser.add_argument("--retrained", type=Path, action="append", default=[], help=about)
    parser.add_argument("--real", type=Path, help="pack of the same study on an imported release: what carries over")
    about = "the imported release of --real, whose objectives `multiobjective` queries again"
    parser.add_argument("--landscape", type=Path, help=about)
    parser.add_argument("--control", type=Path, help="with --real: pack of the same study with --noise mean")
    about = "for live: recorded runs whose repeated trainings measure the noise (default: the record of the release)"
    parser.add_argument("--runs", type=Path, help=about)
    given = parser.parse_args(argv)

    def work() -> object:
        faults = Where(workers=given.workers).faults()
        for name in ("control", "landscape"):
            if getattr(given, name) and not given.real:
                faults.append(f"--{name} goes with --real, which is missing; give both")
        refuse(*faults)
        folder = read_folder(given.folder)
        if given.runs and folder.study.name != LIVE.name:
            raise InvalidArgument(f"--runs goes with the study {LIVE.name}, not with {folder.study.name}; leave it out")
        target = check_target(given.out or given.folder / "report")
        if given.ship:
            check_folder(given.ship)
        if folder.study.name == LIVE.name:
            from experiments.report.live import live_document

            return written(write_document(live_document(given.folder, runs=given.runs), target, is_for_docs=given.docs))
        bench = {task: open_for_study(task, given.release) for task in folder.tasks}
        results = read_results(given.folder, bench=bench, workers=given.workers)
        shipped = {"shipped": [str(path) for path in ship(results, given.ship)]} if given.ship else {}
        packs = {"retrained": given.retrained, "real": given.real, "control": given.control}
        document = build_document(results, **packs, landscape=given.landscape)
        return written(write_document(document, target, is_for_docs=given.docs)) | shipped

    return run_command("experiments.report", work)


if __name__ == "__main__":
    sys.exit(main())
