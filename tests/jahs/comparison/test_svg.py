"""Charts as SVG: well-formed, with every point inside the axes and round numbers beside them."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.comparison.svg import Line, Panel, draw_chart, ticks

NUMBERS = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=9)
SVG = "{http://www.w3.org/2000/svg}"


def chart(*lines: Line, title: str = "A title") -> ET.Element:
    panel = Panel(title="One & two", x_label="x", y_label="y < 3", lines=lines)
    return ET.fromstring(draw_chart(title, [panel, panel]))


@given(st.lists(POINTS, min_size=1, max_size=4))
def test_every_point_lies_inside_the_axes(points: list) -> None:
    drawn = chart(*(Line(points=line, style="first") for line in points))
    styled = [element for element in drawn.iter() if element.get("class") == "first"]
    assert len(styled) == 2 * len(points)
    for element in styled:
        if element.tag == f"{SVG}circle":
            places = [(float(element.get("cx")), float(element.get("cy")))]
        else:
            numbers = [float(text) for text in re.findall(r"-?[\d.]+", element.get("d"))]
            places = list(zip(numbers[::2], numbers[1::2], strict=True))
        assert all(57 <= x <= 425 and 77 <= y <= 379 for x, y in places)


def test_labels_are_escaped_and_lines_have_their_names_in_the_legend() -> None:
    drawn = chart(Line(points=[(0, 1), (1, 2)], label="best < all"), title="<&>")
    words = [element.text for element in drawn.iter(f"{SVG}text")]
    assert {"<&>", "One & two", "y < 3", "best < all"} <= set(words)


def test_the_strong_line_is_drawn_above_the_others() -> None:
    lines = [Line(points=[(0, i), (1, i)], style=style) for i, style in enumerate(("first", "faint", "second"))]
    order = [e.get("class") for e in chart(*lines).iter(f"{SVG}path") if e.get("class") in ("first", "faint", "second")]
    assert order[:3] == ["faint", "second", "first"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 12, [0, 2, 4, 6, 8, 10, 12]),
        (48, 85, [50, 60, 70, 80]),
        (0, 0.0011, [0, 0.0002, 0.0004, 0.0006, 0.0008, 0.001]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (199, 200.5, [199, 199.5, 200, 200.5]),
    ],
    ids=["epochs", "percent", "small", "signs", "narrow"],
)
def test_ticks_are_round_numbers_within_the_range(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


@given(NUMBERS, st.floats(1e-3, 1e6))
def test_there_are_always_a_few_ticks(low: float, width: float) -> None:
    found = ticks(low, low + width)
    assert 2 <= len(found) <= 7
    assert all(low - width * 1e-6 <= tick <= low + width * (1 + 1e-6) for tick in found)
