"""The examples in docstrings work."""

import doctest
import importlib
import pkgutil

import pytest

import jahs

MODULES = ["jahs", *(found.name for found in pkgutil.walk_packages(jahs.__path__, "jahs."))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_work(name):
    module = importlib.import_module(name)
    known = {"jahs": jahs, "np": importlib.import_module("numpy"), "Cell": jahs.spaces.cell.Cell}
    result = doctest.testmod(module, extraglobs=known, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_a_section_of_examples_has_one(name):
    found = doctest.DocTestFinder(exclude_empty=False).find(importlib.import_module(name))
    assert [test.name for test in found if "Example:" in test.docstring and not test.examples] == []


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 8
