"""What examples in docstrings have at hand, as somebody who reads them does; no garbage collection while importing."""

from __future__ import annotations

import gc

import pytest

import jahs
from jahs.spaces.cell import Cell

gc.disable()  # until all tests are collected: what is imported until then stays


def pytest_collection_finish() -> None:
    """Collect garbage again."""
    gc.enable()


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace.update(jahs=jahs, Cell=Cell)
