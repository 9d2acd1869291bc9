import importlib.util
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without numba (a core install) only the numpy engine can be tested; the rest is skipped, with the reason."""
    if importlib.util.find_spec("numba") is not None:
        return
    skip = pytest.mark.skip(reason="needs the extra `fast`: numba is not installed")
    for item in items:
        if Path(__file__).parent in item.path.parents and "numpy" not in item.name:
            item.add_marker(skip)
