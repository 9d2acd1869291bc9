"""From `metric_data.tar` to folders of runs, one for each task, with a report of all oddities.

OUT/runs/<task>/              a folder of runs, as `jahs.files.runs` lays it out, with its index
OUT/runs/<task>/report.json   numbers of rows, runs and configs read and written, and the count of each oddity
OUT/runs/<task>/oddities.parquet   every oddity, one row each (`jahs.published.oddities`)
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from jahs.errors import CorruptFile, InvalidArgument, InvalidConfig, InvalidTable
from jahs.files.atomic import change_folder, make_folder
from jahs.files.hashing import digest_facts, sha256_file
from jahs.files.index import INDEX, read_index, write_index
from jahs.files.runs import committed_faults, committed_files
from jahs.files.strict_json import parse_json
from jahs.files.tables import require_pyarrow, write_table
from jahs.published.frames import Frame, read_frame
from jahs.published.oddities import ODDITY_COLUMNS
from jahs.published.recorded import Recorder, published_protocol
from jahs.published.sources import PublishedFile, files_by_task
from jahs.schema import CONFIG_COLUMNS, PROFILE_COLUMNS, RUN_COLUMNS, RUNS_FORMAT
from jahs.tasks.definitions import task

_log = logging.getLogger(__name__)

REPORT: Final = "report.json"
_ODDITIES: Final = "oddities.parquet"
RAW: Final = "raw.pkl.gz"
_SIDES: Final = ("train_set", "valid_set", "test_set")


def import_table(
    path: Path, out: Path, *, tasks: Sequence[str] | None = None, report: Callable[[str], None] = _log.info
) -> dict[str, Path]:
    """Turn published tables into folders of runs, one for each task; no code is executed, and nothing is repaired.

    Args:
        path: `metric_data.tar`, the folder it was unpacked to, or the folder of one task.
        out: a folder, made if needed; the runs of each task go to `out/runs/<task>`.
        tasks: names; None for all. A single one is the task of files whose path names no task.
        report: called with a line about the progress.

    UnsafeFile names a file that holds more than data; CorruptFile, UnknownFormat and InvalidTable, a file that
    JAHS-Bench-201 did not publish. InvalidArgument if a folder holds other runs. A damaged import is made again, but
    InvalidArgument if its folder has other files, too.
    """
    require_pyarrow()
    with files_by_task(path, (RAW, *(f"{side}.pkl.gz" for side in _SIDES)), tasks) as by_task:
        files = {name: _by_side(found) for name, found in by_task.items()}
        return {name: _import_task(name, of_task, out / "runs" / name, report) for name, of_task in files.items()}


def _by_side(found: Sequence[PublishedFile]) -> dict[str, PublishedFile]:
    files: dict[str, PublishedFile] = {}
    for file in found:
        if (other := files.setdefault(file.name.removesuffix(".pkl.gz"), file)) is not file:
            raise InvalidArgument(
                f"{other.where} and {file.where}: two copies of one file; give a folder with one copy"
            )
    return files


def _import_task(name: str, files: dict[str, PublishedFile], folder: Path, report: Callable[[str], None]) -> Path:
    sources = {side: file.sha256() for side, file in sorted(files.items())}
    if folder.exists():
        if _sources_of(folder) != sources:
            raise InvalidArgument(f"{folder} is there already, from other files; choose another folder, or delete it")
        if not (faults := _faults_of(folder)):
            report(f"{name}: {folder} is there already, from the same files")
            return folder
        report(f"{name}: {folder} is damaged and is imported again: {', '.join(faults)}")
    make_folder(folder.parent)
    with change_folder(folder) as beside, _blaming(files["raw"]):
        _write(name, files, sources, beside, report)
    report(f"{name}: {folder}")
    return folder


@contextmanager
def _blaming(raw: PublishedFile) -> Iterator[None]:
    """Turn errors about a table's columns and configs into InvalidTable that names its file."""
    try:
        yield
    except (InvalidArgument, InvalidConfig, InvalidTable) as err:
        raise InvalidTable("\n".join(f"{raw.where}: {line}" for line in str(err).splitlines())) from err


def _sources_of(folder: Path) -> object:
    try:
        return parse_json((folder / REPORT).read_bytes())["sources"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _faults_of(folder: Path) -> list[str]:
    """Return the faults of an import; InvalidArgument if replacing it would delete files that it did not write."""
    try:
        faults, names = committed_faults(folder), read_index(folder) or committed_files(folder)
    except CorruptFile as err:
        faults, names = [str(err)], committed_files(folder)
    others = sorted({path.name for path in folder.iterdir()} - {INDEX, REPORT, _ODDITIES, *names})
    if faults and others:
        raise InvalidArgument(
            f"{folder} is damaged: {', '.join(faults)}\nit is not replaced, since it also holds "
            f"{', '.join(others[:10])}; move what you want to keep to another folder, delete it, and import again"
        )
    return faults


def _write(
    name: str, files: dict[str, PublishedFile], sources: dict[str, str], folder: Path, report: Callable[[str], None]
) -> None:
    facts = published_protocol(task(name))
    content = {"format": RUNS_FORMAT, "digest": digest_facts(facts), "protocol": facts}
    _write_json(folder / "protocol.json", content)
    recorder = Recorder(_read(files["raw"], folder), task(name))
    shards = recorder.runs(lambda at, n: report(f"{name}: {at} of {n} rows"))
    for number, shard in enumerate(shards, 1):
        write_table(folder / f"runs-{number:04d}.parquet", shard, RUN_COLUMNS)
    write_table(folder / "configs.parquet", recorder.configs, CONFIG_COLUMNS)
    write_table(folder / "profile.parquet", recorder.profile, PROFILE_COLUMNS)
    split = recorder.compare_split({side: _read(files[side], folder) for side in _SIDES if side in files})
    write_table(folder / _ODDITIES, recorder.oddities.table(), ODDITY_COLUMNS)
    report_facts: dict[str, Any] = {  # Any: JSON
        "counts": recorder.counts(),
        "findings": recorder.oddities.summary(),
        "published_split": split,
        "sources": sources,
        "task": name,
    }
    _write_json(folder / REPORT, report_facts)
    write_index(folder, {file: (sha256_file(folder / file),) for file in committed_files(folder)})


def _read(file: PublishedFile, scratch: Path) -> Frame:
    with file.open() as opened:
        return read_frame(opened, file.where, scratch=scratch)


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
