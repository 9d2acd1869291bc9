"""Write documents as folders of pages, for every command that writes one, and tables of values."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument
from jahs.files.atomic import change_folder
from workshop.command import new_parser, run_command
from workshop.folders import writing
from workshop.pages.document import Document, Table, opened
from workshop.pages.html import svg_text, to_html
from workshop.pages.markdown import to_markdown
from workshop.pages.style import follow_scheme, styled
from workshop.resampling import interval_text

_DOTS_PER_INCH: Final = 144
_PAGE_FILES: Final = frozenset({"report.md", "README.md", "index.html", "tables.json", "paired.csv", "figures"})
_DRAWINGS: Final = frozenset({".svg", ".png"})


def table(
    caption: str, head: Iterable[str], rows: Iterable[Iterable[object]], *, n_labels: int = 1, is_folded: bool = False
) -> Table:
    """Return a table of values, of which intervals have two digits."""
    shown = (tuple(interval_text(cell) if isinstance(cell, Interval) else str(cell) for cell in row) for row in rows)
    return Table(caption=caption, columns=tuple(head), rows=tuple(shown), n_labels=n_labels, is_folded=is_folded)


def page_parser(command: str, about: str, *, example: str = "") -> argparse.ArgumentParser:
    """Return the parser of a command that writes a page, with --out and --docs."""
    parser = new_parser(command, about, example=f"{example} --out out/{command.rpartition('.')[2]}".lstrip())
    parser.add_argument("--out", type=Path, required=True, help="folder of the page: new, empty, or of an older page")
    parser.add_argument("--docs", action="store_true", help="write only Markdown with SVG figures, as in docs/studies")
    return parser


def all_flags(given: argparse.Namespace) -> list[str]:
    """Return the arguments of a command that writes a page, defaults included, without folders of this machine."""
    flags = []
    for name, value in vars(given).items():
        if name not in {"out", "docs", "release"}:
            flags += [f"--{name}", *map(str, value if isinstance(value, list | tuple) else [value])]
    return flags


def run_page(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    make: Callable[[argparse.Namespace], Document],
    *,
    flags: Callable[[argparse.Namespace], list[str]] = all_flags,
) -> int:
    """Write the page of a command, print where it is, and return the exit status.

    Args:
        parser: a `page_parser`.
        make: returns the document of the parsed arguments, with its figures drawn.
        flags: returns the arguments of the command line that makes the page again, the first fact of the page.
    """
    given = parser.parse_args(argv)

    def work() -> object:
        target = check_target(given.out)
        with styled():
            document = make(given)
        command_line = f"{parser.prog} {shlex.join([*flags(given), '--out', 'DIR'])}"
        document = replace(document, facts=(("command", command_line), *document.facts))
        return written(write_document(document, target, is_for_docs=given.docs))

    return run_command(parser.prog.removeprefix("python -m "), work)


def written(page: Path) -> dict[str, str]:
    """Return the paths of a page, as commands print them."""
    return {"page": str(page), "markdown": str(page.with_name("report.md"))}


def check_target(target: Path) -> Path:
    """Return the absolute path of a folder for a page: new, empty, or that of an older page; refuse any other."""
    target = target.absolute().resolve()
    with writing(target):
        entries = sorted(target.iterdir()) if target.exists() else []
        figures = target / "figures"
        drawings = sorted(figures.iterdir()) if figures in entries else []
        parent = next(path for path in target.parents if path.exists())
        if not (parent.is_dir() and os.access(parent, os.W_OK)):
            raise PermissionError(None, "its parent is not a writable folder")
    foreign = [path.name for path in entries if path.name not in _PAGE_FILES]
    foreign += [f"figures/{path.name}" for path in drawings if path.suffix not in _DRAWINGS]
    fault = "the command runs inside of it" * Path.cwd().is_relative_to(target)
    if foreign:
        fault = f"has files that are not part of a page: {', '.join(foreign[:3])}{' and more' * (len(foreign) > 3)}"
    if fault:
        raise InvalidArgument(f"{target} would be replaced, but {fault}; choose a new folder")
    return target


def write_document(
    document: Document,
    target: Path,
    *,
    is_for_docs: bool,
    name: str = "report.md",
    data: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write a document, folded below its main finding, as the folder `target` and return its page.

    Args:
        target: the folder, see `check_target`.
        is_for_docs: write only Markdown with SVG figures, which is small; the page is then `name`, not `index.html`.
        data: more files, by name.
    """
    target = check_target(target)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with change_folder(target) as beside:
            _write_files(opened(document), beside, is_for_docs=is_for_docs, name=name)
            for file_name, text in data.items():
                (beside / file_name).write_text(text, encoding="utf-8")
    return target / (name if is_for_docs else "index.html")


def _write_files(document: Document, folder: Path, *, is_for_docs: bool, name: str) -> None:
    (folder / "figures").mkdir()
    drawings = {figure.name: svg_text(figure) for figure in document.figures}
    for title, drawing in drawings.items():
        (folder / "figures" / f"{title}.svg").write_text(follow_scheme(drawing), encoding="utf-8")
    (folder / name).write_text(to_markdown(document, has_png=not is_for_docs), encoding="utf-8")
    if is_for_docs:
        return
    (folder / "index.html").write_text(to_html(document, drawings), encoding="utf-8")
    tables = [
        {"section": section.title, "caption": block.caption, "columns": list(block.columns), "rows": block.rows}
        for section in document.sections
        for block in section.blocks
        if isinstance(block, Table)
    ]
    content = json.dumps({"title": document.title, "tables": tables}, indent=2, ensure_ascii=False)
    (folder / "tables.json").write_text(content + "\n", encoding="utf-8")
    with styled():
        for figure in document.figures:
            png = folder / "figures" / f"{figure.name}.png"
            figure.drawing.savefig(png, dpi=_DOTS_PER_INCH, metadata={"Software": None})
