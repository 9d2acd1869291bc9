"""A folder of runs for every module that says what was measured, and releases that are made quickly."""

from __future__ import annotations

from pathlib import Path

import pytest

from surrogate import contents
from tests.surrogate.landscape import write_folder


@pytest.fixture
def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases without a noise model: to fit it takes longer than everything else."""
    monkeypatch.setattr(contents, "noise_of", lambda *_, seed, **_times: (None, {"reason": f"left out, seed {seed}"}))


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the module's `MEASURED`."""
    return write_folder(tmp_path_factory.mktemp("data") / "runs", request.module.MEASURED)
