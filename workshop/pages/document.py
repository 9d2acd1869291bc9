"""The content of a page, whether it becomes HTML or Markdown.

Texts and cells may hold `**bold**` and code in backticks; everything else is shown literally.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import takewhile
from typing import TypeAlias

from matplotlib.figure import Figure as Drawing

from workshop.pages.style import styled


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; see `answer`."""

    text: str
    is_answer: bool = False


def answer(text: str) -> Text:
    """Return the main finding, which a page highlights."""
    return Text(text, is_answer=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figure:
    """A drawing in the light palette; its files have this name."""

    name: str
    caption: str  # what is shown and how to read it
    alt: str  # description of the drawing for readers who cannot see it
    drawing: Drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text. The first `n_labels` columns are labels; the others are numbers, aligned right."""

    caption: str  # meaning and unit of the numbers; empty where the text before says it
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # cells, as many as columns
    n_labels: int = 1  # number of columns of labels
    is_folded: bool = False  # hidden on the page until the reader unfolds it


Block: TypeAlias = Text | Figure | Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and its blocks."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report."""

    title: str
    subtitle: str  # the page's main finding, or its purpose
    sections: tuple[Section, ...]
    figure: Figure | None = None  # shows the main finding, below it
    caveats: tuple[str, ...] = ()  # a paragraph each, shown before the first section
    setting: str = ""  # question and set-up of the measurements, shown after the caveats
    facts: tuple[tuple[str, str], ...] = ()  # facts that reproduce the numbers, as (what, value)
    is_folded: bool = False  # everything below the setting but answers is hidden until the reader unfolds it

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in order."""
        blocks = (self.figure, *(block for section in self.sections for block in section.blocks))
        return tuple(block for block in blocks if isinstance(block, Figure))


def opened(document: Document) -> Document:
    """Return a page that shows its main finding and its first figure, and folds the rest.

    The finding is the first sentence of the subtitle; the others become the setting, unless the page has one. The
    figure's caption begins with the title of the section that it is from.
    """
    subtitle, setting = document.subtitle, document.setting
    if not setting:
        subtitle, setting = split_sentence(subtitle)
    figure = None
    sections = []
    for section in document.sections:
        first = next((block for block in section.blocks if figure is None and isinstance(block, Figure)), None)
        if isinstance(first, Figure):
            figure = replace(first, caption=f"{section.title}. {first.caption}")
        if blocks := tuple(block for block in section.blocks if block is not first):
            sections.append(replace(section, blocks=blocks))
    return replace(
        document, subtitle=subtitle, figure=figure, setting=setting, sections=tuple(sections), is_folded=True
    )


def led_by_answer(document: Document) -> Document:
    """Return a page whose main finding is the answer that opens its first section; the subtitle is then its setting."""
    answers, others = split_answers(document.sections[0]) if document.sections else ((), ())
    if not answers or not isinstance(first := answers[0], Text):
        return document
    sections = replace(document.sections[0], blocks=(*answers[1:], *others)), *document.sections[1:]
    return replace(document, subtitle=first.text, setting=document.subtitle, sections=sections)


def split_answers(section: Section) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Return the answers that open a section, and its other blocks."""
    n_answers = len(list(takewhile(lambda block: isinstance(block, Text) and block.is_answer, section.blocks)))
    return section.blocks[:n_answers], section.blocks[n_answers:]


def contents(blocks: Sequence[Block]) -> str:
    """Return a summary of blocks, such as "2 figures and 1 table"."""
    counts = {kind.__name__.lower(): sum(isinstance(block, kind) for block in blocks) for kind in (Figure, Table)}
    return " and ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in counts.items() if n) or "Details"


def split_sentence(text: str) -> tuple[str, str]:
    """Return a text's first sentence and the others."""
    first, _, rest = " ".join(text.split()).partition(". ")
    return (f"{first}.", rest) if rest else (first, "")


def inline_html(text: str) -> str:
    """Return a text, which may hold `**bold**` and code in backticks, as HTML."""
    marked = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text, quote=False))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", marked)


def sections_of(parts: Iterable[str | Block]) -> tuple[Section, ...]:
    """Return a section for each title, with the blocks that follow it; sections without a block are left out.

    Figures that a generator of parts draws are in the style of pages.
    """
    sections: list[tuple[str, list[Block]]] = []
    with styled():
        for part in parts:
            if isinstance(part, str):
                sections.append((part, []))
            else:
                sections[-1][1].append(part)
    return tuple(Section(title=title, blocks=tuple(blocks)) for title, blocks in sections if blocks)
