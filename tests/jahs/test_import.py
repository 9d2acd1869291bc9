"""`import jahs` stays light: the standard library, numpy and nothing else, with no work done."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import jahs
from tests.releases import make_release

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
    # The last two are what the Cython inside numpy registers.
    ours = {name for name in loaded if name != "cython_runtime" and not name.startswith("_cython_")}
    assert ours - sys.stdlib_module_names <= {"jahs", "numpy"}


QUERY_FROM_ZIP = """
import sys
sys.path.insert(0, sys.argv[1])
import jahs
assert jahs.__file__.startswith(sys.argv[1])
print(jahs.Benchmark("digits", release=sys.argv[2], engine="numpy").query(jahs.space().default()).valid_acc)
"""


def test_the_package_answers_from_a_zip(tmp_path: Path) -> None:
    package, archive = Path(jahs.__file__).parent, tmp_path / "jahs.zip"
    with ZipFile(archive, "w") as files:
        for path in [*package.rglob("*.py"), *(package / "spaces").rglob("*.npz")]:
            files.write(path, path.relative_to(package.parent))
    release = make_release(tmp_path / "digits")
    command = [sys.executable, "-c", QUERY_FROM_ZIP, str(archive), str(release)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    answer = jahs.Benchmark("digits", release=release, engine="numpy").query(jahs.space().default())
    assert float(done.stdout) == answer.valid_acc


def test_importing_jahs_costs_little_cpu_time() -> None:
    # The least of three: the claim is about the work done, not about what else the machine was doing.
    assert min(float(in_a_fresh_process(TIME_IMPORT)) for _ in range(3)) < LARGEST_CPU_S


def test_the_import_starts_no_thread_logs_nothing_and_touches_no_state() -> None:
    code = (
        "import logging, random, threading, warnings; state = random.getstate(); filters = list(warnings.filters)\n"
        "import jahs\n"
        "assert threading.active_count() == 1 and not logging.getLogger().handlers\n"
        "assert random.getstate() == state and not logging.getLogger('jahs').handlers\n"
        "import numpy; print('quiet')"
    )
    assert in_a_fresh_process(code) == "quiet\n"


def test_dir_lists_what_is_promised_and_nothing_else() -> None:
    assert dir(jahs) == sorted([*jahs.__all__, "__version__"])
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, flags=re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(jahs.__all__)


def test_an_unknown_name_lists_the_promised_ones() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'benchmark'; it has Benchmark, Cell, .*validate_many"):
        _ = jahs.benchmark  # type: ignore[attr-defined]  # that is the test


def test_the_ground_floor_has_few_rooms() -> None:
    found = {path.name for path in Path(jahs.__file__).parent.iterdir() if not path.name.startswith((".", "__"))}
    rooms = {
        "adapters",
        "cli",
        "comparison",
        "explorer",
        "files",
        "models",
        "optimizers",
        "published",
        "queries",
        "release",
        "serve",
        "simulate",
        "spaces",
        "tasks",
    }
    assert found == {*rooms, "errors.py", "schema.py", "releases", "seasons", "py.typed"}


def test_every_public_name_is_documented_and_the_list_is_sorted() -> None:
    assert sorted(jahs.__all__) == list(jahs.__all__)
    for name in jahs.__all__:
        assert getattr(jahs, name).__doc__


def test_the_version_is_written_once_and_cited() -> None:
    assert not re.search(r"^version\b", (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert f"\nversion: {jahs.__version__}\n" in (ROOT / "CITATION.cff").read_text()
