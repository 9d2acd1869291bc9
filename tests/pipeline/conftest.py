"""The task of three epochs that some tests train, `digits_short.json`, is registered for one module alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from jahs.tasks.definitions import KNOWN, Task


@pytest.fixture(scope="module", autouse=True)
def the_short_task_is_forgotten() -> Iterator[None]:
    yield
    KNOWN.pop("digits_short", None)


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home, and so without a cache."""

    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", fail)


@pytest.fixture(scope="session")
def task() -> Task:
    """A task of few images, with the digest of its split."""
    from pipeline.data import load_images
    from tests.pipeline.run_folders import SHRUNK

    return dataclasses.replace(SHRUNK, index_digest=load_images(SHRUNK, resolutions=(0.25,))[0.25].index_digest)
