"""The pins: every declared dependency has exactly one, none names a place, and the three files do not overlap."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import pytest
import tomllib
from packaging.markers import default_environment
from packaging.requirements import Requirement

from jahs.adapters import TOOLS

ROOT = Path(__file__).resolve().parents[2]
FILES = ("constraints-core.txt", "constraints-workshops.txt", "constraints-docs.txt")
INTEGRATIONS = tuple(sorted(path.parent.name for path in (ROOT / "integrations").glob("*/README.md")))
SHARED = {"optunahub": "constraints-adapters-optuna.txt", "syne_tune": "constraints-adapters-syne_tune.txt"}
INTEGRATION_FILES = tuple(SHARED.get(name, f"constraints-integrations-{name}.txt") for name in INTEGRATIONS)
ADAPTER_FILES = tuple(f"constraints-adapters-{tool}.txt" for tool in TOOLS if tool != "neps")
OTHER_FILES = (*ADAPTER_FILES, *INTEGRATION_FILES, "constraints-studies.txt")


PACKAGES = {
    "ax": "ax-platform",
    "mfpbench": "mf-prior-bench",
    "neps": "neural-pipeline-search",
    "syne_tune": "syne-tune",
}


def pins(file: str) -> list[Requirement]:
    lines = (ROOT / ".ci" / file).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned_names(python: str) -> list[str]:
    environment = {**default_environment(), "python_version": python}
    all_pins = (pin for file in FILES for pin in pins(file))
    return [canonical(pin.name) for pin in all_pins if pin.marker is None or pin.marker.evaluate(environment)]


@pytest.mark.parametrize("file", sorted({*FILES, *OTHER_FILES}))
def test_a_pin_is_one_exact_version_from_nowhere_in_particular(file: str) -> None:
    for pin in pins(file):
        assert pin.url is None
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(pin.specifier)), pin


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_no_package_is_pinned_twice(python: str) -> None:
    names = pinned_names(python)
    assert len(names) == len(set(names))


def test_the_pythons_that_are_declared_are_those_that_are_looked_for_and_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    minors = [line.removeprefix(prefix) for line in project["classifiers"] if line.startswith(prefix)]
    assert project["requires-python"] == f">=3.{minors[0]}"
    assert f"for minor in {' '.join(minors)}; do" in (ROOT / ".ci/pythons").read_text(encoding="utf-8")
    row = ", ".join(f"3.{minor}" for minor in minors)
    assert f"| {row} |" in (ROOT / "docs/python-versions.md").read_text(encoding="utf-8")


def test_every_declared_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    declared = [*project["project"]["dependencies"], *project["build-system"]["requires"], *chain(*extras)]
    tested = {canonical(pin.name) for file in INTEGRATION_FILES for pin in pins(file)}
    assert {canonical(Requirement(line).name) for line in declared} <= {*pinned_names("3.11"), *tested}


def imported(path: Path) -> set[str]:
    """Packages that a file imports when it is loaded."""
    lines = ast.parse(path.read_text(encoding="utf-8")).body
    names = {alias.name for line in lines if isinstance(line, ast.Import) for alias in line.names}
    names |= {line.module or "" for line in lines if isinstance(line, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


def test_the_tests_of_jahs_load_without_its_optional_packages() -> None:
    """They also run where only numpy is installed; what needs another package asks `pytest.importorskip` for it."""
    installed = {*sys.stdlib_module_names, "numpy", "pytest", "hypothesis", *(path.name for path in ROOT.iterdir())}
    missing = {str(path): imported(path) - installed for path in (ROOT / "tests/jahs").rglob("*.py")}
    assert not {path: names for path, names in missing.items() if names}


def pinned_versions(files: Mapping[str, str]) -> dict[str, str]:
    """Return the version of each tool in the file that pins it."""
    return {
        tool: str(pin.specifier).removeprefix("==")
        for tool, file in files.items()
        for pin in pins(file)
        if canonical(pin.name) == PACKAGES.get(tool, tool)
    }


def test_what_adapters_are_tested_with_is_what_their_page_says() -> None:
    page = (ROOT / "docs/adapters/index.md").read_text(encoding="utf-8")
    tested = dict(re.findall(r"^\| \[.+?\]\((\w+)\.md\) \| ([\d.]+)", page, re.MULTILINE))
    files = {tool: f"constraints-adapters-{tool}.txt" for tool in TOOLS}
    assert tested == pinned_versions(files | {"neps": "constraints-workshops.txt"})


def test_what_integrations_are_tested_with_is_what_their_page_says() -> None:
    page = (ROOT / "integrations/README.md").read_text(encoding="utf-8")
    tested = dict(re.findall(r"^\| \[(\w+)\]\(\w+/README.md\) \| .+? \| ([\d.]+) \|", page, re.MULTILINE))
    assert tested == pinned_versions(dict(zip(INTEGRATIONS, INTEGRATION_FILES, strict=True)))
    script = (ROOT / ".ci/test_adapters").read_text(encoding="utf-8")
    assert re.findall(r"integrations/\{(.*?)\}\)", script) == [",".join(INTEGRATIONS)]


@pytest.mark.parametrize(
    "file",
    [
        "pyproject.toml",
        "Makefile",
        ".ci/run",
        ".ci/test_adapters",
        ".ci/fetch_python",
        *(f".ci/{file}" for file in sorted({*FILES, *OTHER_FILES})),
    ],
)
def test_no_file_names_a_package_index(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    if file == "pyproject.toml":
        for url in tomllib.loads(text)["project"]["urls"].values():  # pages to read, where nothing is installed from
            text = text.replace(url, "")
    assert not re.search(r"index-url|find-links|trusted-host|https?://", text)
