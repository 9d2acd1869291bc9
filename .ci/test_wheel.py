"""The packages as a user gets them: installed into empty environments, used from somebody else's folder.

Apart from the other tests because it installs from a package registry: `make dist` builds the packages and calls it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from hashlib import sha256
from pathlib import Path

import pytest

from jahs.release import EMBEDDED

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / ".ci" / "constraints-core.txt"
DIST = ROOT / "dist"

# Interpreter, package and numpy: the wheel on every Python found, with the oldest numpy on the oldest and the newest
# that can be had on the newest; the sdist on the newest. numpy 1.26 has no wheels for Python 3.13.
PYTHONS = subprocess.run([ROOT / ".ci" / "pythons"], capture_output=True, text=True, check=True).stdout.split()
ENVIRONMENTS = [(python, "wheel", "pinned") for python in PYTHONS]
ENVIRONMENTS += [(python, "wheel", "1.26.0") for python in PYTHONS[:1] if not python.endswith(("3.13", "3.14"))]
ENVIRONMENTS += [(PYTHONS[-1], "wheel", "newest"), (PYTHONS[-1], "sdist", "pinned")]

# A user's own folder may hold anything, under names that our workshops have too.
USER_SCRIPT = """
import experiments, pipeline
assert experiments.OWNER == pipeline.OWNER == "user"

import jahs

space = jahs.space()
for config in space.sample(20, seed=7):
    assert space.validate(config) == config
try:
    space.validate({**space.sample(seed=7), "N": 2})
except jahs.errors.InvalidConfig as err:
    assert str(err).startswith("N"), err
else:
    raise SystemExit("N=2 was accepted")
print("sampled and validated")
"""


def run(*command: str | Path, cwd: Path) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def installed(python: Path, cwd: Path) -> set[str]:
    return {row["name"] for row in json.loads(run(python, "-m", "pip", "list", "--format=json", cwd=cwd))}


def packages(folder: Path) -> dict[str, Path]:
    """Return the wheel and the sdist in a folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="session")
def wheel() -> Path:
    return packages(DIST)["wheel"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's folder with an `experiments` package and a `pipeline` module of its own."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "experiments").mkdir()
    for name in ("experiments/__init__.py", "pipeline.py"):
        (folder / name).write_text('OWNER = "user"\n')
    (folder / "script.py").write_text(USER_SCRIPT)
    return folder


@pytest.fixture(scope="session", params=ENVIRONMENTS, ids=lambda param: "-".join((Path(param[0]).name, *param[1:])))
def environment(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, set[str]]:
    """Install a package into an empty environment; return its interpreter and the names that were pulled in."""
    interpreter, package, numpy = request.param
    venv = tmp_path_factory.mktemp("venv")
    run(interpreter, "-m", "venv", venv, cwd=folder)
    python = venv / "bin" / "python"
    before = installed(python, folder)
    pins = venv / "pins.txt"
    lines = [line for line in PINS.read_text().splitlines() if numpy == "pinned" or not line.startswith("numpy==")]
    pins.write_text("\n".join([*lines, *([f"numpy=={numpy}"] if numpy[0].isdigit() else [])]))
    run(python, "-m", "pip", "install", "-qq", "-c", pins, packages(DIST)[package], cwd=folder)
    return python, installed(python, folder) - before


def test_a_second_build_gives_the_same_bytes(tmp_path: Path) -> None:
    pins = {"PIP_CONSTRAINT": str(PINS), "PIP_BUILD_CONSTRAINT": str(PINS)}
    build = [sys.executable, "-m", "build", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, env={**os.environ, **pins}, umask=0o077, check=True, capture_output=True)
    first, second = (
        {path.name: sha256(path.read_bytes()).hexdigest() for path in packages(place).values()}
        for place in (DIST, tmp_path)
    )
    assert first == second


def test_the_packages_hold_both_licences(wheel: Path) -> None:
    held = {name.partition(".dist-info/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    assert {"licenses/LICENSE", "licenses/data/LICENSE"} <= held
    with tarfile.open(packages(DIST)["sdist"]) as sdist:
        assert {"LICENSE", "data/LICENSE"} <= {name.partition("/")[2] for name in sdist.getnames()}


def test_the_wheel_holds_jahs_and_nothing_else(wheel: Path) -> None:
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"jahs"}


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("jahs/")}
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "jahs").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == ours


def test_the_wheel_pulls_in_only_what_it_declares(wheel: Path, environment: tuple[Path, set[str]]) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    declared = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist") or []
    assert [line for line in declared if "extra ==" not in line] == ["numpy>=1.26"]
    assert environment[1] == {"jahs", "numpy"}


def test_a_user_samples_and_validates_beside_modules_named_like_our_workshops(
    environment: tuple[Path, set[str]], folder: Path
) -> None:
    assert run(environment[0], "script.py", cwd=folder) == "sampled and validated\n"


def test_the_command_works_beside_modules_named_like_our_workshops(
    environment: tuple[Path, set[str]], folder: Path
) -> None:
    command = environment[0].with_name("jahs")
    assert run(command, "--version", cwd=folder).startswith("jahs ")
    assert "Op1" in run(command, "demo", cwd=folder)


def test_every_embedded_release_is_as_it_was_published(environment: tuple[Path, set[str]], folder: Path) -> None:
    for task in EMBEDDED:
        assert EMBEDDED[task] in run(environment[0].with_name("jahs"), "verify", task, "--json", cwd=folder)


@pytest.mark.parametrize("environment", ENVIRONMENTS[-1:], indirect=True)
def test_anybody_compares_an_optimiser_with_the_baselines(environment: tuple[Path, set[str]], folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import jahs\n\ndef walk(trials):\n"
        "    return jahs.space(fixed={'N': 5, 'W': 16, 'Resolution': 1.0}).sample(seed=len(trials))\n"
    )
    command = environment[0].with_name("jahs")
    assert "walk" in run(command, "compare", "mine.py:walk", "--seeds", "2", "--out", "out", cwd=folder)
    assert (folder / "out" / "index.html").is_file()
