"""The guide to a user's own data: its commands run as they are typed, one after another."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from jahs.tasks.definitions import KNOWN

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "your-own-data.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.*)$", GUIDE, re.MULTILINE)
PROGRAMS = {"python": [sys.executable], "jahs": [sys.executable, "-m", "jahs"]}


@pytest.fixture(autouse=True)
def the_task_is_forgotten() -> Iterator[None]:
    yield
    KNOWN.pop("stripes", None)


def run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, f"{command}: {process.stderr}"
    return process.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_guide_makes_a_benchmark_of_its_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of the workshops run in this process, which has loaded their libraries; jahs runs in its own process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("surrogate.judging.noise._MOST_FOLDS", 2)
    monkeypatch.setattr("surrogate.release._N_REFERENCE_CONFIGS", 500)
    [toy] = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    run([sys.executable, "-c", toy], tmp_path)
    printed = []
    for line in COMMANDS:
        program, *arguments = shlex.split(line)
        if arguments[0] == "-m":
            assert import_module(arguments[1]).main(arguments[2:]) == 0
        else:
            printed.append(run([*PROGRAMS[program], *arguments], tmp_path))
    assert (len(COMMANDS), len(printed)) == (7, 3)
    assert json.loads((tmp_path / "release" / "manifest.json").read_text())["own_task"]["n_classes"] == 3
    assert "stripes: surrogate" in printed[0]
    assert "Task(name='stripes'" in printed[-1]
