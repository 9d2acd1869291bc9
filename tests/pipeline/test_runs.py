"""A folder of runs: nothing lost, nothing doubled, whatever ended in the middle of writing."""

import contextlib
import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from jahs.errors import CorruptFile, InvalidTable, MissingData, OutOfSpace, ProtocolMismatch, UnknownFormat
from jahs.files import runs as module
from jahs.files.index import read_index
from jahs.files.runs import committed_faults, read_configs, read_profile, read_protocol, read_runs, run_shards
from jahs.schema import PROFILE_COLUMNS, RUN_COLUMNS, VISIT_COLUMNS
from pipeline.runs import RunsFolder, check_free_space
from pipeline.sampling import config_table
from tests.pipeline.run_folders import filled
from workshop.measured import read_visits

FACTS = {"task": {"name": "digits"}}


def run_rows(identity, seed=0, *, n_epochs=3, valid_acc=50.0, protocol="p1"):
    epochs = np.arange(1, n_epochs + 1)
    measured = {"epoch": epochs, "valid_acc": valid_acc, "runtime": epochs, "status": "finished"}
    return filled(RUN_COLUMNS, n_epochs, config_id=identity, seed=seed, protocol=protocol, **measured)


@pytest.fixture
def folder(tmp_path):
    return RunsFolder.open_or_make(tmp_path / "runs", facts=FACTS, digest="p1")


def test_what_was_written_is_read_with_its_types(folder):
    folder.write_run(0, 0, run_rows(7))
    runs = read_runs(folder.path)
    assert {name: values.dtype.kind for name, values in runs.items()} == {
        name: "U" if dtype == "string" else np.dtype(dtype).kind for name, dtype in RUN_COLUMNS.items()
    }
    assert runs["config_id"].tolist() == [7, 7, 7]
    assert folder.recorded() == {(7, 0)}


def test_compacting_changes_no_row_and_leaves_one_file(folder):
    for number, identity in enumerate([9, 3, 2**64 - 1]):
        folder.write_run(number, 0, run_rows(identity))
    before = read_runs(folder.path)
    folder.compact()
    folder.write_run(3, 1, run_rows(3, 1))
    folder.compact()
    assert [path.name for path in run_shards(folder.path)] == ["runs-0002.parquet"]
    after = read_runs(folder.path)
    kept = ~((after["config_id"] == 3) & (after["seed"] == 1))
    for name, values in before.items():
        assert np.array_equal(after[name][kept], values), name


def test_a_crash_in_the_middle_of_compacting_doubles_nothing(folder, monkeypatch):
    for number in range(3):
        folder.write_run(number, 0, run_rows(number))
    before = read_runs(folder.path)
    monkeypatch.setattr("pathlib.Path.unlink", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        folder.compact()
    monkeypatch.undo()
    assert len(run_shards(folder.path)) == 4
    assert np.array_equal(read_runs(folder.path)["config_id"], before["config_id"])
    folder.compact()
    assert len(run_shards(folder.path)) == 1
    assert np.array_equal(read_runs(folder.path)["config_id"], before["config_id"])


def test_one_run_with_two_outcomes_is_refused_and_nothing_changes(folder):
    folder.write_run(0, 0, run_rows(5))
    folder.write_run(1, 0, run_rows(5, valid_acc=51.0))
    for read in (lambda: read_runs(folder.path), folder.compact):
        with pytest.raises(InvalidTable, match="1 runs have two different outcomes, first config_id=5"):
            read()
    assert len(run_shards(folder.path)) == 2


def test_a_run_that_was_compacted_meanwhile_is_not_recorded_again(folder):
    """Two collectors and a merge: the second has listed what to train before the first recorded it."""
    assert folder.write_run(4, 0, run_rows(7))
    folder.compact()
    assert folder.is_recorded(4, 0, 7)
    assert not folder.is_recorded(4, 1, 7)
    assert not folder.write_run(4, 0, run_rows(7, valid_acc=51.0))
    assert set(read_runs(folder.path)["valid_acc"].tolist()) == {50.0}


def test_a_run_that_was_recorded_meanwhile_is_not_added_to_it(folder):
    folder.write_run(0, 0, run_rows(7))
    assert folder.compact([run_rows(7, valid_acc=51.0), run_rows(8), run_rows(8, valid_acc=51.0)]) == 2
    assert set(read_runs(folder.path)["valid_acc"].tolist()) == {50.0}
    assert folder.recorded() == {(7, 0), (8, 0)}


@pytest.mark.parametrize("moment", ["while files are listed", "before they are read"])
def test_who_reads_while_somebody_compacts_sees_every_run(folder, monkeypatch, moment):
    for number in range(5):
        folder.write_run(number, 0, run_rows(number))
        if number == 2:
            folder.compact()
    pending = [folder.compact]

    def first_compact(function):
        def call(path, *arguments, **named):
            if pending and (moment == "before they are read" or path == folder.path):
                pending.pop()()
            return function(path, *arguments, **named)

        return call

    if moment == "before they are read":
        monkeypatch.setattr(module, "read_table", first_compact(module.read_table))
    else:
        monkeypatch.setattr("os.scandir", first_compact(os.scandir))
    assert np.unique(read_runs(folder.path)["config_id"]).tolist() == [0, 1, 2, 3, 4]
    assert not pending


def test_an_error_of_the_system_is_no_damage(folder, monkeypatch):
    import pyarrow as pa

    folder.write_run(0, 0, run_rows(1))

    def too_many(_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(pa, "OSFile", too_many)
    with pytest.raises(MissingData, match="Too many open files; the file may be whole, so try again"):
        folder.recover()
    monkeypatch.undo()
    assert folder.recover() == []
    assert folder.recorded() == {(1, 0)}


def test_tables_of_another_protocol_are_refused(folder):
    for name, columns, read in (
        ("profile_visits.parquet", VISIT_COLUMNS, read_visits),
        ("profile.parquet", PROFILE_COLUMNS, read_profile),
    ):
        folder.commit(name, filled(columns, 1, protocol="p2"), columns)
        with pytest.raises(ProtocolMismatch, match=f"rows of p2: 1 of {name}"):
            read(folder.path)


def test_a_shard_cut_short_is_set_aside_not_deleted(folder):
    folder.write_run(0, 0, run_rows(1))
    folder.write_run(1, 0, run_rows(2))
    whole = folder.shard(0, 0).read_bytes()
    folder.shard(0, 0).write_bytes(whole[: len(whole) // 2])
    (aside,) = folder.recover()
    assert aside.read_bytes() == whole[: len(whole) // 2]
    assert folder.recorded() == {(2, 0)}


def test_what_a_dead_writer_left_beside_is_removed_and_a_living_one_is_left_alone(folder):
    import os
    import subprocess
    import sys

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    of_the_dead = folder.new / f".0000000-0.parquet.{dead.pid}.part"
    of_the_living = folder.new / f".0000001-0.parquet.{os.getpid()}.part"
    of_the_dead.touch()
    of_the_living.touch()
    folder.recover()
    assert not of_the_dead.exists()
    assert of_the_living.exists()


def test_putting_in_order_waits_for_writers(folder):
    with ThreadPoolExecutor(1) as pool:
        for name in ("configs", "profile", "proxies", "compact"):
            with folder.lock(name):
                recovering = pool.submit(folder.recover)
                with pytest.raises(TimeoutError):
                    recovering.result(timeout=0.2)
            assert recovering.result() == []


def test_a_folder_holds_one_protocol(folder):
    with pytest.raises(ProtocolMismatch, match="holds runs of protocol p1, not of p2; collect into another folder"):
        RunsFolder.open_or_make(folder.path, facts=FACTS, digest="p2")
    folder.write_run(0, 0, run_rows(1, protocol="p2"))
    with pytest.raises(ProtocolMismatch, match="has protocol p1 but rows of p2: 3 of its runs"):
        read_runs(folder.path)


def test_a_folder_that_lost_its_protocol_gets_it_back_and_no_other(folder):
    recorded = folder.path / "protocol.json"
    content = recorded.read_bytes()
    recorded.unlink()
    with pytest.raises(
        ProtocolMismatch, match=r"holds runs of another protocol than p2, but no protocol\.json; restore"
    ):
        RunsFolder.open_or_make(folder.path, facts=FACTS, digest="p2")
    assert not recorded.exists()
    RunsFolder.open_or_make(folder.path, facts=FACTS, digest="p1")
    assert recorded.read_bytes() == content


def test_a_folder_of_a_newer_format_or_of_something_else_is_refused(folder, tmp_path):
    (folder.path / "index.json").unlink()  # as one of an earlier version
    recorded = folder.path / "protocol.json"
    recorded.write_text(recorded.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(UnknownFormat, match=r"format 2; this version (of jahs )?reads format 1"):
        read_protocol(folder.path)
    with pytest.raises(MissingData, match="is not a folder of runs"):
        RunsFolder(tmp_path)


def test_a_config_enters_the_table_once_whoever_adds_it(folder):
    folder.add_configs(config_table(0, 5))
    folder.add_configs(config_table(3, 8))
    assert read_configs(folder.path)["config_index"].tolist() == list(range(8))


def test_a_run_that_is_claimed_cannot_be_claimed_again_until_it_is_released(folder):
    with folder.claim(3, 0) as first, folder.claim(3, 0) as second, folder.claim(3, 1) as other:
        assert (first, second, other) == (True, False, True)
    with folder.claim(3, 0) as again:
        assert again


def test_too_little_disk_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1 << 20}))
    with pytest.raises(OutOfSpace, match="1 MB are free, at least 64 are needed"):
        check_free_space(tmp_path / "not" / "yet")
    with pytest.raises(OutOfSpace):
        RunsFolder.open_or_make(tmp_path / "new", facts=FACTS, digest="p1")
    assert not (tmp_path / "new").exists()


class Killed(BaseException):
    """As by kill -9: nothing of what would have followed is done."""


def killed_at_step(monkeypatch, step):
    """Let the process die before its rename or removal number `step`, from 0."""
    n_steps = 0
    replace, unlink = Path.replace, Path.unlink

    def counted(function):
        def call(path, *arguments, **named):
            nonlocal n_steps
            n_steps += 1
            if n_steps > step:
                raise Killed
            return function(path, *arguments, **named)

        return call

    monkeypatch.setattr(Path, "replace", counted(replace))
    monkeypatch.setattr(Path, "unlink", counted(unlink))


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_kill_between_any_two_files_of_a_compaction_loses_nothing(tmp_path, monkeypatch, is_indexed):
    """New shard, old shards and index are changed one after another."""
    for step in range(20):
        folder = RunsFolder.open_or_make(tmp_path / f"runs{step}", facts=FACTS, digest="p1")
        folder.add_configs(config_table(0, 3))
        for number in range(2):
            folder.write_run(number, 0, run_rows(number))
        folder.compact()
        if not is_indexed:
            (folder.path / "index.json").unlink()
        folder.write_run(2, 0, run_rows(2))
        before = read_runs(folder.path)
        with monkeypatch.context() as patch:
            killed_at_step(patch, step)
            try:
                folder.compact()
            except Killed:
                was_killed = True
            else:
                was_killed = False
        for _ in range(2):
            after = read_runs(folder.path)
            assert all(np.array_equal(after[name], before[name]) for name in before), step
            assert read_configs(folder.path)["config_index"].tolist() == [0, 1, 2]
            assert committed_faults(folder.path) == [], step
            RunsFolder.open_or_make(folder.path, facts=FACTS, digest="p1").recover()
        folder.compact()
        assert len(run_shards(folder.path)) == 1
        assert committed_faults(folder.path) == []
        assert all(len(states) == 1 for states in read_index(folder.path).values())
        if not was_killed:
            break
    assert step > 4
    assert not was_killed


def test_a_kill_while_a_table_is_replaced_leaves_the_one_before_or_after(folder, monkeypatch):
    folder.add_configs(config_table(0, 3))
    lengths = []
    for step in range(6):
        n = len(read_configs(folder.path)["N"])
        with monkeypatch.context() as patch:
            killed_at_step(patch, step)
            with contextlib.suppress(Killed):
                folder.add_configs(config_table(0, n + 1))
        lengths.append(len(read_configs(folder.path)["N"]) - n)
        assert committed_faults(folder.path) == []
    assert lengths == [0, 0, 1, 1, 1, 1]  # the index with both, the table, the index with one


def test_a_damaged_table_is_not_taken_for_the_one_of_a_write_that_was_cut_off(folder, monkeypatch):
    folder.add_configs(config_table(0, 3))
    with monkeypatch.context() as patch:
        killed_at_step(patch, 1)
        with pytest.raises(Killed):
            folder.add_configs(config_table(0, 4))
    (folder.path / "configs.parquet").write_bytes(b"PAR1")
    folder.settle_index()
    assert committed_faults(folder.path) == ["configs.parquet was damaged or edited: its sha256 differs from the index"]
    with pytest.raises(CorruptFile):
        folder.add_configs(config_table(0, 5))


def test_a_file_that_is_replaced_while_it_is_checked_is_no_fault(folder, monkeypatch):
    folder.add_configs(config_table(0, 3))
    old = read_index(folder.path)
    folder.add_configs(config_table(0, 4))
    read = iter([old])
    monkeypatch.setattr(module, "read_index", lambda path: next(read, None) or read_index(path))
    assert committed_faults(folder.path) == []


def test_a_damaged_shard_does_not_replace_one_that_was_set_aside_before(folder):
    for content in (b"first", b"second"):
        (folder.path / "new").mkdir(exist_ok=True)
        (folder.path / "new" / "0000000-0.parquet").write_bytes(content)
        folder.recover()
    assert sorted(path.read_bytes() for path in (folder.path / "damaged").iterdir()) == [b"first", b"second"]


def test_a_folder_of_an_earlier_version_gets_an_index_with_the_next_write(folder):
    folder.write_run(0, 0, run_rows(1))
    (folder.path / "index.json").unlink()
    assert folder.recorded() == {(1, 0)}
    folder.add_configs(config_table(0, 1))
    assert set(read_index(folder.path)) == {"protocol.json", "configs.parquet", "new/0000000-0.parquet"}
    folder.shard(0, 0).write_bytes(b"PAR1")
    folder.recover()
    assert set(read_index(folder.path)) == {"protocol.json", "configs.parquet"}
    assert folder.recorded() == set()


def test_an_index_of_a_newer_format_is_refused(folder):
    index = folder.path / "index.json"
    index.write_text(index.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(UnknownFormat, match=r"format 2; this version (of jahs )?reads format 1"):
        read_configs(folder.path)
