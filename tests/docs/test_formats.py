"""The page of file formats says what the code defines."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from jahs import schema
from jahs.files.index import read_index
from jahs.models.features import DEFAULT_TIMES
from jahs.release.manifest import RELEASE_FORMAT
from jahs.simulate.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
TABLES = ("CONFIG_TABLE_COLUMNS", "RUN_COLUMNS", "PROFILE_COLUMNS", "VISIT_COLUMNS", "PROXY_COLUMNS")


def rows(after: str) -> list[list[str]]:
    """Return the body of the first table below a line."""
    _, line_above, rest = PAGE.partition(f"\n{after}")
    assert line_above, f"docs/formats.md has no line {after!r}"
    table = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert table
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def keys(after: str) -> list[str]:
    return [name for row in rows(after) for name in re.findall(r"`(\w+)`", row[0])]


@pytest.mark.parametrize("table", TABLES)
def test_the_page_has_the_columns_and_dtypes_of_the_schema_in_order(table: str) -> None:
    documented = [(row[0].strip("`"), row[1]) for row in rows(f"`jahs.schema.{table}`")]
    assert documented == list(getattr(schema, table).items())


def test_the_page_has_the_version_of_every_format() -> None:
    for _, version, where in rows("## Versions"):
        module, _, name = where.strip("`").rpartition(".")
        if module.startswith("jahs"):
            defined = getattr(import_module(module), name)
        else:  # the workshops' packages may be absent where jahs is tested alone
            text = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
            match = re.search(rf"^{name}(?:: Final)? = (\d+)", text, re.MULTILINE)
            assert match, where
            defined = match[1]
        assert version == str(defined), where


def test_the_page_has_the_keys_of_a_trial() -> None:
    assert keys("**Trials**") == list(schema.TRIAL_KEYS)


def test_the_page_has_every_setting_of_a_simulation() -> None:
    documented = set(keys("**Header**"))
    assert {*Settings(n_trials=1).facts(), "format", "task", "release", "view", "optimizer", "metrics"} <= documented


def test_the_page_has_the_keys_of_the_embedded_manifest_and_split() -> None:
    manifest = json.loads((ROOT / "jahs/releases/fashion_mnist_mini/manifest.json").read_text())
    assert manifest["format"] == RELEASE_FORMAT
    assert sorted(keys("**manifest.json**")) == sorted({*manifest, "same_answers"})
    split = json.loads((ROOT / "data/fashion_mnist_mini/split.json").read_text())
    assert sorted(keys("## Split")) == sorted(split)


def test_the_page_has_the_keys_of_times() -> None:
    assert sorted(keys("`times` (optional)")) == sorted(DEFAULT_TIMES.to_dict())


def test_the_page_names_every_file_of_the_recorded_runs() -> None:
    for name in read_index(ROOT / "data/fashion_mnist_mini/runs") or ():
        assert re.sub(r"\d{4}", "0001", name) in PAGE
