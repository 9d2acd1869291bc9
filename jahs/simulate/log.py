"""Trial logs: append-only JSON lines, readable and resumable even if the process is killed.

The first line is the header: facts of the run. Every other line is a trial, in the order in which trials ended. The
last line of a complete log says how it ended (`{"ended": "budget", "clock": 3600.0, "n_trials": 17}`). A log without it
was cut short. Each line is written at once, so a crash can cut off only the last one, which is then skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from jahs.errors import (
    CorruptFile,
    InvalidArgument,
    JahsError,
    MissingData,
    OutOfSpace,
    ProtocolMismatch,
    UnknownFormat,
)
from jahs.files.atomic import DISK_FULL, full_disk, hold
from jahs.files.hashing import sha256_file
from jahs.files.strict_json import parse_json
from jahs.queries.views import View
from jahs.release.find import full_path
from jahs.release.manifest import MANIFEST, read_manifest
from jahs.schema import TRIALS_FORMAT
from jahs.simulate.trial import Trial
from jahs.spaces.parameters import show

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The content of a log.

    Attributes:
        header: facts of the run.
        trials: trials in the order in which they ended.
        ending: why, when and after how many trials the simulation ended; None where the log was cut short.
    """

    header: Mapping[str, object]
    trials: list[Trial]
    ending: Mapping[str, object] | None


def read_log(path: Path | str) -> Log:
    """Return the content of a log; a last line that was cut short is left out.

    Raises:
        InvalidArgument: it is not a path.
        MissingData: the file does not exist, or cannot be read.
        CorruptFile: a line is invalid; says which, and why.
        UnknownFormat: the log was written by another version.
    """
    path = full_path(path)
    lines = _whole_lines(path)
    header = _read_header(path, next(lines, b""))
    trials: list[Trial] = []
    ending = None
    for number, line in enumerate(lines, start=2):
        if ending is not None:
            raise CorruptFile(f"{path}, line {number}: a line follows the one that ends the log")
        content = _parse(path, number, line)
        if isinstance(content, dict) and "ended" in content:
            ending = content
            continue
        try:
            trials.append(Trial.from_dict(content))
        except ValueError as err:
            raise CorruptFile(f"{path}, line {number} is not a trial: {err}") from err
    return Log(header=header, trials=trials, ending=ending)


def read_header(path: Path | str) -> Mapping[str, object]:
    """Return the header of a log without reading the trials; raises as `read_log`."""
    path = full_path(path)
    with closing(_whole_lines(path)) as lines:
        return _read_header(path, next(lines, b""))


def read_trials(path: Path | str) -> list[Trial]:
    """Return the trials of a log in the order in which they ended; raises as `read_log`."""
    return read_log(path).trials


class LogWriter:
    """Writes one log. If the file already has lines, the first lines written must be identical to them.

    So an interrupted simulation is resumed by running it again: it is deterministic, existing lines are checked
    instead of written, and the log continues after them.

    Raises:
        ProtocolMismatch: the file is the log of another run.
        CorruptFile: the file is not a log; it is left unchanged.
        MissingData, InvalidArgument: it cannot be read or written, or another process or simulation is writing it.
        OutOfSpace: the disk is full.
    """

    def __init__(self, path: Path, header: Mapping[str, object]) -> None:
        self.path = path
        self._file = open_alone(path)
        try:
            self._begin(_encode({"format": TRIALS_FORMAT, **header}))
        except BaseException:
            self._file.close()
            raise

    def _begin(self, header: bytes) -> None:
        """Check the file's header, or write it if it is missing."""
        path = self.path
        self._old = _whole_lines(path)
        first = next(self._old, None)
        existing = path.read_bytes() if first is None else first  # without a complete line, the file is short
        is_resuming = first == header or (first is not None and _read_header(path, first) == json.loads(header))
        if not is_resuming and (first is not None or not header.startswith(existing)):
            raise ProtocolMismatch(_difference(path, _read_header(path, existing), json.loads(header)))
        self._n_checked = len(existing) if is_resuming else 0  # bytes of the existing lines that this run wrote, too
        self._n_lines = 1
        self._is_appending = False
        if not is_resuming:
            self._append(header)

    def write(self, trial: Trial) -> None:
        """Append a trial; ProtocolMismatch if the log has another line at this position. An error closes the log."""
        self._write(trial.to_dict())

    def end(self, ending: Mapping[str, object]) -> None:
        """Append the line that says how the simulation ended, and make the log durable; raises as `write`.

        CorruptFile if whole lines follow it in the file; an incomplete last line is removed.
        """
        self._write(ending)
        if next(self._old, None) is not None:
            self.close()
            raise CorruptFile(f"{self.path}, line {self._n_lines + 1}: a line follows the one that ends the log")
        try:
            self._cut()
            os.fsync(self._file.fileno())
        except OSError as err:
            self.close()
            raise _fault(self.path, err) from err
        self.close()

    def close(self) -> None:
        """Close the file; the log can be resumed."""
        self._old.close()
        self._file.close()

    def _write(self, line: Mapping[str, object]) -> None:
        data = _encode(line)
        self._n_lines += 1
        old = next(self._old, None)
        if old is None:
            self._append(data)
            return
        if old != data:
            self.close()
            raise ProtocolMismatch(
                f"{self.path} cannot be resumed: a run is resumed with the optimiser, seeds and release of its first "
                f"part, or begun again with a new log; line {self._n_lines} is\n{old.decode().strip()}\nand this run "
                f"found\n{data.decode().strip()}"
            )
        self._n_checked += len(old)

    def _append(self, data: bytes) -> None:
        """Write a whole line after the checked ones. An interrupted log can be resumed."""
        try:
            self._cut()
        except OSError as err:
            self.close()
            raise _fault(self.path, err) from err
        append_line(self._file, self.path, data)

    def _cut(self) -> None:
        """Truncate the file after the checked lines, once: an incomplete last line is removed."""
        if not self._is_appending:
            self._file.truncate(self._n_checked)
            self._is_appending = True


def describe_view(view: View) -> dict[str, object]:
    """Describe the view, for the header of a log."""
    release, digest, version = getattr(view.bench, "release", None), None, None
    if release is not None and (manifest := Path(release) / MANIFEST).is_file():
        digest, version = sha256_file(manifest), read_manifest(Path(release)).facts.get("version")
    known = {"release_version": version, **{name: getattr(view.bench, name, None) for name in ("refit", "model")}}
    return {
        "task": getattr(getattr(view.bench, "task", None), "name", None),
        "release": digest,
        **{name: value for name, value in known.items() if value is not None},
        "view": {"searched": view.space.searched, "fixed": view.space.fixed, "fidelities": view.full},
    }


def json_fault(name: str, given: object) -> str | None:
    """Return why a log's header cannot hold `given`, a mapping of JSON, or could not be read again; None if it can."""
    try:
        if not isinstance(given, Mapping):
            raise TypeError(f"it is of type {type(given).__name__}")
        if wrong := [key for key in given if not isinstance(key, str)]:
            raise TypeError(f"the key {show(wrong[0])} is of type {type(wrong[0]).__name__}")
        parse_json(_ENCODER.encode(dict(given)))
    except RecursionError:
        fault = "it nests too deep"
    except json.JSONDecodeError as err:
        fault = err.msg
    except (TypeError, ValueError) as err:
        fault = str(err)
    else:
        return None
    return f"{name}={show(given)} is not a mapping of JSON: {fault}; give a dict with str keys and values of JSON"


def open_alone(path: Path) -> FileIO:
    """Open a file for appending and lock it against other writers until it is closed, however the process ends.

    A suspended process keeps the lock, so it cannot wake up and write to a log that another process has continued.
    """
    try:
        file = path.open("ab", buffering=0)
    except OSError as err:
        raise _fault(path, err) from err
    try:
        hold(file)
    except BlockingIOError as err:
        file.close()
        raise InvalidArgument(
            f"{path} is open in another simulation, perhaps of a stopped process; end that one, or give a new path"
        ) from err
    return file


def append_line(file: FileIO, path: Path, data: bytes) -> None:
    """Append a whole line, or close the file: whoever opens it again removes an incomplete last line."""
    try:
        n_written = file.write(data)
    except OSError as err:
        file.close()
        raise _fault(path, err) from err
    if n_written != len(data):  # a nearly full disk takes as much as fits
        file.close()
        raise OutOfSpace(full_disk(path))


def _fault(path: Path, err: OSError) -> JahsError:
    if err.errno in DISK_FULL:
        return OutOfSpace(full_disk(path))
    return InvalidArgument(f"{path} cannot be written: {err.strerror or err}; name a file in a folder that can")


def _encode(line: Mapping[str, object]) -> bytes:
    return (_ENCODER.encode(line) + "\n").encode()


def _whole_lines(path: Path) -> Generator[bytes, None, None]:
    """Yield the lines that end with a line feed."""
    try:
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line
    except OSError as err:
        raise MissingData(f"the log {path} cannot be read: {err.strerror}") from err


def _parse(path: Path, number: int, line: bytes) -> object:
    try:
        return parse_json(line)
    except json.JSONDecodeError as err:
        raise CorruptFile(f"{path}, line {number} is not JSON: {err.msg} at column {err.colno}") from err


def _read_header(path: Path, line: bytes) -> dict[str, object]:
    if not line:
        raise CorruptFile(f"{path}: the first line is incomplete; a trial log begins with its header")
    header = _parse(path, 1, line)
    if not isinstance(header, dict) or "format" not in header:
        raise CorruptFile(f"{path}, line 1 is not the header of a trial log")
    if header["format"] != TRIALS_FORMAT:
        raise UnknownFormat(f"{path}: a trial log of format {header['format']!r}; this code reads {TRIALS_FORMAT}")
    return header


def _difference(path: Path, old: Mapping[str, object], new: Mapping[str, object]) -> str:
    lines = [
        f"{key}: the log says {old.get(key)!r}, this run {new.get(key)!r}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    return f"{path} is the log of another run; give a new path, or the same settings:\n" + "\n".join(lines)
