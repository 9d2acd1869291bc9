"""A folder of runs for every module that says what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surrogate.landscape import write_folder


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the module's `MEASURED`."""
    return write_folder(tmp_path_factory.mktemp("data") / "runs", request.module.MEASURED)
