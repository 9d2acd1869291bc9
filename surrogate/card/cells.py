"""Tables of a card, and their numbers as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from jahs.comparison.summaries import number_text
from jahs.tasks.metrics import METRICS
from workshop.pages.document import Table


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> Table:
    """Return a table; one with a title is folded up."""
    n_labels = 2 if len(columns) == 2 else 1
    cells = tuple(tuple(row) for row in rows)
    return Table(caption=title, columns=tuple(columns), rows=cells, n_labels=n_labels, is_folded=bool(title))


score_text: Final = partial(number_text, digits=3)  # a score, or a dash where it is not defined


def amount_text(value: float | None, metric: str, *, is_signed: bool = False) -> str:
    """Return an amount of a metric with its unit, or a dash where it is not defined."""
    sign = "+" if is_signed else ""
    unit = METRICS[metric].unit
    return "–" if value is None else f"{value:{sign}.3g} {'points' if unit == '%' else unit}"
