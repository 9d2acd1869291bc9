"""Pages from blocks: headings, paragraphs, tables and plots, as Markdown and as HTML that needs nothing else.

Text may hold `**bold**` and code in backticks; everything else is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, TypeAlias

from surrogate.drawing import STYLE

__all__ = ["Block", "Heading", "Paragraph", "Plots", "Rows", "as_html", "as_markdown"]


@dataclass(frozen=True)
class Heading:
    """A heading of a level, 1 or more."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Rows:
    """A table; one with a title is folded up in HTML."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


@dataclass(frozen=True)
class Plots:
    """Plots side by side; Markdown leaves them out."""

    svgs: tuple[str, ...]


Block: TypeAlias = Heading | Paragraph | Rows | Plots

_STYLE: Final = """
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 1120px; padding: 1.5rem; }
h1 { font-size: 1.6rem; } p { max-width: 75ch; }
h2 { border-top: 1px solid var(--grid); font-size: 1.25rem; margin-top: 2.2rem; padding-top: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--grid); padding: .3rem .7rem .3rem 0; text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child { text-align: left; }
.text td { text-align: left; white-space: normal; } code { font-size: .9em; overflow-wrap: anywhere; }
details { margin: .8rem 0; } summary { color: var(--one); cursor: pointer; }
.plots { display: grid; gap: 10px; grid-auto-flow: dense; }
.plots { grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); }
.plots svg { background: var(--panel); border: 1px solid var(--grid); border-radius: 6px; height: auto; width: 100%; }
.plots .tall { grid-row: span 2; }
"""


def as_markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            lines += [f"{'#' * block.level} {block.text}", ""]
        elif isinstance(block, Paragraph):
            lines += [block.text, ""]
        elif isinstance(block, Rows) and block.rows:
            lines += [f"**{block.title}**", ""] if block.title else []
            lines += [_cells(block.heads), _cells(["---"] * len(block.heads)), *map(_cells, block.rows), ""]
    return "\n".join(lines).rstrip() + "\n"


def as_html(blocks: Sequence[Block], *, title: str) -> str:
    """The blocks as one page, for light and dark screens."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _cells(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_inline(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p>{_inline(block.text)}</p>"
    if isinstance(block, Plots):
        return f'<div class="plots">\n{chr(10).join(block.svgs)}\n</div>'
    if not block.rows:
        return ""
    kind = "wide text" if len(block.heads) == 2 else "wide"
    heads = "".join(f"<th>{_inline(head)}</th>" for head in block.heads)
    rows = "\n".join(f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in block.rows)
    table = f'<div class="{kind}"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
    return f"<details><summary>{_inline(block.title)}</summary>\n{table}\n</details>" if block.title else table


def _inline(text: str) -> str:
    shown = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", shown)
