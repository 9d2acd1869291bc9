"""The committed pictures: no text is cut off, and each follows the reader's dark mode."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.svg_text import texts_outside

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = sorted(DOCS.rglob("*.svg"))
PAGES = sorted(DOCS.rglob("*.html"))


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: str(path.relative_to(DOCS)))
def test_no_text_of_a_picture_is_cut_off(path: Path) -> None:
    assert texts_outside(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_no_text_of_a_page_s_pictures_is_cut_off(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    css = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    cut = []
    for number, svg in enumerate(re.findall(r"<svg.*?</svg>", page, re.DOTALL)):
        styled = re.sub(r"(<svg[^>]*>)", lambda match: f"{match[1]}<style>{css}</style>", svg, count=1)
        cut += [f"picture {number}: {text}" for text in texts_outside(styled)]
    assert cut == []


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_picture_follows_the_dark_mode(path: Path) -> None:
    assert "@media(prefers-color-scheme:dark)" in path.read_text(encoding="utf-8")
