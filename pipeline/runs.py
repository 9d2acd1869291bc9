"""Write a folder of runs (see `jahs.files.runs` for its layout): claim, record, recover and compact runs.

Over 300 lines: crash safety depends on the order of every write, so all writes are in one file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Final, TypeAlias

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument, InvalidTable, OutOfSpace, ProtocolMismatch
from jahs.files.atomic import hold, is_running, out_of_space, write_beside
from jahs.files.index import read_index, state_of, write_index
from jahs.files.runs import (
    committed_files,
    each_run_once,
    read_committed,
    read_configs,
    read_protocol,
    read_shards,
    run_shards,
)
from jahs.files.tables import Table, concatenate, empty_table, parquet_files, read_table, table_bytes, take, write_table
from jahs.schema import CONFIG_TABLE_COLUMNS, RUN_COLUMNS, RUNS_FORMAT
from jahs.spaces.columns import rows
from jahs.spaces.configs import Config
from pipeline.sampling import sample_config

_log = logging.getLogger(__name__)
_SMALLEST_FREE: Final = 64 << 20
_LOCKS: Final = ("configs", "profile", "proxies", "compact")  # a writer of the folder holds one of them
_KEYS: Final = {name: RUN_COLUMNS[name] for name in ("config_id", "seed")}


Named: TypeAlias = int | str
"""A config in the names of shards: its number in the stream, or its config_id as 16 hex digits."""


class RunsFolder:
    """An existing folder of runs, open for writing.

    Raises:
        MissingData, CorruptFile, UnknownFormat: it is not a folder of runs, or not readable.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.new = path / "new"
        self.protocol = read_protocol(path).digest

    @classmethod
    def open_or_make(cls, path: Path, *, facts: Mapping[str, object], digest: str) -> RunsFolder:
        """Open the folder for a protocol; make it if it does not exist.

        Raises:
            ProtocolMismatch: the folder holds another protocol.
            InvalidArgument: it cannot be made.
            OutOfSpace: too little disk to make one.
        """
        protocol_file = path / "protocol.json"
        if not protocol_file.exists():
            check_free_space(path)
            try:
                path.mkdir(parents=True, exist_ok=True)
            except OSError as err:
                raise InvalidArgument(f"{path} cannot be made: {err.strerror or err}; choose another folder") from err
            content = {"format": RUNS_FORMAT, "digest": digest, "protocol": facts}
            text = json.dumps(content, indent=2, sort_keys=True) + "\n"
            listed = (read_index(path) or {}).get(protocol_file.name)
            if listed and hashlib.sha256(text.encode()).hexdigest() not in listed:
                raise ProtocolMismatch(
                    f"{path} holds runs of another protocol than {digest}, but no {protocol_file.name}; restore this "
                    "file from a copy, or collect into another folder"
                )
            with write_beside(protocol_file) as beside:
                beside.write_text(text)
        folder = cls(path)
        if digest != folder.protocol:
            raise ProtocolMismatch(
                f"{path} holds runs of protocol {folder.protocol}, not of {digest}; collect into another folder"
            )
        folder.new.mkdir(exist_ok=True)
        folder.settle_index()
        return folder

    def shard(self, config: Named, seed: int) -> Path:
        """Return the path of the shard of one run."""
        return self.new / f"{run_name(config, seed)}.parquet"

    def config(self, named: Named) -> Config:
        """Return a config: by its number from the stream, or by its id from the config table.

        Raises:
            InvalidTable: the table does not have it.
        """
        if isinstance(named, int):
            return sample_config(named)
        configs = read_configs(self.path)
        if not (is_named := configs["config_id"] == np.uint64(int(named, 16))).any():
            raise InvalidTable(f"{self.path}: config {named} is not in configs.parquet")
        return rows(take(configs, is_named))[0]

    def names(self, identities: Sequence[int]) -> list[Named]:
        """Return the names of configs in shards: the number in the stream, or the id if there is no number."""
        configs = read_configs(self.path)
        numbers = dict(zip(configs["config_id"].tolist(), configs["config_index"].tolist(), strict=True))
        return [n if (n := numbers[identity]) >= 0 else f"{identity:016x}" for identity in identities]

    def write_run(self, config: Named, seed: int, run: Table, *, by: str = "") -> bool:
        """Record one finished run; return False, and change nothing, if it was recorded meanwhile.

        Args:
            by: name of the process that records it, for `is_recorded_by`.
        """
        with self.lock("compact"):
            if self._is_recorded(config, seed, int(run["config_id"][0])):
                return False
            shard = self.shard(config, seed)
            with out_of_space(shard), self._lock_file(run_name(config, seed)) as file:
                file.truncate(0)
                file.write(by.encode())  # written first, so that the process named here recorded the run
            write_table(shard, run, RUN_COLUMNS)
        return True

    def is_recorded_by(self, by: str, config: Named, seed: int) -> bool:
        """Return whether a recorded run was recorded by this process."""
        with self._lock_file(run_name(config, seed)) as file:
            file.seek(0)
            return file.read() == by.encode()

    def is_recorded(self, config: Named, seed: int, identity: int) -> bool:
        """Return whether a run is recorded, on its own or compacted."""
        with self.lock("compact"):
            return self._is_recorded(config, seed, identity)

    def _is_recorded(self, config: Named, seed: int, identity: int) -> bool:
        names = {config, f"{identity:016x}"}  # a listed config may have got a number meanwhile
        if isinstance(config, str):
            names |= {*self.names([identity])}
        if any(self.shard(name, seed).exists() for name in names):
            return True
        compacted = [read_committed(path, _KEYS) for path in self.path.glob("runs-*.parquet")]
        return any(bool(((t["config_id"] == np.uint64(identity)) & (t["seed"] == seed)).any()) for t in compacted)

    def recorded(self) -> set[tuple[int, int]]:
        """Return the (config_id, seed) of every recorded run."""
        return {
            pair
            for table in read_shards(self.path, _KEYS)
            for pair in zip(table["config_id"].tolist(), table["seed"].tolist(), strict=True)
        }

    def add_configs(self, configs: Table) -> None:
        """Add the configs that the config table lacks; a listed config that is in the stream gets its number.

        The source and round of known configs do not change.
        """
        path = self.path / "configs.parquet"
        with self.lock("configs"):
            known = read_configs(self.path) if path.exists() else empty_table(CONFIG_TABLE_COLUMNS)
            _, old, new = np.intersect1d(known["config_id"], configs["config_id"], return_indices=True)
            numbers = known["config_index"].copy()
            numbers[old] = np.maximum(numbers[old], configs["config_index"][new])
            added = np.setdiff1d(np.arange(len(configs["config_id"])), new)
            if len(added) or (numbers != known["config_index"]).any():
                parts = [{**known, "config_index": numbers}, take(configs, added)]
                table = concatenate(parts, CONFIG_TABLE_COLUMNS)
                order = np.lexsort((table["config_id"], table["config_index"].astype(np.uint64)))  # -1 comes last
                self.commit(path.name, take(table, order), CONFIG_TABLE_COLUMNS)

    def commit(self, name: str, table: Table, columns: Mapping[str, str], *, replaces: Sequence[Path] = ()) -> None:
        """Write a table of the folder, with its sha256 in the index; it replaces its old version and `replaces`.

        After a crash at any moment, the folder can be read, with its old or its new content.
        """
        path = self.path / name
        content = table_bytes(table, columns, where=str(path))
        digest = hashlib.sha256(content).hexdigest()
        with self.lock("index"):
            files = self._settled()
            leaving = {old.relative_to(self.path).as_posix(): old for old in replaces}
            unchanged = {file: states for file, states in files.items() if file not in {name, *leaving}}
            may_leave = {old: (*files[old], None) for old in leaving if old in files}
            write_index(self.path, {**unchanged, **may_leave, name: (*files.get(name, (None,)), digest)})
            with out_of_space(path), write_beside(path) as beside:
                beside.write_bytes(content)
            for old in leaving.values():
                old.unlink()
            write_index(self.path, {**unchanged, name: (digest,)})

    def settle_index(self) -> None:
        """Make the index of a folder without one, and complete changes that a crash interrupted."""
        with self.lock("index"):
            files = self._settled()
            if files != read_index(self.path):
                write_index(self.path, files)

    def _settled(self) -> dict[str, tuple[str | None, ...]]:
        """Return the index, where a file in one of its allowed states has only this state."""
        listed = read_index(self.path)
        if listed is None:
            singles = [f"new/{path.name}" for path in parquet_files(self.new)]
            listed = dict.fromkeys([*committed_files(self.path), *singles], ())
        files = {}
        for name, states in listed.items():
            state = state_of(self.path / name) if len(states) != 1 else states[0]
            files[name] = (state,) if not states or state in states else tuple(states)
        return {name: states for name, states in files.items() if states != (None,)}

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock of this folder; it is released when the process ends, however that happens."""
        with self._lock_file(name) as file:
            hold(file, waits=True)
            yield

    @contextmanager
    def claim(self, config: Named, seed: int) -> Iterator[bool]:
        """Claim one run; False if another process is at work on it."""
        with self._lock_file(run_name(config, seed)) as file:
            try:
                hold(file)
            except BlockingIOError:
                yield False
            else:
                yield True

    @contextmanager
    def _lock_file(self, name: str) -> Iterator[IO[bytes]]:
        folder = self.path / ".locks"
        folder.mkdir(exist_ok=True)
        with (folder / name).open("a+b") as file:
            yield file

    def recover(self) -> list[Path]:
        """Clean up after a crash; return the damaged shards, which are set aside, not deleted.

        It waits until no process writes, since the writers of a cluster run on other machines.
        """
        damaged = []
        with ExitStack() as locks:
            for name in _LOCKS:
                locks.enter_context(self.lock(name))
            for part in [*self.path.glob(".*.part"), *self.new.glob(".*.part")]:
                if not _writer_is_alive(part):
                    part.unlink(missing_ok=True)
            for shard in parquet_files(self.new):
                if (fault := _fault(shard)) is not None:
                    (folder := self.path / "damaged").mkdir(exist_ok=True)
                    names = (f"{shard.stem}{f'.{n}' * bool(n)}{shard.suffix}" for n in count())
                    aside = next(path for name in names if not (path := folder / name).exists())
                    self._set_aside(shard, aside)
                    damaged.append(aside)
                    _log.warning("set aside, will be trained again: %s", fault)
        return damaged

    def _set_aside(self, shard: Path, aside: Path) -> None:
        with self.lock("index"):
            files = self._settled()
            if states := files.pop(f"new/{shard.name}", None):
                write_index(self.path, {**files, f"new/{shard.name}": (*states, None)})
            shard.replace(aside)
            if states:
                write_index(self.path, files)

    def compact(self, extra: Sequence[Table] = ()) -> int:
        """Rewrite all recorded runs, and the runs of `extra` that are not recorded, as one shard.

        Args:
            extra: a table for each run; if several have the same config and seed, the first counts.

        Returns:
            The number of runs of `extra` that were left out.

        Raises:
            InvalidTable: one run has two different outcomes; nothing was changed.
        """
        with self.lock("compact"):
            sources = run_shards(self.path)
            tables = read_shards(self.path)
            recorded = each_run_once(tables)
            known = {*zip(recorded["config_id"].tolist(), recorded["seed"].tolist(), strict=True)}
            added: dict[tuple[int, int], Table] = {}
            for run in extra:
                key = (int(run["config_id"][0]), int(run["seed"][0]))
                if key not in known:
                    added.setdefault(key, run)
            runs = each_run_once([recorded, *added.values()])
            is_compact = [source.parent for source in sources] == [self.path]
            if is_compact and len(runs["epoch"]) == len(tables[0]["epoch"]):
                self.settle_index()
                return len(extra)
            last = max((int(path.stem.split("-")[1]) for path in self.path.glob("runs-*.parquet")), default=0)
            self.commit(f"runs-{last + 1:04d}.parquet", runs, RUN_COLUMNS, replaces=sources)
        return len(extra) - len(added)


def run_name(config: Named, seed: int) -> str:
    """Return the name of a single run's shard, without its ending."""
    return f"{config:07d}-{seed}" if isinstance(config, int) else f"{config}-{seed}"


def check_free_space(path: Path) -> None:
    """Refuse to start with too little free disk space.

    Raises:
        OutOfSpace: less than 64 MB are free.
    """
    folder = next(folder for folder in [path.absolute(), *path.absolute().parents] if folder.exists())
    free = shutil.disk_usage(folder).free
    if free < _SMALLEST_FREE:
        raise OutOfSpace(f"{folder}: {free >> 20} MB are free, at least {_SMALLEST_FREE >> 20} are needed")


def _fault(shard: Path) -> Exception | None:
    try:
        read_table(shard, RUN_COLUMNS)
    except (CorruptFile, InvalidTable) as err:
        return err
    return None


def _writer_is_alive(part: Path) -> bool:
    """Return whether the process that writes `.<name>.<pid>.part` still runs (on this machine)."""
    pid = part.name.rsplit(".", 2)[-2]
    return pid.isdigit() and is_running(int(pid))
