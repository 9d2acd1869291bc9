"""The way to `pipeline`: only ours, and nothing of another one is run."""

from __future__ import annotations

import sys
import types

import pytest

from jahs.errors import MissingDependency
from jahs.queries.oracles.opening import open_live
from jahs.tasks.definitions import TASKS

TRAP = "raise SystemExit('a foreign pipeline was run')\n"


@pytest.fixture
def checkout(tmp_path):
    """A folder that looks like a checkout of the project."""
    root = tmp_path / "checkout"
    (root / "pipeline").mkdir(parents=True)
    (root / "pipeline" / "__init__.py").write_text(TRAP)
    (root / "pyproject.toml").write_text('[project]\nname = "jahs"\n')
    return root


@pytest.fixture
def no_pipeline(monkeypatch):
    """Nobody has imported a pipeline yet, and none is found."""
    kept = take_out_pipeline()
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    yield
    take_out_pipeline()
    sys.modules.update(kept)


def take_out_pipeline():
    """Forget every module of it, and return them."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "pipeline"}


def test_a_jahs_outside_of_a_checkout_says_so(tmp_path, no_pipeline):
    with pytest.raises(MissingDependency, match=r"requires a checkout.* clone the project"):
        open_live(TASKS["digits"], root=tmp_path)


def test_an_installed_jahs_beside_an_installed_pipeline_of_somebody_else_is_no_checkout(checkout, no_pipeline):
    sys.path.append(str(checkout))
    (checkout / "pyproject.toml").unlink()
    with pytest.raises(MissingDependency, match="requires a checkout"):
        open_live(TASKS["digits"], root=checkout)
    (checkout / "pyproject.toml").write_text('[project]\nname = "plumbing"\n')
    with pytest.raises(MissingDependency, match="requires a checkout"):
        open_live(TASKS["digits"], root=checkout)


def test_a_pipeline_that_python_does_not_find_is_named(checkout, no_pipeline):
    with pytest.raises(MissingDependency, match=r"does not find the package pipeline; run from .*checkout"):
        open_live(TASKS["digits"], root=checkout)


@pytest.mark.parametrize("what", ["package", "module"])
def test_a_foreign_pipeline_is_refused_before_anything_of_it_runs(checkout, no_pipeline, tmp_path, what):
    other = tmp_path / "other"
    other.mkdir()
    if what == "package":
        (other / "pipeline").mkdir()
        (other / "pipeline" / "__init__.py").write_text(TRAP)
        (other / "pipeline" / "live.py").write_text(TRAP)
    else:
        (other / "pipeline.py").write_text(TRAP)
    sys.path[:] = [str(other), str(checkout)]
    with pytest.raises(MissingDependency, match=r"other.pipeline.*it was not imported"):
        open_live(TASKS["digits"], root=checkout)
    assert "pipeline" not in sys.modules


@pytest.mark.parametrize("origin", [None, "elsewhere"])
def test_a_foreign_pipeline_that_is_already_imported_is_refused(checkout, no_pipeline, origin):
    module = types.ModuleType("pipeline")
    if origin:
        module.__spec__ = types.SimpleNamespace(origin="/elsewhere/pipeline/__init__.py")
    sys.modules["pipeline"] = module  # taken out again by the fixture; monkeypatch would undo it too late
    with pytest.raises(MissingDependency, match=r"elsewhere" if origin else "does not find the package pipeline"):
        open_live(TASKS["digits"], root=checkout)


def test_our_own_pipeline_is_found_and_what_it_lacks_is_named(checkout, no_pipeline):
    (checkout / "pipeline" / "__init__.py").write_text("")
    (checkout / "pipeline" / "live.py").write_text("import a_package_that_nobody_has\n")
    sys.path.append(str(checkout))
    with pytest.raises(MissingDependency, match=r"needs a_package_that_nobody_has: pip install"):
        open_live(TASKS["digits"], root=checkout)
