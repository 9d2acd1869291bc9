import os

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
