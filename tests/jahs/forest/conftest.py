import importlib.util
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory):
    """Compile the kernels once for this process and those that tests start."""
    if os.environ.get("JAHS_CACHE_DIR"):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAHS_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without numba (a core install) only the numpy engine can be tested; the rest is skipped, with the reason."""
    if importlib.util.find_spec("numba") is not None:
        return
    skip = pytest.mark.skip(reason="needs the extra `fast`: numba is not installed")
    for item in items:
        if Path(__file__).parent in item.path.parents and "numpy" not in item.name:
            item.add_marker(skip)
