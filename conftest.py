"""Names that the examples in docstrings use; the garbage collector is off while pytest collects tests."""

from __future__ import annotations

import gc

import pytest

import jahs
from jahs.spaces.cell import Cell

gc.disable()  # imported modules stay in memory, so scanning them for garbage while tests are collected finds nothing


def pytest_collection_finish() -> None:
    """Turn the garbage collector on again."""
    gc.enable()


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace.update(jahs=jahs, Cell=Cell)
