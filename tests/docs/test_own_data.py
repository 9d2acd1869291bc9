"""The guide to a user's own data: its commands run as they are typed, one after another."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "your-own-data.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.*)$", GUIDE, re.MULTILINE)
PROGRAMS = {"python": [sys.executable], "jahs": [sys.executable, "-m", "jahs"]}


def run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_guide_makes_a_benchmark_of_its_images(tmp_path: Path) -> None:
    [toy] = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    run([sys.executable, "-c", toy], tmp_path)
    printed = []
    for line in COMMANDS:
        program, *arguments = shlex.split(line)
        printed.append(run([*PROGRAMS[program], *arguments], tmp_path))
    assert len(printed) == 7
    assert json.loads((tmp_path / "release" / "manifest.json").read_text())["own_task"]["n_classes"] == 3
    assert "stripes: surrogate" in printed[4]
    assert "Task(name='stripes'" in printed[-1]
