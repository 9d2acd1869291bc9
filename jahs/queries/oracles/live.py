"""The one place where `jahs` reaches the workshop `pipeline`: by name, for kind="live", after checking that it is ours.

The wheel holds `jahs` alone, and `pipeline` is a name that other people use, too. So before anything of a `pipeline` is
run, what would be imported is looked up, and it must lie beside this `jahs` in a checkout of the project.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from jahs.errors import MissingDependency
from jahs.queries.oracles.oracle import Oracle
from jahs.tasks.definitions import Task

_ROOT = Path(__file__).resolve().parents[3]
_NEXT = (
    "clone the project, install its workshops (pip install -e '.[workshops]') and run from the checkout; "
    "kind='surrogate' answers without it"
)


def open_live(task: Task, *, root: Path = _ROOT) -> Oracle:
    """Return the oracle that trains, `pipeline.live.LiveOracle`.

    MissingDependency says what to do if this `jahs`, which lies in `root`, is not part of a checkout, `pipeline` is
    absent or somebody else's, or what it needs is not installed.
    """
    ours = root / "pipeline" / "__init__.py"
    pyproject = root / "pyproject.toml"
    if not ours.is_file() or not pyproject.is_file() or not _is_ours(pyproject):
        raise MissingDependency(
            f"kind='live' trains networks, which requires a checkout, and {root} is not one; {_NEXT}"
        )
    try:
        found = find_spec("pipeline")  # looks up a top-level package without running it
    except ValueError:  # something that was put into sys.modules by hand
        found = None
    if found is None or found.origin is None:
        raise MissingDependency(f"kind='live': Python finds no pipeline; run from {root}, where it lies")
    if Path(found.origin).resolve() != ours:
        raise MissingDependency(
            f"kind='live': the pipeline that Python finds is {found.origin}, not {ours.parent}; nothing of it was run. "
            f"Run from {root}, and without the other one on the path"
        )
    try:
        oracle: Oracle = import_module("pipeline.live").LiveOracle(task)
    except ModuleNotFoundError as err:
        raise MissingDependency(f"kind='live' needs {err.name}: pip install -e '.[workshops]' in {root}") from err
    return oracle


def _is_ours(pyproject: Path) -> bool:
    text = pyproject.read_text(encoding="utf-8", errors="replace")
    return re.search(r'^name = "jahs"$', text, re.MULTILINE) is not None
