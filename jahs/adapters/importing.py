"""Load an optimiser's package where it is first needed, or say what to install."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from jahs.errors import MissingDependency

__all__ = ["import_tool"]


def import_tool(module: str, *, needs: str) -> Any:  # the tools' types are not installed where jahs is checked
    """Return `module` of an optimiser's package; MissingDependency says what to install, `needs`.

    What it warns of while it is imported concerns its authors.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as err:
        raise MissingDependency(f"{module} cannot be imported ({err}): pip install {needs}") from err
