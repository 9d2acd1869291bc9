"""The pages of studies that stand beside a paper: a finding first, and a table of the paper's figures and ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jahs.comparison.summaries import Interval
from workshop.pages.document import Section, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a study says.

    Attributes:
        finding: its first paragraph, which begins with the main finding.
    """

    title: str
    finding: str
    sections: tuple[Section, ...]


def interval_text(found: Interval, digits: int = 2) -> str:
    """Return an estimate with its 95 % interval."""
    return f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def beside_paper(rows: Sequence[tuple[str, ...]]) -> Table:
    """Return the table of the paper's figures and ours: quantity, task, paper, ours, same sign, reason."""
    return Table(
        caption="The paper's figures and ours, with 95 % intervals",
        columns=("quantity", "task", "paper", "ours", "same sign", "reason"),
        rows=tuple(rows),
        n_labels=6,
    )
