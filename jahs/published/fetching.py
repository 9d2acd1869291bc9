"""The published archives, downloaded and checked; see `jahs download jahs-bench-201`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from jahs.errors import UnknownName
from jahs.files.archives import checked_members, open_archive
from jahs.files.download import Fetched, fetch

__all__ = ["ARCHIVES", "VERSIONS", "download_archives"]

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
    """Fetch published archives; every member is checked before an archive gets its name.

    Args:
        folder: where they go; made if needed.
        what: which ones, keys of `ARCHIVES`.
        version: of JAHS-Bench-201.
        url: folder of the archives on another server.
        report: is called with an archive's name and its number of bytes so far and in all.

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


def _check(path: Path) -> None:
    with open_archive(path) as archive:
        checked_members(archive, path.name)
