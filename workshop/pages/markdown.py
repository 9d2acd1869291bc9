"""A document as Markdown, with its figures as files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from typing import Final

from workshop.pages.document import (
    Block,
    Document,
    Figure,
    Text,
    contents,
    inline_html,
    split_answers,
    split_sentence,
)

_CAVEAT: Final = re.compile(
    r"^(?:\*\*Caveat:\*\* (.+)|<details><summary><strong>Caveat:</strong> (.+)</summary>\n\n(.+)\n\n</details>)$",
    re.MULTILINE,
)


def to_markdown(document: Document, *, has_png: bool = True, has_figures: bool = True, folder: str = "figures") -> str:
    """Return the page; it shows `<folder>/<name>.png` and links the SVG, or shows the SVG where there are no PNGs."""

    def texts(blocks: Sequence[Block]) -> list[str]:
        shown = (block for block in blocks if has_figures or not isinstance(block, Figure))
        return [_block(block, folder, has_png=has_png) for block in shown]

    def folded(summary: str, texts: Sequence[str]) -> Sequence[str]:
        return _folded(summary, texts) if document.is_folded and texts else texts

    parts = [f"# {document.title}", document.subtitle, *texts([document.figure] if document.figure else [])]
    parts += [caveat_text(caveat, is_folded=document.is_folded) for caveat in document.caveats]
    parts += [document.setting] if document.setting else []
    for section in document.sections:
        answers, others = split_answers(section)
        parts += [f"## {section.title}", *texts(answers), *folded(contents(others), texts(others))]
    if document.facts:
        facts = table_text(("what", "value"), document.facts, n_labels=2)
        parts += ["## Reproduction", *folded("Command and versions", [facts])]
    return "\n\n".join(parts) + "\n"


def caveat_text(caveat: str, *, is_folded: bool = False) -> str:
    """Return a caveat as a paragraph, or as its first sentence, which unfolds the others."""
    first, rest = split_sentence(caveat)
    if is_folded and rest:
        return "\n\n".join(_folded(f"<strong>Caveat:</strong> {inline_html(first)}", [rest]))
    return f"**Caveat:** {_line(caveat)}"


def caveats_in(page: str) -> list[str]:
    """Return the caveats of a page in Markdown, folded or not, see `caveat_text`."""
    return [whole or f"{_text_of(first)} {rest}" for whole, first, rest in _CAVEAT.findall(page)]


def _text_of(inline: str) -> str:
    """Return the text that `inline_html` turned into HTML."""
    return unescape(re.sub("</?code>", "`", re.sub("</?strong>", "**", inline)))


def _folded(summary: str, texts: Sequence[str]) -> list[str]:
    """Return texts that the reader unfolds: HTML, in which an empty line turns Markdown on again."""
    return [f"<details><summary>{summary}</summary>", *texts, "</details>"]


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
