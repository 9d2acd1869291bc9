"""`jahs download jahs-bench-201`: the published archives, fetched when somebody asks for them and never otherwise."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from jahs.errors import UnknownName
from jahs.files.archives import checked_members, open_archive
from jahs.files.download import DownloadBar, Fetched, fetch

__all__ = ["ARCHIVES", "VERSIONS", "add_arguments", "download_archives", "run"]

ARCHIVES: Final = {"surrogates": "assembled_surrogates.tar", "table": "metric_data.tar"}
VERSIONS: Final = ("1.1.0", "1.0.0")
_ADDRESS: Final = "https://ml.informatik.uni-freiburg.de/research-artifacts/jahs_bench_201/v{version}"


def download_archives(
    folder: Path,
    *,
    what: Sequence[str] = tuple(ARCHIVES),
    version: str = VERSIONS[0],
    url: str | None = None,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Fetched]:
    """Fetch published archives; every member of one is looked at before it gets its name.

    Args:
        folder: where they go; made if need be.
        what: which ones, keys of `ARCHIVES`.
        version: of JAHS-Bench-201.
        url: folder of the archives on another server.
        report: is told again and again how many bytes of an archive have come, and of how many.

    Raises:
        UnknownName: there is no such archive or version.
        InvalidArgument: an archive is there from another server, or of another version.
        OutOfSpace, DownloadFailed: as `jahs.files.download.fetch`.
        UnsafeFile, CorruptFile: an archive has members that no such archive has, or is cut off.
    """
    if unknown := [name for name in what if name not in ARCHIVES]:
        raise UnknownName.of("what", unknown[0], ARCHIVES)
    if version not in VERSIONS:
        raise UnknownName.of("version", version, VERSIONS)
    server = (_ADDRESS.format(version=version) if url is None else url).rstrip("/")
    return [
        fetch(
            f"{server}/{ARCHIVES[name]}",
            folder / ARCHIVES[name],
            check=_check,
            report=lambda n_bytes, n_all, name=name: report(ARCHIVES[name], n_bytes, n_all),  # type: ignore[misc]
        )
        for name in what
    ]


def default_folder(version: str) -> Path:
    """Where archives go unless told otherwise: the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "jahs" / "jahs-bench-201" / version


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads."""
    parser.add_argument("benchmark", choices=["jahs-bench-201"], help="which benchmark's archives")
    parser.add_argument("--what", choices=ARCHIVES, help="only this archive (default: all)")
    parser.add_argument("--version", choices=VERSIONS, default=VERSIONS[0], help="which release (default: %(default)s)")
    parser.add_argument("--dir", type=Path, help="where to put them (default: the user's cache)")
    parser.add_argument("--url", help="folder of the archives on another server")


def run(arguments: argparse.Namespace) -> str:
    """Fetch what the arguments say; return what to print."""
    fetched = download_archives(
        arguments.dir or default_folder(arguments.version),
        what=[arguments.what] if arguments.what else tuple(ARCHIVES),
        version=arguments.version,
        url=arguments.url,
        report=DownloadBar(sys.stderr),
    )
    if getattr(arguments, "json", False):
        facts = [
            {"path": str(one.path), "n_bytes": one.n_bytes, "sha256": one.sha256, "is_new": one.is_new}
            for one in fetched
        ]
        return json.dumps(facts, indent=2, sort_keys=True)
    lines = [
        f"{one.path}: {one.n_bytes} bytes, sha256 {one.sha256}{'' if one.is_new else ', was there'}" for one in fetched
    ]
    return "\n".join([*lines, f"Next: jahs import {fetched[0].path} --out DIR"])


def _check(path: Path) -> None:
    with open_archive(path) as archive:
        checked_members(archive, path.name)
