"""Fetch Fashion-MNIST or CIFAR-10 from the original address, and check every file against its published digest.

    python -m pipeline.download fashion_mnist
    python -m pipeline.download cifar10

A file is complete and correct, or absent (`jahs.files.download`). Correct files that are already there are kept.
Exit codes: 0 done, 1 failed, 2 the user's mistake.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jahs.errors import DownloadFailed, translating
from jahs.files.download import DownloadBar, check_address, check_room, fetch
from jahs.files.transport import ELSEWHERE
from pipeline.sources import FASHION_FILES, cache_folder
from workshop.command import new_parser, run_command

_ADDRESSES: Final = {
    "fashion_mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "cifar10": "https://www.cs.toronto.edu/~kriz/",
}


@dataclass(frozen=True, slots=True)
class DataFile:
    """The length of a published file, and a digest by the algorithm that its authors state."""

    n_bytes: int
    digest: str
    algorithm: str = "sha256"


_FASHION: Final = (  # SHA-256 of the files whose MD5 the authors of Fashion-MNIST publish
    DataFile(26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
    DataFile(29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
    DataFile(4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
    DataFile(5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
)
PUBLISHED: Final[Mapping[str, Mapping[str, DataFile]]] = {
    "fashion_mnist": dict(zip(FASHION_FILES, _FASHION, strict=True)),
    "cifar10": {"cifar-10-binary.tar.gz": DataFile(170_052_171, "c32a1d4ab5d03f1284b67883e8d87530", "md5")},
}
"""The files of every data set that is fetched."""


def download(
    folder: Path,
    *,
    url: str,
    files: Mapping[str, DataFile],
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> list[str]:
    """Fetch the files that `folder` lacks; return their names.

    Args:
        url: folder of the files on a server that has them byte for byte.
        files: the files to fetch, with their lengths and digests.
        report: called repeatedly with a file's name and its number of bytes so far and in all.

    Raises:
        InvalidArgument: the URL is not one of http or https.
        OutOfSpace: there is too little disk for all files.
        DownloadFailed: a file could not be fetched or written, or is not the published one.
    """
    check_address(url)
    with translating(OSError, into=lambda err: DownloadFailed(f"{folder} cannot be used: {err}")):
        missing = [name for name, file in files.items() if not _is_right(folder / name, file)]
        folder.mkdir(parents=True, exist_ok=True)
        check_room(folder, sum(files[name].n_bytes for name in missing))
    for name in missing:
        address, file = f"{url.rstrip('/')}/{name}", files[name]
        fetch(
            address,
            folder / name,
            sha256=file.digest if file.algorithm == "sha256" else None,
            n_bytes=file.n_bytes,
            check=functools.partial(_check, address, file),
            report=functools.partial(report, name),
        )
    return missing


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Fetch a data set from its original address and check every file."
    parser = new_parser("pipeline.download", about, example="fashion_mnist")
    parser.add_argument("data_set", choices=_ADDRESSES, help="which data set")
    parser.add_argument("--url", help="folder of the files on another server (default: the original address)")
    parser.add_argument("--dir", type=Path, help="where to put them (default: the folder in which tasks look)")
    args = parser.parse_args(argv)
    files = PUBLISHED[args.data_set]

    def work() -> str:
        folder = cache_folder(args.data_set) if args.dir is None else args.dir
        url = _ADDRESSES[args.data_set] if args.url is None else args.url
        fetched = download(folder, url=url, files=files, report=DownloadBar(sys.stderr))
        return f"{folder}: {len(fetched)} files fetched, {len(files) - len(fetched)} already present"

    return run_command("pipeline.download", work)


def _check(address: str, file: DataFile, path: Path) -> None:
    """Refuse a file that is not the published one."""
    if (digest := _digest(path, file.algorithm)) != file.digest:
        raise DownloadFailed(f"{address}: {file.algorithm} is {digest}, not {file.digest} as published; {ELSEWHERE}")


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _is_right(path: Path, file: DataFile) -> bool:
    """Return whether a published file is already there."""
    return path.is_file() and path.stat().st_size == file.n_bytes and _digest(path, file.algorithm) == file.digest


if __name__ == "__main__":
    sys.exit(main())
