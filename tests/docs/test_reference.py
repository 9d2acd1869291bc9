"""The reference of the site documents what is promised, and every guide has a picture."""

from __future__ import annotations

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import jahs
from jahs.adapters import TOOLS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PACKAGES = ("jahs.tasks", "jahs.simulate", "jahs.optimizers", "jahs.adapters")
MARKS = re.compile(r"^\.\. (currentmodule|autofunction|autoclass|autodata|automodule):: ([\w.]+)$", re.MULTILINE)
GUIDES = sorted((DOCS / "guides").glob("*.md"))


def documented() -> list[Any]:
    """Return the objects that the pages of the reference document; a module stands for all its names."""
    objects: list[Any] = []
    for page in sorted((DOCS / "site" / "reference").glob("*.rst")):
        module = ""
        for mark, name in MARKS.findall(page.read_text(encoding="utf-8")):
            if mark == "currentmodule":
                module = name
            elif mark == "automodule":
                objects.append(import_module(name))
            else:
                holder, _, attribute = (name if name.startswith("jahs.") else f"{module}.{name}").rpartition(".")
                objects.append(attrgetter(attribute)(import_module(holder)))
    return objects


def test_every_promised_name_is_documented_once_and_no_other() -> None:
    promised = [getattr(jahs, name) for name in jahs.__all__]
    promised += [getattr(package, name) for package in map(import_module, PACKAGES) for name in package.__all__]
    promised += [import_module(f"jahs.adapters.{tool}") for tool in TOOLS]
    # Packages are documented by their names, and errors have a page of their own.
    packages = {f"{jahs.__name__}.{name}" for name in ("adapters", "errors", "optimizers", "simulate", "tasks")}
    expected = [thing for thing in promised if not (isinstance(thing, ModuleType) and thing.__name__ in packages)]
    objects = documented()
    assert {id(thing) for thing in objects} == {id(thing) for thing in expected}
    assert len({id(thing) for thing in objects}) == len(objects)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_guide_has_a_picture(guide: Path) -> None:
    assert re.search(r"^!\[[^]]{20,}\]\([^)]+\.(svg|png)\)$", guide.read_text(encoding="utf-8"), re.MULTILINE)
