"""The page that a package index shows: complete by itself, because relative links lead nowhere there."""

from __future__ import annotations

import re
from pathlib import Path

import tomllib

from jahs.tasks.definitions import TASKS
from workshop.pages.markdown import caveat_text

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")


def test_no_link_or_picture_needs_the_repository() -> None:
    targets = re.findall(r"\]\(([^)]+)\)|(?:src|href)=\"([^\"]+)\"", PAGE)
    assert [target for pair in targets for target in pair if target and not target.startswith("https://")] == []


def test_it_begins_as_the_readme_does() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert PAGE.split("\n\n")[:2] == readme.split("\n\n")[:2]
    assert caveat_text(TASKS["cifar10_mini"].caveat or "") in PAGE.replace("\n", " ")
    assert PROJECT["keywords"]


def test_its_sidebar_links_lead_to_pages_outside() -> None:
    assert PROJECT["urls"]
    assert all(target.startswith("https://") for target in PROJECT["urls"].values())
