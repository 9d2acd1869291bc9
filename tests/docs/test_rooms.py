"""The import tables of the pages say what import-linter enforces, and long modules say why they are long."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("jahs", "workshop", "splits", "pipeline", "surrogate", "experiments")
MOST_LINES = 300


def enforced() -> dict[str, set[str]]:
    """Return the rooms that each room may import, by the contracts in pyproject.toml."""
    if sys.version_info < (3, 11):
        pytest.skip("tomllib is in the standard library from Python 3.11 on")
    import tomllib

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    levels = [set(layer.split(" | ")) for layer in layers]
    allowed = {room: set().union(*levels[i + 1 :]) for i, level in enumerate(levels) for room in level}
    for contract in contracts:
        if contract["type"] == "forbidden":
            for room in contract["source_modules"]:
                allowed[room] -= set(contract["forbidden_modules"])
    return allowed


def rows(page: str, head: str) -> list[list[str]]:
    """Return the cells of the table below a line, heads included."""
    lines = (ROOT / page).read_text(encoding="utf-8").partition(head)[2].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    return [[cell.strip().strip("`/") for cell in line.strip("|").split("|")] for line in lines[first:last]]


def test_the_architecture_page_has_the_import_table_that_is_enforced() -> None:
    (_, *heads), _, *body = rows("docs/architecture.md", "## Who may import whom")
    table = {room: {head for head, cell in zip(heads, cells, strict=True) if cell == "yes"} for room, *cells in body}
    assert table == enforced()
    assert set(table) == set(ROOMS)


def test_the_contributing_page_has_the_import_table_that_is_enforced() -> None:
    body = rows("CONTRIBUTING.md", "## Where things go")[2:]
    table = {cells[0]: set(re.findall(r"\w+", cells[2])) for cells in body if cells[0] in ROOMS}
    assert table.pop("jahs") == {"the", "standard", "library", "and", "numpy"}
    assert table == {room: allowed for room, allowed in enforced().items() if room != "jahs"}


def test_a_module_over_300_lines_says_why_on_top() -> None:
    """Tests are as long as what they test; a module of a room has a reason, and only while it needs one."""
    wrong = []
    for path in sorted(module for room in ROOMS for module in (ROOT / room).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        is_long, has_reason = text.count("\n") > MOST_LINES, re.match(r'"""(.+\n){1,2}\nOver 300 lines: [a-z]', text)
        if is_long != bool(has_reason):
            wrong.append(f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines, reason: {bool(has_reason)}")
    assert wrong == []
