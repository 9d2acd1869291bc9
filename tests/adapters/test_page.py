"""The page of the tool that `JAHS_ADAPTER` names: its examples run, and are short."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.test_markdown import python_blocks, run_blocks
from tests.releases import make_release

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters" / f"{os.environ['JAHS_ADAPTER']}.md"
N_LINES = 15


@pytest.mark.filterwarnings("ignore")  # A reader of the page has no warnings turned into errors.
def test_the_examples_run_as_a_reader_runs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    make_release(tmp_path / "data" / "fashion_mnist_mini", task="fashion_mnist_mini")
    monkeypatch.setenv("JAHS_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path / "syne-tune"))
    monkeypatch.chdir(tmp_path)
    for printed, expected in run_blocks(PAGE.read_text(encoding="utf-8")):
        assert expected is None or printed == expected


def test_each_example_fits_into_fifteen_lines() -> None:
    blocks = [code for code, _ in python_blocks(PAGE.read_text(encoding="utf-8"))]
    assert blocks
    for code in blocks:
        lines = [line for line in code.splitlines() if line.strip()]
        assert len(lines) <= N_LINES
