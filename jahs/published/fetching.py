"""The published archives, downloaded and checked; see `jahs download jahs-bench-201`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from jahs.errors import UnknownName
from jahs.files.archives import checked_members, open_archive
from jahs.files.download import FetchedFile, fetch

ARCHIVES: Final = {"surrogates": "assembled_surrogates.tar", "table": "metric_data.tar"}
VERSIONS: Final = ("1.1.0", "1.0.0")
_SIZE: Final = "Both archives have 1.65 GB together: 3 minutes at 10 MB/s"
# Measured on archives of official size by bench_import.py and bench_import_table.py in tests/benchmarks.
_COSTS: Final = {
    "surrogates": (
        " --with-front",
        "imported",
        "the import takes a minute on 2 cores, 0.5 GB of memory and 25 MB of disk",
    ),
    "table": (
        "",
        "imported/runs/{task}",
        "the import takes under a minute, 0.6 GB of memory and 0.8 GB of disk, of which 0.1 GB stays",
    ),
}
"""Further options of the import, the folder of its result, and its costs."""

_ADDRESS: Final = "https://ml.informatik.uni-freiburg.de/research-artifacts/jahs_bench_201/v{version}"


def download_archives(
    folder: Path,
    *,
    what: Sequence[str] = tuple(ARCHIVES),
    version: str = VERSIONS[0],
    url: str | None = None,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> list[FetchedFile]:
    """Fetch published archives; every member is checked before an archive gets its name.

    Args:
        folder: folder for the archives; made if needed.
        what: the archives, keys of `ARCHIVES`.
        version: version of JAHS-Bench-201.
        url: folder of the archives on another server.
        report: called with an archive's name, its number of bytes so far, and its size in bytes.

    Raises as `jahs.files.download.fetch`, and UnsafeFile or CorruptFile for members that such an archive does not have.
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


def how_to_get(task: str, what: str) -> str:
    """Return the commands that fetch and import JAHS-Bench-201's data for a task, and their costs."""
    options, folder, costs = _COSTS[what]
    return (
        f"JAHS-Bench-201 published data for {task}. To get them, run\n"
        f"  jahs download jahs-bench-201 --what {what} --dir archives\n"
        f"  jahs import archives/{ARCHIVES[what]} --task {task} --out imported{options}\n"
        f"and give release={folder.format(task=task)!r}. {_SIZE}; {costs}."
    )


def _check(path: Path) -> None:
    with open_archive(path) as archive:
        checked_members(archive, path.name)
