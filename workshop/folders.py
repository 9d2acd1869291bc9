"""Files of results, written completely or not at all, and the versions and the commit that produced them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from jahs.errors import InvalidArgument, translating
from jahs.files.atomic import HAS_LOCKS, check_folder, out_of_space, write_beside

_PACKAGES: Final = ("jahs", "numpy", "scikit-learn", "scipy", "xgboost")


def write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all.

    Raises:
        OutOfSpace: the disk is full.
        InvalidArgument: it cannot be written there.
    """
    with writing(path), out_of_space(path), write_beside(path) as beside:
        beside.write_text(text, encoding="utf-8")


def check_file(path: Path) -> None:
    """Refuse a path to which no file can be written; for commands that write their result after long work.

    Raises:
        InvalidArgument: it is a folder, or its folder does not exist or cannot be written.
    """
    folder = path.absolute().parent
    if path.is_dir():
        raise InvalidArgument(f"{path} must be a file, got a folder; choose another name")
    if not folder.is_dir():
        raise InvalidArgument(f"{path}: its folder does not exist; make it first")
    check_folder(folder)


def writing(path: Path) -> AbstractContextManager[None]:
    """Turn errors of the system into a message that names the path.

    Raises:
        InvalidArgument: the path cannot be written.
    """
    return translating(
        OSError,
        into=lambda err: InvalidArgument(f"{path} cannot be written: {err.strerror or err}; choose another folder"),
    )


@contextmanager
def held_folder(path: Path) -> Iterator[None]:
    """Hold the lock of an existing folder; wait while another process holds it; OSError if it cannot be locked."""
    if not HAS_LOCKS:
        yield
        return
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def package_versions(*more: str) -> dict[str, str]:
    """Return versions of Python, of the packages that determine a fit, and of more packages."""
    versions = {"python": platform.python_version()}
    for name in (*_PACKAGES, *more):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def versions_text(versions: Mapping[str, str]) -> str:
    """Return versions as a fact of a page."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def versions_fact() -> tuple[str, str]:
    """Return the versions of this process as a fact of a page."""
    return "versions", versions_text(package_versions())


def commit_fact() -> tuple[str, str]:
    """Return the commit as a fact of a page."""
    return "commit", str(commit())


def commit() -> str | None:
    """Return the commit of the checkout, with a plus sign if code differs from it; None outside of a checkout."""
    git = shutil.which("git")
    if git is None:
        return None

    def run_git(*arguments: str) -> str | None:
        process = subprocess.run(  # noqa: S603  # fixed arguments, no shell
            [git, *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
        return process.stdout.strip() if process.returncode == 0 else None

    head = run_git("rev-parse", "HEAD")
    changed = run_git("status", "--porcelain", "--untracked-files=no", "--", ":/*.py", ":/pyproject.toml")
    return None if head is None else head + ("+" if changed else "")
