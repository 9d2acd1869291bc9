"""What the examples in docstrings have at hand, as somebody who reads them does."""

from __future__ import annotations

import pytest

import jahs
from jahs.spaces.cell import Cell


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace.update(jahs=jahs, Cell=Cell)
