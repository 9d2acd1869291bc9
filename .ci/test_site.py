"""The site as a reader gets it, from disk: complete, and without a network. `make docs` builds it and calls this."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

import jahs
from jahs.release import EMBEDDED

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
PAGES = sorted(path for path in SITE.rglob("*.html") if not {"_static", "_downloads", "explorers"} & set(path.parts))
LINK = re.compile(
    r"<a\b[^>]*?\bhref=\"([^\"]*)\"|<(?:img|script|iframe)\b[^>]*?\bsrc=\"([^\"]*)\"|<link\b[^>]*?\bhref=\"([^\"]*)\""
)


@cache
def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> set[str]:
    return {html.unescape(name) for name in re.findall(r"\bid=\"([^\"]+)\"", read(page))}


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in {next(filter(None, groups), "") for groups in LINK.findall(read(page))}:
        path, _, anchor = unquote(html.unescape(link)).partition("#")
        if re.match(r"(https?|mailto|data):", link):
            continue
        target = (page.parent / path.partition("?")[0]).resolve() if path else page
        if not target.is_file():
            dead.append(f"{link}: no such file")
        elif anchor and target.suffix == ".html" and "explorers" not in target.parts and anchor not in anchors(target):
            dead.append(f"{link}: no such anchor")
    return dead


def test_every_page_of_the_documentation_is_built() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("[!.]*/README.md"), *(ROOT / "docs").rglob("*.md")]
    names = {path.relative_to(ROOT).with_suffix(".html") for path in pages}
    assert names - {path.relative_to(SITE) for path in PAGES} == {Path("docs/package.html")}  # of the package index
    assert read(SITE / "index.html") == read(SITE / "README.html")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SITE).as_posix())
def test_a_page_has_the_version_and_no_dead_link_and_loads_nothing_from_elsewhere(page: Path) -> None:
    assert f"JAHS {jahs.__version__}" in read(page)
    assert dead_links(page) == []
    assert str(ROOT) not in read(page)
    loaded = re.findall(
        r"<(?:img|script|iframe|link rel=\"(?:stylesheet|preload)\")[^>]*(?:src|href)=\"(https?:[^\"]*)", read(page)
    )
    assert loaded == []


def test_search_finds_a_promised_name_and_a_term() -> None:
    index = read(SITE / "searchindex.js")
    assert index.startswith("Search.setIndex(")
    assert "hypervolum" in index
    assert "docs/site/reference/queries" in index


def test_every_embedded_release_has_its_explorer() -> None:
    frames = re.findall(r"<iframe[^>]*src=\"([^\"]+)\"", read(SITE / "docs/site/explorers.html"))
    assert [Path(frame).stem for frame in frames] == list(EMBEDDED)
    for task in EMBEDDED:
        version = json.loads(read(ROOT / "jahs/releases" / task / "manifest.json"))["version"]
        assert f"release {version}, " in read(SITE / "explorers" / f"{task}.html")


@pytest.mark.parametrize("notebook", sorted(path.stem for path in (ROOT / "docs/notebooks").glob("*.md")))
def test_a_notebook_shows_what_its_code_prints(notebook: str) -> None:
    assert 'class="cell_output' in read(SITE / "docs/notebooks" / f"{notebook}.html")
