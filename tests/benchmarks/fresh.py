"""Measuring in fresh processes, which have cached bytecode as a user's have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def in_fresh_processes(code: str, *, python: str = sys.executable, n: int = 5) -> list[list[float]]:
    """Return the JSON list of figures that `code` prints, from `n` processes; one before them writes the bytecode."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    processes = [
        subprocess.run([python, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
        for _ in range(n + 1)
    ]
    return [json.loads(process.stdout) for process in processes[1:]]
