"""Integrations are imported as their users import them; warnings of the harnesses concern the harnesses' authors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
collect_ignore_glob = ["*/jahs_*", "*/package"]  # no doctests; a harness imports them

sys.path[:0] = [str(folder) for folder in sorted(HERE.iterdir()) if folder.is_dir()]


def pytest_configure(config: pytest.Config) -> None:
    """Turn no warning into an error: the last filter wins."""
    config.addinivalue_line("filterwarnings", "ignore")
