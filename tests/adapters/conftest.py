"""Tests of a tool are collected where they are asked for: by `make test-adapters`, or by naming their file.

`JAHS_ADAPTER` is the adapter whose tool is installed, and whose tests must run: without the tool they fail.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jahs.adapters import TOOLS

FILES = {f"test_{adapter}.py": adapter for adapter in TOOLS}
WANTED = os.environ.get("JAHS_ADAPTER")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests of tools that are not asked for, and the pages' where none is."""
    is_named = any(collection_path.name == Path(argument.split("::")[0]).name for argument in config.args)
    if collection_path.name in FILES and FILES[collection_path.name] != WANTED and not is_named:
        return True
    return True if collection_path.name == "test_page.py" and WANTED is None else None
