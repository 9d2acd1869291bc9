"""Figures of papers beside ours: the table of a study's page, and whether both have the same sign.

A figure has the paper's sign if our estimate and the ends of its interval have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from jahs.comparison.summaries import Interval, interval_text
from workshop.pages.document import Table

COLUMNS: Final = ("quantity", "task", "paper", "ours", "same sign", "reason")

NO_SIGN: Final = "–"
"""The cell of a figure whose sign says nothing."""


def same_sign(ours: Interval, paper: float = 1.0) -> str:
    """Return whether an estimate has the sign of the paper's figure; `NO_SIGN` if that is 0."""
    signs = np.sign([ours.low, ours.value, ours.high]) * np.sign(paper)
    return NO_SIGN if not paper else "yes" if (signs > 0).all() else "no" if (signs < 0).all() else "not shown"


def compared(
    quantity: str,
    task: str,
    paper: str,
    ours: Interval,
    *,
    sign: float = 1.0,
    why: str = "not tested",
    show: Callable[[Interval], str] = interval_text,
) -> tuple[str, ...]:
    """Return a row of `beside_paper`.

    Args:
        paper: what the paper found.
        sign: the sign of it.
        why: why ours may have another sign; shown unless it has the same.
    """
    same = same_sign(ours, sign)
    return quantity, task, paper, show(ours), same, "as in the paper" if same == "yes" else why


def beside_paper(paper: str, rows: Sequence[tuple[str, ...]], *, level: int = 95, more: str = "") -> Table:
    """Return the table of a paper's figures and ours; `more` ends its caption."""
    caption = f"Figures of {paper} and ours, with {level} % intervals"
    return Table(caption=f"{caption}{more}", columns=COLUMNS, rows=tuple(rows), n_labels=len(COLUMNS))
