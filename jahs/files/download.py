"""Downloads that resume where they were cut off, and end in a complete, checked file or in no file.

Over 300 lines: a download that resumes is one state machine; split, its states would be spread over files.

The downloaded part is kept beside the file, with the server's mark of its version (ETag or date). The next attempt asks
for the rest of that version; a server that has a newer one by then, or does not support ranges, sends everything again.
One process at a time: the process that downloads a file holds a lock on the downloaded part.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import re
import shutil
import time
import urllib.error
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TextIO

from jahs.errors import DownloadFailed, InvalidArgument, JahsError, OutOfSpace
from jahs.files import transport
from jahs.files.atomic import HAS_LOCKS, fsync_folder, hold, write_beside
from jahs.files.hashing import sha256_file
from jahs.files.strict_json import parse_json
from jahs.files.transport import ELSEWHERE, open_address

_OTHER_FOLDER: Final = "name another folder with --dir"
_AGAIN: Final = "the same command goes on from there"
_FROM: Final = "# from "  # before the address in a .sha256 file: a comment to `sha256sum --check`
_CHUNK: Final = 1 << 18
_SLOWEST: Final = 1 << 10  # bytes per second; a slower connection is closed
_SPARE: Final = 16 << 20  # bytes of disk that are left free
_WRITE_FAULTS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_RANGE: Final = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedFile:
    """A complete file on disk."""

    path: Path
    n_bytes: int
    sha256: str
    is_new: bool  # whether it was fetched just now


def fetch(
    address: str,
    path: Path,
    *,
    sha256: str | None = None,
    n_bytes: int | None = None,
    check: Callable[[Path], None] = lambda _: None,
    report: Callable[[int, int], None] = lambda *_: None,
    n_attempts: int = 5,
    pause_s: float = 1.0,
) -> FetchedFile:
    """Fetch one large file, unless it is there; its sha256 and address are written beside it and compared from then on.

    Args:
        address: an http or https address.
        path: the file to write; its folder is made if needed.
        sha256, n_bytes: required sha256 and size, where they are known.
        check: checks the complete file before it gets its name, and raises if it is not valid.
        report: is called repeatedly with the number of bytes so far and in all.
        n_attempts: number of attempts, the first one included.
        pause_s: seconds before the second attempt; twice as long before each further one.

    Raises:
        InvalidArgument: the address is of another kind, or the file is there from another address.
        OutOfSpace: there is too little disk; raised before anything is fetched.
        DownloadFailed: the file could not be fetched completely or written, has another sha256, or another process is
            fetching it. The downloaded part is kept, and resumed if the server names the version.
    """
    check_address(address)
    part = _Part(path)
    try:
        if (existing := _existing(path, address, sha256)) is not None:
            return existing
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.locked():
            n_all = _complete(address, part, report, wanted=n_bytes, n_attempts=n_attempts, pause_s=pause_s)
            digest = _checked(address, part, n_all, sha256=sha256, check=check)
            part.finish(digest, address)
    except JahsError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as err:
        raise explained(err, address, kept=part.kept(address)) from err
    return FetchedFile(path=path, n_bytes=n_all, sha256=digest, is_new=True)


def check_address(address: str) -> None:
    """Refuse an address that is not http or https."""
    if not address.startswith(("http://", "https://")):
        raise InvalidArgument(f"url={address!r} does not begin with http:// or https://")


def check_room(folder: Path, n_bytes: int) -> None:
    """Refuse a download that the disk cannot hold; OutOfSpace says how much is free and how much is needed."""
    if n_bytes > (n_free := shutil.disk_usage(folder).free):
        raise OutOfSpace(f"{folder} has {n_free} bytes free, {n_bytes} are needed; {_OTHER_FOLDER}")


def explained(err: Exception, address: str, *, kept: int = 0) -> JahsError:
    """Return the error to raise for an error of the network or of the disk; a retry continues after `kept` bytes."""
    rest = f"{kept} bytes are already here; {_AGAIN}" if kept else ELSEWHERE
    match err:
        case urllib.error.HTTPError():
            err.close()
            return DownloadFailed(f"{address}: the server says {err.code} {printable(err.reason)}; {rest}")
        case OSError(errno=errno.ENOSPC):
            return OutOfSpace(f"{address}: the disk is full; {_OTHER_FOLDER}")
        case OSError() if _is_disk_error(err):
            return DownloadFailed(f"{address}: the folder cannot be used: {err}; {_OTHER_FOLDER}")
        case urllib.error.URLError():
            return DownloadFailed(f"{address}: {printable(err.reason)}; {rest}")
    return DownloadFailed(f"{address}: {printable(err)}; {rest}")


def printable(said: object) -> str:
    """Return a server's words for a terminal, with control characters escaped as in Python."""
    text = str(said)[:200]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _is_disk_error(err: Exception) -> bool:
    """Return whether an error comes from the disk: it names a file, or writing failed."""
    return isinstance(err, OSError) and (err.filename is not None or err.errno in _WRITE_FAULTS)


class _Part:
    """The downloaded part of a file, and the version of the file that it belongs to."""

    def __init__(self, path: Path) -> None:
        self.target = path
        self.path = path.with_name(f".{path.name}.part")
        self._facts_path = path.with_name(f".{path.name}.part.json")

    @property
    def n_bytes(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock this part while the context is open; DownloadFailed if another process holds the lock."""
        if not HAS_LOCKS:  # Windows cannot rename an open file either; the length is compared instead
            yield
            return
        with self.path.open("ab") as file:
            try:
                hold(file)
            except BlockingIOError as err:
                raise _taken(self.path) from err
            if not self._is(file):  # it was finished or deleted between the two lines above
                raise _taken(self.path)
            try:
                yield
            finally:
                if self._is(file) and not self.n_bytes:
                    self.delete()

    def _is(self, file: IO[bytes]) -> bool:
        """Return whether an open file still has the name of this part."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def facts(self) -> dict[str, Any]:  # Any: JSON
        """Return address, mark and length of the partly downloaded version; an empty dict without a mark."""
        try:
            facts = parse_json(self._facts_path.read_bytes())
            return facts if isinstance(facts, dict) and isinstance(facts.get("mark"), str) and self.n_bytes else {}
        except (OSError, ValueError):
            return {}

    def kept(self, address: str) -> int:
        """Return the number of bytes that a download from this address continues from."""
        return self.n_bytes if self.facts().get("address") == address else 0

    def begin(self, facts: Mapping[str, Any]) -> None:  # Any: JSON
        self.path.write_bytes(b"")
        with write_beside(self._facts_path) as beside:
            beside.write_text(json.dumps(facts, sort_keys=True) + "\n")

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)
        self._facts_path.unlink(missing_ok=True)

    def finish(self, sha256: str, address: str) -> None:
        """Give the file its name, and write its sha256 beside it as `sha256sum` does, with the address as a comment."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        with write_beside(_recorded(self.target)) as beside:
            beside.write_text(f"{sha256}  {self.target.name}\n{_FROM}{address}\n", encoding="utf-8")
        self.path.replace(self.target)
        fsync_folder(self.target.parent)
        self._facts_path.unlink(missing_ok=True)


def _taken(path: Path) -> DownloadFailed:
    return DownloadFailed(f"{path}: another process is downloading into this file; wait for it, or {_OTHER_FOLDER}")


def _recorded(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _existing(path: Path, address: str, sha256: str | None) -> FetchedFile | None:
    """Return the file if it exists unchanged; if its sha256 is required, it may come from any address."""
    if not path.is_file():
        return None
    if sha256 is None:
        try:
            first, *comments = _recorded(path).read_text(encoding="utf-8").splitlines()
            sha256 = first.split()[0]
        except (OSError, ValueError, IndexError):
            return None
        # A file without the comment was downloaded by an older version, or by hand.
        source = next((line.removeprefix(_FROM) for line in comments if line.startswith(_FROM)), address)
        if source != address:
            raise InvalidArgument(f"{path} is there, but from {source}; {_OTHER_FOLDER} for {address}, or delete it")
    digest = sha256_file(path)
    return (
        FetchedFile(path=path, n_bytes=path.stat().st_size, sha256=digest, is_new=False) if digest == sha256 else None
    )


def _complete(
    address: str,
    part: _Part,
    report: Callable[[int, int], None],
    *,
    wanted: int | None,
    n_attempts: int,
    pause_s: float,
) -> int:
    """Fetch the whole file; return its length. Raises the OSError or HTTPException of the last attempt."""
    for attempt in range(n_attempts - 1):
        try:
            return _attempt(address, part, report, wanted=wanted)
        except (OSError, http.client.HTTPException) as err:  # noqa: PERF203  # attempts are seconds apart
            if isinstance(err, (urllib.error.HTTPError, JahsError)) or _is_disk_error(err):
                raise
            time.sleep(pause_s * 2**attempt)
    return _attempt(address, part, report, wanted=wanted)


def _checked(address: str, part: _Part, n_bytes: int, *, sha256: str | None, check: Callable[[Path], None]) -> str:
    """Return the sha256 of the download; JahsError on a mismatch, and then it is deleted."""
    try:
        if part.n_bytes != n_bytes:
            raise DownloadFailed(f"{part.path} has {part.n_bytes} bytes, {address} has {n_bytes}; try again")
        digest = sha256_file(part.path)
        if sha256 is not None and digest != sha256:
            raise DownloadFailed(f"{address}: sha256 is {digest}, not {sha256} as published; {ELSEWHERE}")
        check(part.path)
    except JahsError:
        part.delete()
        raise
    return digest


def _attempt(address: str, part: _Part, report: Callable[[int, int], None], *, wanted: int | None) -> int:
    """Fetch the rest, or everything; return the file's length. ConnectionError if fewer bytes arrive than announced."""
    facts, n_kept = part.facts(), part.kept(address)
    range_headers = {"Range": f"bytes={n_kept}-", "If-Range": facts["mark"]} if n_kept else {}
    try:
        response = open_address(address, {"Accept-Encoding": "identity", "User-Agent": "jahs", **range_headers})
    except urllib.error.HTTPError as err:
        if err.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not n_kept:
            raise
        err.close()  # the downloaded part is as long as the file, or longer
        if n_kept == facts.get("n_bytes"):
            report(n_kept, n_kept)
            return n_kept
        part.begin({})
        return _attempt(address, part, report, wanted=wanted)
    if n_kept and response.status == http.HTTPStatus.PARTIAL_CONTENT and not _is_version(response, facts["mark"]):
        response.close()  # the downloaded part and the rest belong to different versions
        part.begin({})
        return _attempt(address, part, report, wanted=wanted)
    with response:
        n_kept, n_all = _plan(response, n_kept, facts, address)
        if wanted is not None and n_all != wanted:
            raise DownloadFailed(f"{address}: the server announces {n_all} bytes, {wanted} were published; {ELSEWHERE}")
        check_room(part.path.parent, n_all - n_kept + _SPARE)
        if not n_kept:
            mark = response.headers.get("ETag") or response.headers.get("Last-Modified")
            is_weak = mark is None or mark.startswith("W/")
            part.begin({"address": address, "mark": None if is_weak else mark, "n_bytes": n_all})
        n_bytes = n_kept
        with part.path.open("ab") as file:
            since, n_then = time.monotonic(), n_bytes
            while n_bytes <= n_all and (chunk := response.read1(_CHUNK)):  # `read` would wait for a whole chunk
                file.write(chunk)
                file.flush()  # reported bytes are on disk, however this process ends
                n_bytes += len(chunk)
                if (elapsed := time.monotonic() - since) >= transport.PATIENCE_S:
                    if n_bytes - n_then < _SLOWEST * elapsed and n_bytes < n_all:
                        raise ConnectionError(f"{n_bytes - n_then} bytes came in {elapsed:.0f} s; that is too slow")
                    since, n_then = time.monotonic(), n_bytes
                report(n_bytes, n_all)
    if n_bytes > n_all:
        part.delete()
        raise DownloadFailed(f"{address}: more came than the {n_all} bytes that the server announced; {ELSEWHERE}")
    if n_bytes < n_all:
        raise ConnectionError(f"{n_bytes} bytes came, {n_all} were announced")
    return n_all


def _is_version(response: Any, mark: str) -> bool:  # Any: see `open_address`
    """Return whether a partial answer has this mark; where the answer names none, If-Range guarantees it."""
    if mark.startswith('"'):
        return bool(response.headers.get("ETag") == mark)
    return bool(response.headers.get("Last-Modified", mark) == mark)


def _plan(response: Any, n_kept: int, facts: Mapping[str, Any], address: str) -> tuple[int, int]:  # Any: as above
    """Return how many of the kept bytes are valid, and the length of the file, from the server's answer."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise DownloadFailed(f"{address}: the server encodes the file, though asked not to; {ELSEWHERE}")
    lengths = set(response.headers.get_all("Content-Length", ()))
    if len(lengths) > 1:
        raise DownloadFailed(f"{address}: the server announces several lengths; {ELSEWHERE}")
    length = next(iter(lengths), None)
    if length is None or not re.fullmatch(r"\d{1,15}", length):
        raise DownloadFailed(f"{address}: the server does not say how long the file is; {ELSEWHERE}")
    if response.status == http.HTTPStatus.OK:
        return 0, int(length)
    content_range = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status != http.HTTPStatus.PARTIAL_CONTENT or content_range is None or not n_kept:
        raise DownloadFailed(f"{address}: the server answers {response.status} where 200 was expected; {ELSEWHERE}")
    start, end, n_all = (int(number) for number in content_range.groups())
    if (start, end + 1, n_all) != (n_kept, n_all, facts.get("n_bytes")) or int(length) != n_all - n_kept:
        raise DownloadFailed(
            f"{address}: asked for bytes {n_kept} to {facts.get('n_bytes')}, the server sends {content_range.group()}; "
            f"delete {address.rsplit('/', 1)[-1]}'s .part file and try again"
        )
    return n_kept, n_all


class DownloadBar:
    """Draws the share and the time left on a terminal; elsewhere writes one line per complete file."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._name = ""
        self._started = 0.0
        self._first = 0

    def __call__(self, name: str, n_bytes: int, n_all: int) -> None:
        """Report that `n_bytes` of a file's `n_all` bytes have arrived."""
        if name != self._name:
            self._name, self._started, self._first = name, time.monotonic(), n_bytes
        elapsed = time.monotonic() - self._started
        if self._is_terminal:
            left = elapsed * (n_all - n_bytes) / max(n_bytes - self._first, 1)
            self._stream.write(f"\r\033[K{name} {n_bytes / max(n_all, 1):4.0%}, {left:.0f} s left")
            if n_bytes >= n_all:
                self._stream.write("\n")
            self._stream.flush()
        elif n_bytes >= n_all:
            self._stream.write(f"{name}: {n_bytes} bytes in {elapsed:.0f} s\n")
