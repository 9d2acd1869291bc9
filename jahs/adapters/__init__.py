"""The benchmark in each optimiser's own terms, one module per tool; none is imported before it is used.

Every module has `make_space`, `to_config` and `from_config`, and makes the object that its tool evaluates: an
objective, a problem or a blackbox. They can be imported without the tool; calls then say what to install.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TOOLS"]

TOOLS: Final = ("configspace", "dehb", "neps", "optuna", "pymoo", "smac", "syne_tune")
"""The modules of this package that are adapters, each named after its tool."""
