"""Figures inside a page: the same drawing in a fraction of matplotlib's bytes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np

from workshop.pages.document import Document, Figure, Section
from workshop.pages.drawing import new_drawing
from workshop.pages.html import compact, svg_text, to_html

N_DOTS = 400


def dotted(name: str = "dots") -> Figure:
    drawing, axes = new_drawing(3)
    axes.plot(np.arange(N_DOTS), np.arange(N_DOTS) % 7, linestyle="", marker="o", label="dots")
    axes.legend()
    return Figure(name=name, caption="Dots", alt="Dots", drawing=drawing)


def test_every_dot_stays_at_twenty_bytes_each() -> None:
    whole = svg_text(dotted())
    small = compact(whole[whole.index("<svg") :], "dots")
    ET.fromstring(small)
    path = re.search(r'<path [^>]*?d="M([^"]*)"[^>]*marker-mid', small)
    assert path is not None
    assert len(path[1].split("L")) == N_DOTS
    assert len(path[1]) < 20 * N_DOTS
    assert len(small) < len(whole) / 4
    assert re.findall(r">([^<]+)</text>", small) == re.findall(r">([^<]+)</text>", whole)


def test_ids_and_classes_on_a_page_are_known_and_unique() -> None:
    figures = dotted("one"), dotted("two")
    document = Document(title="", subtitle="", sections=(Section(title="", blocks=figures),))
    page = to_html(document, {figure.name: svg_text(figure) for figure in figures})
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', page)) <= set(ids)
    assert {*re.findall(r'class="(d\d+)"', page)} == {*re.findall(r"\.(d\d+)\{", page)}
    assert 'style="' not in page
