"""Hypothesis profiles, and a fixture of every test."""

import os

import pytest
from hypothesis import HealthCheck, settings

_ANY_PACE = [HealthCheck.too_slow]  # a machine may be busy
settings.register_profile("default", max_examples=20, deadline=None, suppress_health_check=_ANY_PACE)
settings.register_profile("explore", settings.get_profile("default"), max_examples=1000)
# A commit passes always or never.
settings.register_profile("ci", settings.get_profile("default"), max_examples=25, derandomize=True)
settings.register_profile("brief", settings.get_profile("ci"), max_examples=5)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

pytest.register_assert_rewrite("tests.contracts")


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory):
    """Compile the kernels once for all processes of a run: those of pytest-xdist, and those that tests start."""
    if os.environ.get("JAHS_CACHE_DIR"):
        yield
        return
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # which all workers have
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAHS_CACHE_DIR", str(folder / "compiled"))
        yield
