"""Pages: the opening, folded sections, and compact inline figures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from workshop.pages.document import Document, Figure, Section, Table, Text, answer, led_by_answer, opened
from workshop.pages.drawing import new_drawing
from workshop.pages.html import compact, svg_text, to_html
from workshop.pages.markdown import caveats_in, to_markdown

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


TABLE = Table(caption="All numbers", columns=("a",), rows=(("1",),))


def report(*blocks: Text | Table | Figure) -> Document:
    sections = Section(title="First", blocks=blocks), Section(title="Second", blocks=(answer("No."), TABLE, TABLE))
    caveats = "`t` is *small*. It <is>.", "Few."
    return Document(title="T", subtitle="Yes.", setting="Why?", caveats=caveats, sections=sections, facts=(("a", "b"),))


def test_an_opened_page_shows_its_finding_and_its_first_figure_and_folds_the_rest() -> None:
    figure, second = dotted(), dotted("second")
    document = opened(report(TABLE, figure, second))
    head, first, last, facts = to_markdown(document).split("\n\n## ")
    assert head.split("\n\n") == [
        *("# T", "Yes.", "![Dots](figures/dots.png)", "First. Dots ([SVG](figures/dots.svg))"),
        "<details><summary><strong>Caveat:</strong> <code>t</code> is *small*.</summary>",
        *("It <is>.", "</details>", "**Caveat:** Few.", "Why?"),
    ]
    assert first.split("\n\n")[:2] == ["First", "<details><summary>1 figure and 1 table</summary>"]
    assert "figures/second.png" in first
    assert "figures/dots.png" not in first
    assert last.split("\n\n")[:3] == ["Second", "**No.**", "<details><summary>2 tables</summary>"]
    assert all(section.rstrip().endswith("\n\n</details>") for section in (first, last, facts))
    page = to_html(document, {each.name: svg_text(each) for each in document.figures})
    ET.fromstring(page[page.index("<main>") : page.index("</main>") + len("</main>")])
    summaries = ["1 figure and 1 table", "2 tables", "Command and versions"]
    assert re.findall(r"<summary>(.*?)</summary>", page)[1:] == summaries
    shown = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert shown.count("<svg") == 1
    places = [shown.index(text) for text in ("Yes.", "<svg", "Few.", "Why?", "<nav", "First</h2>", "No.")]
    assert places == sorted(places)
    assert "All numbers" not in shown


@pytest.mark.parametrize("caveat", ["Few.", "`t` is **small** & <old>. It's all.", "One\nline. Two\nlines."])
def test_caveats_are_read_back_from_a_page_as_it_is_and_folded(caveat: str) -> None:
    document = replace(report(), caveats=("First.", caveat))
    wanted = ["First.", " ".join(caveat.split())]
    assert caveats_in(to_markdown(document)) == caveats_in(to_markdown(opened(document))) == wanted


def test_a_section_of_which_only_its_figure_was_left_is_gone() -> None:
    assert [section.title for section in opened(report(dotted())).sections] == ["Second"]
    assert opened(Document(title="T", subtitle="Yes.", sections=())).figure is None


def test_one_sentence_of_a_subtitle_is_the_finding() -> None:
    opening = opened(replace(report(), subtitle="Tau is 0.5. It was 0.4. Why?", setting=""))
    assert (opening.subtitle, opening.setting) == ("Tau is 0.5.", "It was 0.4. Why?")
    kept = opened(replace(report(), subtitle="Tau is 0.5. It was 0.4."))
    assert (kept.subtitle, kept.setting) == ("Tau is 0.5. It was 0.4.", "Why?")


def test_the_first_answer_leads_a_page_if_it_opens_its_first_section() -> None:
    led = led_by_answer(replace(report(answer("Found."), TABLE), subtitle="Why?", setting=""))
    assert (led.subtitle, led.setting) == ("Found.", "Why?")
    assert led.sections[0].blocks == (TABLE,)
    for unchanged in (report(TABLE, answer("Later.")), replace(report(), sections=())):
        assert led_by_answer(unchanged) is unchanged
