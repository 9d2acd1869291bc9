"""The task of three epochs that some tests train, `digits_short.json`, is registered for one module alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jahs.tasks.definitions import KNOWN


@pytest.fixture(scope="module", autouse=True)
def the_short_task_is_forgotten() -> Iterator[None]:
    yield
    KNOWN.pop("digits_short", None)
