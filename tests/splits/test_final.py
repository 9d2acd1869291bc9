"""The final test set: frozen once, in no part of any split, and every reading of it is counted."""

import json

import numpy as np
import pytest

from jahs.errors import CorruptFile, InvalidArgument, Leakage, MissingData, ProtocolMismatch
from jahs.files.runs import read_protocol
from jahs.files.tables import read_table, write_table
from jahs.schema import CONFIG_COLUMNS, CONFIG_TABLE_COLUMNS, SOURCE_DEFAULTS
from jahs.spaces.columns import rows
from jahs.spaces.configs import config_id
from splits import check, make
from splits.check import check_split
from splits.final import FinalTest, count_read, final_beside, is_final, n_reads, write_final
from splits.recorded import read_recorded
from splits.split import read_split
from surrogate.data.measurements import read_final_measurements, read_measurements, read_with_split
from tests.building import make_configs, make_runs_folder, with_ids

MEMBERS = (3, 50, 111)  # two of them have one seed, 50 has three


@pytest.fixture
def runs(tmp_path):
    return make_runs_folder(tmp_path / "runs", 220, n_epochs=2)


@pytest.fixture
def split(tmp_path):
    return tmp_path / "split.json"


def final_of(runs, *, protocol=None, members=MEMBERS):
    configs = make_configs(220)
    chosen = rows({name: values[list(members)] for name, values in configs.items()})
    groups = ("uniform", *["random_search"] * (len(members) - 1))
    digest = read_protocol(runs).digest if protocol is None else protocol
    return FinalTest(task="digits", protocol=digest, configs=tuple(chosen), groups=groups, seeds=(0, 1, 2))


def call(main, *arguments):
    return main([str(argument) for argument in arguments])


def test_what_is_written_is_read_back_and_never_written_over(runs, split):
    final = final_of(runs)
    write_final(split, final)
    again = final_beside(split)
    assert (again.configs, again.groups, again.seeds) == (final.configs, final.groups, final.seeds)
    assert again.counts == {"uniform": 1, "random_search": 2}
    with pytest.raises(InvalidArgument, match="frozen once"):
        write_final(split, final)


def test_an_edited_final_test_set_is_refused(runs, split):
    path = write_final(split, final_of(runs))
    path.write_text(path.read_text().replace('"uniform"', '"uniformly"'))
    with pytest.raises(CorruptFile, match="damaged or edited"):
        final_beside(split)


def test_members_are_in_no_part_and_no_measurement_of_them_is_read(runs, split, capsys):
    final = final_of(runs)
    write_final(split, final)
    assert call(make.main, runs, "--out", split) == 0
    assert len(read_split(split).config_ids) == 217
    assert not np.isin(final.config_ids, read_split(split).config_ids).any()
    measured, _ = read_with_split(runs, split)
    for table in (measured.configs, measured.runs, measured.profile):
        assert not np.isin(final.config_ids, table["config_id"]).any()
    assert n_reads(split) == 0
    capsys.readouterr()
    assert call(check.main, runs, split) == 0
    shown = capsys.readouterr().out
    assert "3 configs at full size (1 uniform, 2 random_search), in no part; 1 trained with seeds 0, 1, 2" in shown
    assert call(check.main, runs, split, "--json") == 0
    facts = json.loads(capsys.readouterr().out)["final_test"]
    assert facts == {"counts": final.counts, "n_kin": 0, "n_reads": 0, "n_trained": 1, "seeds": [0, 1, 2]}


def test_a_split_that_is_extended_elsewhere_keeps_its_final_test_set(runs, split, tmp_path, capsys):
    path = write_final(split, final_of(runs))
    assert call(make.main, runs, "--out", split) == 0
    out = tmp_path / "elsewhere" / "split.json"
    out.parent.mkdir()
    capsys.readouterr()
    assert call(make.main, runs, "--out", out, "--extend", split) == 2
    assert f"would lack the final test set {path}; write the split beside {split}, or copy" in capsys.readouterr().err
    assert not out.exists()
    assert call(make.main, runs, "--out", split.with_name("split-2.json"), "--extend", split) == 0
    (out.parent / path.name).write_bytes(path.read_bytes())
    assert call(make.main, runs, "--out", out, "--extend", split) == 0
    assert len(read_split(out).config_ids) == 217


def test_kin_of_a_member_are_held_out_too(runs):
    configs = make_configs(220)
    member = {name: values[[5]].copy() for name, values in configs.items()}
    for op in range(1, 7):
        member[f"Op{op}"][:] = 1  # a dead cell, as that of row 5 below
    dead = {**{f"Op{op}": configs[f"Op{op}"].copy() for op in range(1, 7)}}
    table = {**configs, **dead}
    for op in (3, 5, 6):  # every way to the output is closed
        table[f"Op{op}"][5] = 1
    table = with_ids(table)
    final = FinalTest(task="digits", protocol="p", configs=tuple(rows(member)), groups=("uniform",), seeds=(0,))
    assert np.flatnonzero(is_final(table, final)).tolist() == [5]
    assert table["config_id"][5] != final.config_ids[0]


def test_what_was_trained_as_final_is_held_out_wherever_the_split_is(runs, tmp_path):
    table = read_table(runs / "configs.parquet", CONFIG_COLUMNS)
    table |= {name: np.full(220, value) for name, value in SOURCE_DEFAULTS.items()}
    table["source"] = np.where(np.isin(np.arange(220), MEMBERS), "final", "uniform")
    write_table(runs / "configs.parquet", table, CONFIG_TABLE_COLUMNS)
    assert len(read_recorded(runs).config_ids) == 217
    assert len(read_measurements(runs).configs["N"]) == 217


def test_a_split_with_a_member_leaks(runs, split):
    assert call(make.main, runs, "--out", split) == 0
    final = final_of(runs)
    with pytest.raises(Leakage, match=r"^3 configs of the split are in the final test set or kin of a config there"):
        check_split(read_recorded(runs, final=final), read_split(split))


@pytest.mark.parametrize("main", [check.main, make.main])
def test_a_split_with_kin_of_a_member_leaks(runs, split, capsys, main):
    assert call(make.main, runs, "--out", split) == 0
    [config] = rows(make_configs(1))
    assert config["Op6"] == 1, "edge 3→4 is closed, so edge 1→3 does not matter"
    more = {"groups": ("uniform",), "seeds": (0,), "protocol": read_protocol(runs).digest}
    write_final(split, FinalTest(task="digits", configs=(config | {"Op2": 0},), **more))
    assert call(main, runs, *([split] if main is check.main else ["--out", split, "--extend", split])) == 2
    what = f"in the final test set or kin of a config there: {config_id(config):016x}; make a new split"
    assert what in capsys.readouterr().err
    with pytest.raises(Leakage, match=what):
        read_with_split(runs, split)


def test_every_reading_is_counted_before_anything_is_read(runs, split):
    with pytest.raises(MissingData, match=r"surrogate\.freeze draws"):
        read_final_measurements(runs, split, what_for={})
    write_final(split, final_of(runs))
    measured = read_final_measurements(runs, split, what_for={"release": "a"})
    assert sorted(measured.configs["config_id"].tolist()) == sorted(final_of(runs).config_ids.tolist())
    assert set(measured.runs["config_id"].tolist()) == set(final_of(runs).config_ids.tolist())
    assert n_reads(split) == 1
    assert count_read(split, {"release": "b"}) == 2
    reads = split.with_name("final_test_reads.json")
    reads.write_text(reads.read_text().replace('"b"', '"c"'))
    with pytest.raises(CorruptFile, match="damaged or edited"):
        n_reads(split)


def test_a_final_test_set_of_another_protocol_is_refused(runs, split):
    write_final(split, final_of(runs, protocol="f" * 16))
    with pytest.raises(ProtocolMismatch, match=r"final test set has protocol f{16}"):
        read_recorded(runs, final=final_beside(split))
    with pytest.raises(ProtocolMismatch, match=r"final test set has protocol f{16}"):
        read_final_measurements(runs, split, what_for={})
    assert n_reads(split) == 0


def test_without_a_trained_member_nothing_is_counted(runs, split):
    elsewhere = make_configs(30, seed=9)
    final = FinalTest(
        task="digits", protocol=read_protocol(runs).digest, configs=tuple(rows(elsewhere)), groups=("uniform",) * 30,
        seeds=(0, 1),
    )  # fmt: skip
    write_final(split, final)
    with pytest.raises(MissingData, match="has no run of the final test set"):
        read_final_measurements(runs, split, what_for={})
    assert n_reads(split) == 0
