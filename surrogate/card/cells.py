"""Tables of a card, their numbers as text, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from jahs.comparison.summaries import number_text
from jahs.tasks.metrics import METRICS
from workshop.folders import write_text, writing
from workshop.pages.document import Document, Table
from workshop.pages.html import svg_text, to_html
from workshop.pages.markdown import to_markdown


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> Table:
    """Return a table; one with a title is folded up."""
    n_labels = 2 if len(columns) == 2 else 1
    cells = tuple(tuple(row) for row in rows)
    return Table(caption=title, columns=tuple(columns), rows=cells, n_labels=n_labels, is_folded=bool(title))


score_text: Final = partial(number_text, digits=3)
"""Return a score, or a dash where it is not defined."""


def amount_text(value: float | None, metric: str, *, is_signed: bool = False) -> str:
    """Return an amount of a metric with its unit, or a dash where it is not defined."""
    sign = "+" if is_signed else ""
    unit = METRICS[metric].unit
    return "–" if value is None else f"{value:{sign}.3g} {'points' if unit == '%' else unit}"


def write_page(out: Path, name: str, page: Document) -> tuple[Path, Path]:
    """Write a page as Markdown and as HTML into a folder, made if it does not exist; return their paths.

    Raises:
        InvalidArgument: it cannot be written.
    """
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    paths = out / f"{name}.md", out / f"{name}.html"
    write_text(paths[0], to_markdown(page, has_figures=False))
    write_text(paths[1], to_html(page, {figure.name: svg_text(figure) for figure in page.figures}))
    return paths
