"""The content of a page, whether it becomes HTML or Markdown.

Texts and cells may hold `**bold**` and code in backticks; everything else is shown literally.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
    caveats: tuple[str, ...] = ()  # a paragraph each, shown before the first section
    facts: tuple[tuple[str, str], ...] = ()  # facts that reproduce the numbers, as (what, value)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in order."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Figure))


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
