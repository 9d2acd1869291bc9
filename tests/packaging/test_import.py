"""`import jahs` stays light: the standard library, numpy and nothing else, with no work done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST_CPU_S = 0.4

IMPORT_EVERYTHING = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
import jahs
for module in pkgutil.walk_packages(jahs.__path__, "jahs."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
"""
TIME_IMPORT = "import time; import jahs; print(time.process_time())"


def in_a_fresh_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_no_module_of_jahs_loads_more_than_the_standard_library_and_numpy() -> None:
    loaded = set(json.loads(in_a_fresh_process(IMPORT_EVERYTHING)))
    assert loaded - sys.stdlib_module_names <= {"jahs", "numpy"}


def test_importing_jahs_costs_little_cpu_time() -> None:
    # The least of three: the claim is about the work done, not about what else the machine was doing.
    assert min(float(in_a_fresh_process(TIME_IMPORT)) for _ in range(3)) < LARGEST_CPU_S
