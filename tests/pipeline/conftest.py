"""The task of three epochs that some tests train, `digits_short.json`, is registered for one module alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from jahs.tasks.definitions import KNOWN, Task


@pytest.fixture(scope="module", autouse=True)
def the_short_task_is_forgotten() -> Iterator[None]:
    yield
    KNOWN.pop("digits_short", None)


@pytest.fixture(scope="session")
def task() -> Task:
    """A task of few images, with the digest of its split."""
    from pipeline.data import load_images
    from tests.pipeline.run_folders import SHRUNK

    return dataclasses.replace(SHRUNK, index_digest=load_images(SHRUNK, resolutions=(0.25,))[0.25].index_digest)
