"""Downloads that resume where they were cut off, and end in a file that is whole and checked, or in none.

What has come is kept beside the file, with the server's mark of its version (a strong ETag or a date). The next attempt
asks for the rest of that version; a server that has another version, or does not know ranges, sends everything again.
A process holds a lock on the file that it fetches.
"""

from __future__ import annotations

import errno
import http.client
import json
import logging
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from jahs.errors import DownloadFailed, InvalidArgument, JahsError, OutOfSpace
from jahs.files.atomic import fsync_folder, write_beside
from jahs.files.hashing import sha256_file
from jahs.files.strict_json import parse_json

__all__ = ["ELSEWHERE", "DownloadBar", "Fetched", "fetch"]

ELSEWHERE: Final = "try again, or name another server with --url"
PATIENCE_S = 60.0
"""How long to wait for a byte, and between two looks at the rate."""

_OTHER_FOLDER: Final = "name another folder with --dir"
_FROM: Final = "# from "  # before the address in a .sha256 file: a comment to `sha256sum --check`
_CHUNK: Final = 1 << 18
_SLOWEST: Final = 1 << 10  # bytes per second
_SPARE: Final = 16 << 20  # bytes of disk that are left free
_WRITE_FAULTS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A whole file; `is_new` if it was fetched just now."""

    path: Path
    n_bytes: int
    sha256: str
    is_new: bool


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
) -> Fetched:
    """Fetch one large file unless it exists; its sha256 and address are recorded beside it and compared later.

    Args:
        address: http or https.
        path: the file; its folder is made if needed.
        sha256, n_bytes: what it must have, if known.
        check: is given the whole file before it gets its name; raises if the contents are wrong.
        report: is called with the number of bytes so far and in all.
        n_attempts: how often to connect.
        pause_s: pause before the second attempt; doubled before each further one.

    Raises:
        InvalidArgument: another kind of address, or the file came from another address.
        OutOfSpace: too little disk; raised before anything is fetched.
        DownloadFailed: it could not be fetched whole or written, has another sha256, or another process is fetching it.
            What has come is kept if the server names the version.
    """
    if not address.startswith(("http://", "https://")):
        raise InvalidArgument(f"url={address!r} must begin with http:// or https://")
    part = _Part(path)
    try:
        if (there := _there(path, address, sha256)) is not None:
            return there
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.locked():
            n_all = _complete(address, part, report, wanted=n_bytes, n_attempts=n_attempts, pause_s=pause_s)
            found = _checked(address, part, n_all, sha256=sha256, check=check)
            part.finish(found, address)
    except JahsError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as err:
        raise explained(err, address, n_kept=part.n_kept(address)) from err
    return Fetched(path=path, n_bytes=n_all, sha256=found, is_new=True)


def explained(err: Exception, address: str, *, n_kept: int = 0) -> JahsError:
    """Return the error to raise for an error of the network or of the disk."""
    advice = f"{n_kept} bytes are kept; the same command resumes from there" if n_kept else ELSEWHERE
    match err:
        case urllib.error.HTTPError():
            err.close()
            return DownloadFailed(f"{address}: the server says {err.code} {_printable(err.reason)}; {advice}")
        case OSError(errno=errno.ENOSPC):
            return OutOfSpace(f"{address}: the disk is full; {_OTHER_FOLDER}")
        case OSError() if _is_of_disk(err):
            return DownloadFailed(f"{address}: the folder cannot be used: {err}; {_OTHER_FOLDER}")
        case urllib.error.URLError():
            return DownloadFailed(f"{address}: {_printable(err.reason)}; {advice}")
    return DownloadFailed(f"{address}: {_printable(err)}; {advice}")


def _printable(said: object) -> str:
    """Return what a server said with its control characters escaped, for a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(said)[:200])


def _is_of_disk(err: Exception) -> bool:
    """Whether an error comes from the disk: it names a file, or has one of a write's numbers."""
    return isinstance(err, OSError) and (err.filename is not None or err.errno in _WRITE_FAULTS)


class _Part:
    """What has come of a file so far, and of which version it is."""

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
        """Lock this part until the block or the process ends; DownloadFailed if another process has the lock."""
        try:
            import fcntl
        except ImportError:  # Windows; there the length and sha256 are compared alone
            yield
            return
        with self.path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as err:
                raise DownloadFailed(
                    f"{self.path}: another process is downloading into this file; wait for it, or {_OTHER_FOLDER}"
                ) from err
            except OSError as err:  # some file systems of clusters have no locks
                _log.warning("%s cannot be locked (%s): do not download it twice at a time", file.name, err)
            try:
                yield
            finally:
                if not self.n_bytes:
                    self.delete()

    def facts(self) -> Mapping[str, Any]:  # Any: JSON
        """Return address, mark and length of the version that has begun to come; nothing without a mark."""
        try:
            found = parse_json(self._facts_path.read_bytes())
            return found if isinstance(found["mark"], str) and self.n_bytes <= found["n_bytes"] else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def n_kept(self, address: str) -> int:
        """Return how many bytes a download from this address resumes from."""
        return self.n_bytes if self.facts().get("address") == address else 0

    def begin(self, facts: Mapping[str, Any]) -> None:  # Any: JSON
        self.path.write_bytes(b"")
        with write_beside(self._facts_path) as beside:
            beside.write_text(json.dumps(facts, sort_keys=True) + "\n")

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)
        self._facts_path.unlink(missing_ok=True)

    def finish(self, sha256: str, address: str) -> None:
        """Give the file its name; write its sha256 beside it as `sha256sum` does, with the address as a comment."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        with write_beside(_recorded(self.target)) as beside:
            beside.write_text(f"{sha256}  {self.target.name}\n{_FROM}{address}\n", encoding="utf-8")
        self.path.replace(self.target)
        fsync_folder(self.target.parent)
        self._facts_path.unlink(missing_ok=True)


def _recorded(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _there(path: Path, address: str, sha256: str | None) -> Fetched | None:
    """Return the file if it exists unchanged; where its sha256 is known, it may have come from anywhere."""
    if not path.is_file():
        return None
    if sha256 is None:
        try:
            first, *more = _recorded(path).read_text(encoding="utf-8").splitlines()
            sha256 = first.split()[0]
        except (OSError, ValueError, IndexError):
            return None
        came_from = next((line.removeprefix(_FROM) for line in more if line.startswith(_FROM)), address)
        if came_from != address:
            raise InvalidArgument(f"{path} came from {came_from}; {_OTHER_FOLDER} for {address}, or delete the file")
    found = sha256_file(path)
    return Fetched(path=path, n_bytes=path.stat().st_size, sha256=found, is_new=False) if found == sha256 else None


def _complete(
    address: str,
    part: _Part,
    report: Callable[[int, int], None],
    *,
    wanted: int | None,
    n_attempts: int,
    pause_s: float,
) -> int:
    """Fetch until everything has come; return the length. OSError or HTTPException of the last attempt."""
    for attempt in range(n_attempts - 1):
        try:
            return _attempt(address, part, report, wanted=wanted)
        except (OSError, http.client.HTTPException) as err:  # noqa: PERF203  # a second of waiting is between two of them
            if isinstance(err, (urllib.error.HTTPError, JahsError)) or _is_of_disk(err):
                raise
            time.sleep(pause_s * 2**attempt)
    return _attempt(address, part, report, wanted=wanted)


def _attempt(address: str, part: _Part, report: Callable[[int, int], None], *, wanted: int | None) -> int:
    """Fetch the rest, or everything; return the length. ConnectionError if less comes than was announced."""
    facts, n_bytes = part.facts(), part.n_kept(address)
    if n_bytes and n_bytes == facts["n_bytes"]:
        report(n_bytes, n_bytes)
        return n_bytes
    headers = {"Accept-Encoding": "identity", "User-Agent": "jahs"}
    if n_bytes:
        headers |= {"Range": f"bytes={n_bytes}-", "If-Range": facts["mark"]}
    request = urllib.request.Request(address, headers=headers)  # noqa: S310  # the scheme was checked
    with urllib.request.build_opener(_SafeRedirects).open(request, timeout=PATIENCE_S) as response:
        n_bytes, n_all = _plan(response, n_bytes, facts, address)
        if wanted is not None and n_all != wanted:
            raise DownloadFailed(f"{address}: the server announces {n_all} bytes, {wanted} were published; {ELSEWHERE}")
        folder, n_needed = part.path.parent, n_all - n_bytes + _SPARE
        if n_needed > (n_free := shutil.disk_usage(folder).free):
            raise OutOfSpace(f"{folder} has {n_free} bytes free, {n_needed} are needed; {_OTHER_FOLDER}")
        if not n_bytes:
            mark = response.headers.get("ETag") or response.headers.get("Last-Modified")
            is_weak = mark is None or mark.startswith("W/")
            part.begin({"address": address, "mark": None if is_weak else mark, "n_bytes": n_all})
        with part.path.open("ab") as file:
            since, n_then = time.monotonic(), n_bytes
            while n_bytes < n_all and (chunk := response.read1(min(_CHUNK, n_all - n_bytes))):
                file.write(chunk)
                n_bytes += len(chunk)
                if (elapsed := time.monotonic() - since) >= PATIENCE_S:
                    if n_bytes - n_then < _SLOWEST * elapsed and n_bytes < n_all:
                        raise ConnectionError(f"{n_bytes - n_then} bytes came in {elapsed:.0f} s; that is too slow")
                    since, n_then = time.monotonic(), n_bytes
                report(n_bytes, n_all)
    if n_bytes < n_all:
        raise ConnectionError(f"{n_bytes} bytes came, {n_all} were announced")
    return n_all


def _plan(response: Any, n_kept: int, facts: Mapping[str, Any], address: str) -> tuple[int, int]:  # Any: urllib's
    """Return how many bytes are kept and the length of the file, as the server answers."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise DownloadFailed(f"{address}: the server encodes its answer, although asked not to; {ELSEWHERE}")
    if n_kept and response.status == http.HTTPStatus.PARTIAL_CONTENT:
        n_all, found = facts["n_bytes"], response.headers.get("Content-Range", "no range")
        if found != f"bytes {n_kept}-{n_all - 1}/{n_all}":
            raise DownloadFailed(
                f"{address}: asked for bytes {n_kept} to {n_all}, the server sends {_printable(found)}; "
                "delete the .part file and try again"
            )
        return n_kept, n_all
    lengths = response.headers.get_all("Content-Length", [""])
    if response.status != http.HTTPStatus.OK:
        raise DownloadFailed(f"{address}: the server answers {response.status} where 200 was expected; {ELSEWHERE}")
    if len({*lengths}) > 1 or not (lengths[0].isdecimal() and len(lengths[0]) < 16):
        raise DownloadFailed(f"{address}: the server does not say how long the file is; {ELSEWHERE}")
    return 0, int(lengths[0])


def _checked(address: str, part: _Part, n_bytes: int, *, sha256: str | None, check: Callable[[Path], None]) -> str:
    """Return the sha256 of what has come; delete it and raise a JahsError if it is wrong."""
    try:
        if part.n_bytes != n_bytes:
            raise DownloadFailed(f"{part.path} has {part.n_bytes} bytes, {address} has {n_bytes}; try again")
        found = sha256_file(part.path)
        if sha256 is not None and found != sha256:
            raise DownloadFailed(f"{address}: sha256 is {found}, not {sha256} as published; {ELSEWHERE}")
        check(part.path)
    except JahsError:
        part.delete()
        raise
    return found


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https alone, and from https to https alone."""

    def redirect_request(
        self, req: urllib.request.Request, *args: Any
    ) -> urllib.request.Request | None:  # Any: urllib's
        sent = super().redirect_request(req, *args)
        allowed = ("https://",) if req.full_url.startswith("https://") else ("http://", "https://")
        if sent is not None and not sent.full_url.startswith(allowed):
            raise DownloadFailed(f"{req.full_url}: the server redirects to {sent.full_url[:200]!r}; {ELSEWHERE}")
        return sent


class DownloadBar:
    """Draws the share and the time left on a terminal; writes a line per whole file elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._name = ""
        self._started = 0.0
        self._first = 0

    def __call__(self, name: str, n_bytes: int, n_all: int) -> None:
        """Report that `n_bytes` of the `n_all` bytes of a file have come."""
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
