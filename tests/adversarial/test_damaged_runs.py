"""Not one flipped bit of the committed data goes unnoticed, nor of the measurements in a collecting folder.

Some hundred flips in a normal run; ten thousand if JAHS_ATTACK_MINUTES is set.
"""

import os
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from experiments.packs import (
    COLUMNS,
    MANIFEST,
    RATES_FILE,
    rates_of_pack,
    read_manifest,
    read_packed_table,
    read_rates,
)
from jahs.errors import CorruptFile, InvalidTable, JahsError, UnknownFormat
from jahs.files.index import INDEX
from jahs.files.runs import committed_files, read_configs, read_profile, read_runs
from jahs.files.sealed_json import read_sealed
from jahs.files.tables import read_table
from pipeline.inspect_runs import main
from pipeline.verify import verify
from splits.final import final_beside, n_reads
from splits.split import read_split
from surrogate.card.figures import read_figures
from surrogate.models.fitting import read_params
from surrogate.tune import read_history
from surrogate.zoo import read_zoo
from tests.pipeline.test_runs import FACTS, run_rows
from workshop.measured import read_proxies, read_visits

DATA = Path(__file__).parents[2] / "data"
RECORDED = DATA / "candidates/short/runs"
RUNS_READERS = {
    "configs.parquet": read_configs,
    "profile.parquet": read_profile,
    "profile_visits.parquet": read_visits,
    "proxies.parquet": read_proxies,
    "protocol.json": read_runs,
    "index.json": read_runs,
    "runs-*.parquet": read_runs,
}
FILE_READERS = {
    "split.json": read_split,
    "final_test.json": final_beside,
    "final_test_reads.json": n_reads,
    "params.json": read_params,
    "history.json": read_history,
    "zoo.json": read_zoo,
    "landscape.json": read_sealed,
    "agreement.json": read_sealed,
    "retrained-baselines.json": read_sealed,
    "retrained-joint.json": read_sealed,
    "figures.json": read_figures,
    "manifest.json": read_manifest,
}
UNREAD = {"LICENSE", "README.md", "SHA256SUMS", "croissant.json"}  # about the data; nothing reads them
N_FLIPS = 10_000 if os.environ.get("JAHS_ATTACK_MINUTES") else 200
N_VERIFIED = 6
pytestmark = pytest.mark.timeout(7200 if N_FLIPS > 200 else 300)


def put(path, content):
    """Write a new file: overwriting one may wait for the disk."""
    path.unlink()
    path.write_bytes(content)


@pytest.fixture
def flipped(tmp_path):
    """Return a folder, and a function that undoes its last flip and flips one bit of some files, drawn uniformly."""
    rng = random.Random(20_261)
    folder = tmp_path / "runs"
    originals = {}

    def flip(files):
        for path, data in originals.items():
            put(path, data)
        originals.clear()
        bit = rng.randrange(8 * sum(len(data) for data in files.values()))
        for path, data in files.items():
            if bit < 8 * len(data):
                originals[path] = data
                put(path, data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :])
                return path
            bit -= 8 * len(data)
        raise AssertionError("no such bit")

    return folder, flip


def copy_to(folder):
    return shutil.copytree(RECORDED, folder, ignore=shutil.ignore_patterns(".locks"))


def same(first, second):
    return all(np.array_equal(first[n], second[n], equal_nan=first[n].dtype.kind == "f") for n in second)


def read_everything(folder):
    for read in (read_configs, read_runs, read_profile, read_visits, read_proxies):
        read(folder)


def reader(path):
    """Return the function that reads a committed file, and its argument."""
    for pattern, read in RUNS_READERS.items():
        if path.match(f"runs/{pattern}"):
            return read, path.parent
    return FILE_READERS[path.name], path


def test_no_flipped_bit_of_the_committed_data_is_read(flipped):
    folder, flip = flipped
    shutil.copytree(DATA, folder, ignore=shutil.ignore_patterns(".locks", "studies", "live", "next"))
    # The logs of live grow, so they have no checksums of their own.
    shutil.copytree(DATA / "live/runs", folder / "live/runs", ignore=shutil.ignore_patterns(".locks"))
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in UNREAD)
    files = {path: path.read_bytes() for path in paths}
    for path in files:
        read, target = reader(path)
        read(target)
    unnoticed = []
    for i in range(N_FLIPS):
        read, target = reader(path := flip(files))
        try:
            read(target)
            unnoticed.append(path.name)
        except (CorruptFile, UnknownFormat):
            pass
        if i < N_VERIFIED and path.parent.name == "runs":
            assert main(["verify", str(path.parent)]) != 0, path
    assert unnoticed == []


def read_shared_rates(path):
    """Read the rates of a season as its packs do, each with its own checksum."""
    rates = read_rates(path.parent)
    for manifest in sorted(path.parent.glob(f"*/{MANIFEST}")):
        rates_of_pack(manifest.parent, rates)
    return rates


def test_no_flipped_bit_of_a_committed_pack_changes_what_is_read(flipped):
    folder, flip = flipped
    shutil.copytree(DATA / "studies", folder)
    files = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    assert {path.name for path in files} == {MANIFEST, RATES_FILE, *COLUMNS}
    readers = {MANIFEST: read_manifest, RATES_FILE: read_shared_rates}
    for _ in range(N_FLIPS // 3):
        path, fault = flip(files), ""
        try:
            rates = readers.get(path.name, read_packed_table)(path)
        except (CorruptFile, UnknownFormat) as err:
            fault = str(err)
        if (
            not fault
        ):  # the checksum of the shared table is of its values, and compressed pages have bits without effect
            assert path.name == RATES_FILE
            np.testing.assert_array_equal(rates, read_rates(DATA / "studies" / path.parent.relative_to(folder)))
        else:
            assert str(path) in fault


def test_every_committed_file_of_runs_is_in_their_index():
    for folder in DATA.glob("*/runs"):
        names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert {name for name in names if not name.startswith(".")} == {INDEX, *committed_files(folder)}


@pytest.mark.parametrize("name", [name for name in FILE_READERS if any(DATA.glob(f"**/{name}"))])
def test_no_flipped_bit_of_a_found_split_or_search_is_read(tmp_path, flipped, name):
    """Small files get few of the flips above, so each gets its own."""
    folder, flip = flipped
    folder.mkdir()
    path = min(DATA.glob(f"**/{name}"))
    copy = Path(shutil.copy(path, folder))
    files = {copy: copy.read_bytes()}
    for _ in range(N_FLIPS // 3):
        flip(files)
        with pytest.raises((CorruptFile, UnknownFormat), match=re.escape(str(copy))):
            FILE_READERS[name](copy)


def test_every_single_run_with_a_flipped_bit_is_refused_or_the_same(flipped, tmp_path):
    """Single runs have no index; a bit without meaning, as in the name of the writing library, may change."""
    from pipeline.runs import RunsFolder

    folder, flip = flipped
    runs = RunsFolder.open_or_make(folder, facts=FACTS, digest="p1")
    for number in range(3):
        runs.write_run(number, 0, run_rows(number))
    expected = read_runs(folder)
    files = {path: path.read_bytes() for path in runs.new.iterdir()}
    n_refused = 0
    for _ in range(N_FLIPS):
        flip(files)
        try:
            runs_read = read_runs(folder)
        except JahsError:
            n_refused += 1
        else:
            assert same(runs_read, expected)
    assert n_refused > N_FLIPS / 3


def test_an_edited_accuracy_is_found(tmp_path, caplog):
    import pyarrow.parquet as pq

    folder = copy_to(tmp_path / "runs")
    [shard] = folder.glob("runs-*.parquet")
    table = pq.read_table(shard)
    column = table.column_names.index("valid_acc")
    values = table.column(column).to_numpy().copy()
    values[0] = 75  # percent, which some of 3,072 images give
    pq.write_table(table.set_column(column, "valid_acc", [values]), shard)
    assert verify(folder) == [f"{shard.name} was damaged or edited: its sha256 differs from the index"]
    (folder / INDEX).unlink()
    assert main(["verify", str(folder)]) == 0
    assert caplog.text.count("has no index") == 1


@pytest.mark.parametrize("name", ["configs.parquet", "profile.parquet", "protocol.json", "runs-*.parquet"])
def test_a_lost_or_an_added_file_is_found(tmp_path, name):
    folder = copy_to(tmp_path / "runs")
    [path] = folder.glob(name)
    if name.startswith("runs"):
        shutil.copy(path, added := folder / "runs-9999.parquet")
        assert verify(folder) == ["runs-9999.parquet is not in index.json: it was added by other means"]
        with pytest.raises(CorruptFile, match=r"runs-9999\.parquet is not the file that its folder's index lists"):
            read_runs(folder)
        added.unlink()
    path.unlink()
    with pytest.raises(JahsError):
        read_everything(folder)


def test_a_long_text_does_not_make_every_text_as_long(tmp_path):
    """numpy pads texts to the longest: two million characters in one of 8,000 rows would take 60 GB."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pa.array(["x" * 2_000_000, *["cpu"] * 7999])
    for name, use_dictionary in (("a", True), ("b", False)):
        pq.write_table(pa.table({"machine": texts}), tmp_path / name, compression="zstd", use_dictionary=use_dictionary)
        with pytest.raises(InvalidTable, match="machine has a text that is too long for 8,000 rows"):
            read_table(tmp_path / name, {"machine": "string"})
    pq.write_table(pa.table({"machine": texts[1:]}), tmp_path / "c")
    assert set(read_table(tmp_path / "c", {"machine": "string"})["machine"].tolist()) == {"cpu"}
