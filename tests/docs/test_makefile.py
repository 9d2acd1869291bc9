"""The Makefile: its header counts its commands, and one command makes every page about the released models."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.science.__main__ import STUDIES
from experiments.science.papers import PAGES

ROOT = Path(__file__).parents[2]
NUMBERS = {"Twelve": 12, "Thirteen": 13, "Fourteen": 14, "Fifteen": 15, "Sixteen": 16}


def test_the_header_lists_as_many_commands_as_it_says() -> None:
    header = (ROOT / "Makefile").read_text(encoding="utf-8").split("\n\n")[0]
    number = header.split()[1]
    listed = re.findall(r"^#   make ([a-z-]+)", header, re.MULTILINE)
    assert len(listed) == len(set(listed)) == NUMBERS[number]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_one_command_makes_every_page_about_the_released_models() -> None:
    dry_run = subprocess.run(["make", "--dry-run", "science"], cwd=ROOT, capture_output=True, text=True, check=True)
    commands = re.findall(r"-m (experiments\.\S+) (?:(\S+) )?--.*--out docs/studies/(\S+)", dry_run.stdout)
    pages = [page for *_, page in commands]
    assert {*pages} >= {*STUDIES, "zoo", "landscape/cifar10_mini", "landscape/fashion_mnist_mini"}
    assert {study for module, study, _ in commands if module == "experiments.science"} == {*STUDIES, "papers"}
    assert pages[-1] == "papers", "it reads the others"
    assert {*pages} >= {*PAGES}
    assert "-m surrogate.zoo data/" in dry_run.stdout
