"""The fixture `attacks`: seeded cases, a few in a plain run and for as long as `make attack MINUTES=30` says."""

import os

import pytest

from tests.adversarial.attacks import Attacks


@pytest.fixture
def attacks(request) -> Attacks:
    """Return the cases of one test; all tests that ask for them share the minutes evenly."""
    n_tests = sum("attacks" in item.fixturenames for item in request.session.items)
    n_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    minutes = float(os.environ.get("JAHS_ATTACK_MINUTES", "0"))
    seed = os.environ.get("JAHS_ATTACK_SEED")
    return Attacks(seconds=60 * minutes * n_workers / n_tests, only=None if seed is None else int(seed))
