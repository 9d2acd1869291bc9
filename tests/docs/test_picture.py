"""The committed drawings are what their scripts draw; the drawing of the space is well-formed."""

from __future__ import annotations

import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from jahs.spaces.configs import PARAMETERS

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "img"
SVG = FOLDER / "space.svg"


def test_the_picture_is_what_its_script_draws() -> None:
    draw = runpy.run_path(str(FOLDER / "draw_space.py"))["draw"]
    assert SVG.read_text(encoding="utf-8") == draw()


@pytest.mark.parametrize("name", ["own-data-flow", "archives-flow"])
def test_a_flow_is_what_its_script_draws(name: str) -> None:
    draw = runpy.run_path(str(FOLDER / "draw_flows.py"))["draw"]
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == draw(name)


def test_the_picture_names_every_parameter_that_is_searched() -> None:
    words = {element.text for element in ET.parse(SVG).iter() if element.text}
    assert {name for name, parameter in PARAMETERS.items() if len(parameter.choices) != 1} <= words
