"""A document as Markdown, with its figures as files beside it."""

from __future__ import annotations

from collections.abc import Sequence

from workshop.pages.document import Block, Document, Figure, Text


def to_markdown(document: Document, *, has_png: bool = True, has_figures: bool = True, folder: str = "figures") -> str:
    """Return the page; it shows `<folder>/<name>.png` and links the SVG, or shows the SVG where there are no PNGs."""
    parts = [f"# {document.title}", document.subtitle, *map(caveat_text, document.caveats)]
    for section in document.sections:
        parts.append(f"## {section.title}")
        blocks = (block for block in section.blocks if has_figures or not isinstance(block, Figure))
        parts += [_block(block, folder, has_png=has_png) for block in blocks]
    if document.facts:
        parts += ["## Reproduction", table_text(("what", "value"), document.facts, n_labels=2)]
    return "\n\n".join(parts) + "\n"


def caveat_text(caveat: str) -> str:
    """Return a caveat as a paragraph."""
    return f"**Caveat:** {_line(caveat)}"


def _block(block: Block, folder: str, *, has_png: bool) -> str:
    if isinstance(block, Text):
        return f"**{_line(block.text)}**" if block.is_answer else _line(block.text)
    if isinstance(block, Figure):
        picture = f"![{_line(block.alt)}]({folder}/{block.name}.{'png' if has_png else 'svg'})"
        link = f" ([SVG]({folder}/{block.name}.svg))" if has_png else ""
        return f"{picture}\n\n{_line(block.caption)}{link}"
    caption = f"{_line(block.caption)}\n\n" if block.caption else ""
    return f"{caption}{table_text(block.columns, block.rows, n_labels=block.n_labels)}"


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]], *, n_labels: int | None = None) -> str:
    """Return a table; all columns but the first `n_labels` are aligned right, or none if it is None."""
    rule = ["---" if n_labels is None or i < n_labels else "---:" for i in range(len(columns))]
    lines = [columns, rule, *rows]
    cells = ([_line(text).replace("|", "\\|") for text in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _line(text: str) -> str:
    return " ".join(text.split())
