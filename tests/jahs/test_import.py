"""`import jahs` is light: the standard library and numpy."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jahs

ROOT = Path(__file__).parents[2]
LIMIT_S = 0.4


def in_a_fresh_process(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_only_numpy_is_imported_beyond_the_standard_library():
    code = (
        "import json, sys, numpy, numpy.random\nbefore = {*sys.modules}\n"
        "import jahs\nprint(json.dumps([*{*sys.modules} - before]))"
    )
    loaded = {name.split(".")[0] for name in json.loads(in_a_fresh_process(code))}
    assert {name for name in loaded if name not in sys.stdlib_module_names} - {"numpy"} == {"jahs"}


def test_the_import_takes_less_than_the_limit_of_cpu():
    code = "import time; import jahs; print(time.process_time())"
    assert min(float(in_a_fresh_process(code)) for _ in range(3)) < LIMIT_S


def test_the_import_starts_no_thread_logs_nothing_and_touches_no_state():
    code = (
        "import logging, random, threading, warnings; state = random.getstate(); filters = list(warnings.filters)\n"
        "import jahs\n"
        "assert threading.active_count() == 1 and not logging.getLogger().handlers\n"
        "assert random.getstate() == state and not logging.getLogger('jahs').handlers\n"
        "import numpy; print('quiet')"
    )
    assert in_a_fresh_process(code) == "quiet\n"


def test_every_public_name_exists_and_the_list_is_sorted():
    assert sorted(jahs.__all__) == list(jahs.__all__)
    for name in jahs.__all__:
        assert getattr(jahs, name).__doc__


def test_the_version_is_that_of_the_package():
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert version == jahs.__version__
