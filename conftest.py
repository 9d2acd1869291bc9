"""What examples in docstrings have at hand, as somebody who reads them does; and fewer collections of garbage."""

from __future__ import annotations

import gc

import pytest

import jahs
from jahs.spaces.cell import Cell

gc.disable()  # until all tests are collected: their modules and what they import are a million objects that stay


def pytest_collection_finish() -> None:
    """Exempt what is loaded from garbage collection, which would go through all of it again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace.update(jahs=jahs, Cell=Cell)
