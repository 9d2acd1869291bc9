"""Axes and marks: nothing leaves its plot, and ticks are round and few."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from surrogate.drawing import Axis, Panel, axis

NUMBERS = st.floats(-1e9, 1e9, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-9)
POSITIVE = st.floats(1e-6, 1e9)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.booleans())
def test_an_axis_holds_its_values_and_has_a_few_ticks(values: list[float], is_whole: bool) -> None:
    found = axis("x", values, is_whole=is_whole)
    assert all(found.low <= value <= found.high for value in values)
    ticks = found.ticks()
    room = (found.high - found.low) * 1e-6
    assert len(ticks) <= 7
    assert all(found.low - room <= tick <= found.high + room for tick in ticks)
    assert ticks == sorted(ticks)
    assert not is_whole or all(tick == round(tick) for tick in ticks)


@given(st.lists(POSITIVE, min_size=1, max_size=20))
def test_a_logarithmic_axis_has_at_least_two_ticks(values: list[float]) -> None:
    found = axis("x", values, is_log=True)
    assert all(found.low <= value <= found.high for value in values)
    ticks = found.ticks()
    assert 2 <= len(ticks) <= 8
    assert ticks == sorted(ticks)


def test_ticks_are_round_numbers() -> None:
    assert axis("x", [0.0, 100.0]).ticks() == [0.0, 25.0, 50.0, 75.0, 100.0]
    assert axis("epoch", [1, 12], is_whole=True).ticks() == [3, 6, 9, 12]
    assert Axis(label="s", low=0.9, high=1100, is_log=True).ticks() == [1, 10, 100, 1000]


@given(st.tuples(NUMBERS, NUMBERS), st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5))
def test_no_mark_is_drawn_outside_of_its_plot(ends: tuple[float, float], points: list[tuple[float, float]]) -> None:
    panel = Panel("a < b & c", axis("x", ends), axis("y", ends))
    panel.dots(points, "one")
    panel.line(points, "two")
    drawn = ET.fromstring(panel.svg())
    dots = [element for element in drawn if element.tag.endswith("circle")]
    assert len(dots) == len(points)
    for dot in dots:
        assert 0 <= float(dot.attrib["cx"]) <= panel.width
        assert 0 <= float(dot.attrib["cy"]) <= panel.height
