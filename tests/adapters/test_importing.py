"""Adapters import without their tools, and say what to install."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import jahs
from jahs.adapters import TOOLS
from jahs.adapters.importing import import_tool
from jahs.errors import MissingDependency

ROOT = Path(__file__).resolve().parents[2]


def test_every_tool_has_its_module_with_the_same_three_functions() -> None:
    found = {path.stem for path in (ROOT / "jahs" / "adapters").glob("*.py")}
    assert set(TOOLS) <= found
    for tool in TOOLS:
        adapter = import_module(f"jahs.adapters.{tool}")
        assert {"make_space", "to_config", "from_config"} <= set(adapter.__all__)
        assert all(hasattr(adapter, name) for name in adapter.__all__)


def test_importing_the_adapters_imports_no_tool() -> None:
    code = (
        "import sys, importlib; before = set(sys.modules)\n"
        f"for tool in {TOOLS!r}: importlib.import_module('jahs.adapters.' + tool)\n"
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name for name in eval(printed) if not name.startswith(("_cython_", "cython_"))} == {"jahs", "numpy"}


@pytest.mark.parametrize("tool", TOOLS)
def test_without_the_tool_a_call_says_what_to_install(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(module: str) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("jahs.adapters.importing.import_module", refuse)
    adapter = import_module(f"jahs.adapters.{tool}")
    with pytest.raises(MissingDependency, match=r"cannot be imported \(No module named '.*'\): pip install \S+"):
        adapter.make_space(jahs.space())


def test_a_tool_that_lacks_something_itself_says_what() -> None:
    with pytest.raises(MissingDependency, match=r"no_such_tool cannot be imported .*: pip install no-such-tool"):
        import_tool("no_such_tool", needs="no-such-tool")
