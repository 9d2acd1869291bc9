"""Hypothesis profiles and helpers of every test."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

pytest.register_assert_rewrite("tests.contracts")


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory):
    """Compile the kernels once for this process and those that tests start, before any test needs them."""
    if os.environ.get("JAHS_CACHE_DIR"):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAHS_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        yield
