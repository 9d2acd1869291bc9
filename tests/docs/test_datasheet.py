"""The descriptions of the data agree with the data: metadata, checksums, counts and cost."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import jahs
from jahs.release import EMBEDDED

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "describe_data.py"))


def test_the_descriptions_are_those_of_the_data() -> None:
    stale = [
        path.relative_to(ROOT).as_posix()
        for path, text in SCRIPT["outputs"]().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make datasheet`"


def test_every_file_of_a_task_has_a_checksum() -> None:
    summed = {line.split("  ")[1] for line in (ROOT / "data" / "SHA256SUMS").read_text().splitlines()}
    for folder in [*(ROOT / "data").glob("*/"), *((ROOT / "jahs" / "releases").glob("[!.]*/"))]:
        files = {path.relative_to(ROOT).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert {name for name in files - summed if not re.search(r"/croissant\.json$|/\.", name)} == set()
    assert not [name for name in summed if "/." in name], "locks and other hidden files do not belong to the data"


def test_counts_are_those_of_the_page_of_the_data() -> None:
    """The page is written by another command, which reads the runs in its own way."""
    for task in EMBEDDED:
        costs = SCRIPT["costs"](task)
        page = (ROOT / "docs" / "data" / f"{task}.md").read_text(encoding="utf-8")
        counts = dict(re.findall(r"^\| ([a-z ]+) \| ([\d,.]+)", page, re.MULTILINE))
        assert f"{costs['trainings']:,}" == counts["runs"]
        assert f"{costs['epochs']:,}" == counts["measured epochs"]
        assert f"{sum(costs['core-hours'].values()):.1f}" == counts["cost"]


def test_a_description_names_the_release_that_ships() -> None:
    for task in EMBEDDED:
        croissant = json.loads((ROOT / "data" / task / "croissant.json").read_text(encoding="utf-8"))
        assert f"{task}, {croissant['version']}" in jahs.Benchmark(task).cite()
