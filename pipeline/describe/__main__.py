"""Write the page about a folder of runs: `python -m pipeline.describe RUNS --out docs/data`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.describe.measured import read_measured
from pipeline.describe.page import describe
from workshop.command import new_parser, run_command
from workshop.folders import write_text, writing
from workshop.pages.html import svg_text
from workshop.pages.markdown import to_markdown
from workshop.pages.style import follow_scheme


def write_page(runs: Path, out: Path) -> list[Path]:
    """Write `<task>.md` and `<task>/*.svg` into a folder, replacing those of an older page; return their paths."""
    measured = read_measured(runs)
    name, document = measured.task.name, describe(measured)
    figures = {out / name / f"{figure.name}.svg": follow_scheme(svg_text(figure)) for figure in document.figures}
    with writing(out):
        (out / name).mkdir(parents=True, exist_ok=True)
        for old in {*(out / name).glob("*.svg")} - {*figures}:
            old.unlink()
        page = {out / f"{name}.md": to_markdown(document, has_png=False, folder=name)}
        for path, content in {**figures, **page}.items():
            write_text(path, content)
    return sorted({*figures, *page})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    about = "Write a page that describes a folder of runs: protocol, counts, cost, plots, noise."
    parser = new_parser("pipeline.describe", about, example="data/fashion_mnist_mini/runs --out docs/data")
    parser.add_argument("runs", type=Path, metavar="RUNS", help="a folder of runs")
    parser.add_argument("--out", type=Path, required=True, help="folder of pages, such as docs/data")
    given = parser.parse_args(argv)

    def work() -> object:
        paths = write_page(given.runs, given.out)
        return {"files": [str(path) for path in paths], "bytes": sum(path.stat().st_size for path in paths)}

    return run_command("pipeline.describe", work)


if __name__ == "__main__":
    sys.exit(main())
