"""The table of a paper's figures and ours."""

from __future__ import annotations

from collections.abc import Sequence

from workshop.pages.document import Table


def beside_paper(rows: Sequence[tuple[str, ...]]) -> Table:
    """Return the table of the paper's figures and ours: quantity, task, paper, ours, same sign, reason."""
    return Table(
        caption="The paper's figures and ours, with 95 % intervals",
        columns=("quantity", "task", "paper", "ours", "same sign", "reason"),
        rows=tuple(rows),
        n_labels=6,
    )
