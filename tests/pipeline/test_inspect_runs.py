"""Verify finds what is wrong, retraining reproduces, and folders of one protocol merge."""

import json
import os
import shutil
import time

import numpy as np
import pytest

from jahs.errors import CorruptFile, InvalidArgument, InvalidTable
from jahs.files.runs import VISITS, read_configs, read_protocol, read_runs, run_shards
from jahs.files.tables import concatenate, parquet_files, read_table, take, write_table
from jahs.schema import (
    CONFIG_COLUMNS,
    CONFIG_TABLE_COLUMNS,
    PROFILE_COLUMNS,
    PROXIES,
    PROXIES_FORMAT,
    PROXY_COLUMNS,
    RUN_COLUMNS,
    VISIT_COLUMNS,
)
from pipeline import inspect_runs
from pipeline import verify as verify_module
from pipeline.collect import CollectSettings, collect
from pipeline.inspect_runs import main, merge, retrain, status
from pipeline.profile import write_profile, write_visits
from pipeline.runs import RunsFolder
from pipeline.sampling import config_table
from pipeline.verify import verify
from tests.pipeline.run_folders import filled
from tests.pipeline.test_collect import TASK
from workshop.measured import read_proxies

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    out = tmp_path_factory.mktemp("collected") / "runs"
    collect(CollectSettings(task=TASK, out=out, runs=4, workers=1))
    return out


@pytest.fixture
def folder(recorded, tmp_path):
    return shutil.copytree(recorded, tmp_path / "copy")


def change(path, columns, name, edit):
    table = read_table(path, columns)
    table[name] = table[name].copy()
    edit(table[name])
    if path.parent.name == "new":
        write_table(path, table, columns)
    else:
        RunsFolder(path.parent).commit(path.name, table, columns)


def change_runs(folder, name, edit):
    for shard in run_shards(folder):
        change(shard, RUN_COLUMNS, name, edit)


def by_shard(folder):
    return [(path, read_table(path, RUN_COLUMNS)) for path in run_shards(folder)]


def visited(folder, **columns):
    """Give a folder visits to configs, and their profile; return the visits."""
    facts = {"torch_version": "9.9", "protocol": read_protocol(folder).digest}
    visits = filled(VISIT_COLUMNS, len(columns["config_id"]), **{"visit": 0, "repeat": 0, **facts, **columns})
    write_visits(folder, visits)
    write_profile(folder, visits)
    return visits


def test_what_was_collected_is_sound(folder):
    assert verify(folder) == []
    merge(folder, [])
    assert verify(folder) == []


def test_a_time_of_the_profile_that_no_visit_measured_is_found(folder):
    ids = np.unique(read_runs(folder)["config_id"])
    visits = visited(
        folder,
        config_id=np.tile(ids, 3),
        visit=np.repeat([0, 1, 0], len(ids)),
        latency=np.arange(1, 1 + 3 * len(ids)),
        step_time_s=np.arange(101, 101 + 3 * len(ids)),
        machine=np.repeat(["Abacus 9", "Abacus 8"], [2 * len(ids), len(ids)]),
    )
    assert verify(folder) == []
    profile = folder / "profile.parquet"
    unvisited = np.setdiff1d(read_configs(folder)["config_id"], ids)[0]
    for name, value, fault in (
        ("latency", 0.5, "1 configs do not have the minimum of their repeats"),
        ("step_time_s", 101 + len(ids), "1 configs do not have the minimum of their repeats"),  # of the second visit
        ("n_repeats", 3, "1 configs do not have the minimum of their repeats"),
        ("config_id", unvisited, "1 configs were not visited"),
    ):
        change(profile, PROFILE_COLUMNS, name, lambda v, value=value: v.__setitem__(0, value))
        assert verify(folder) == [f"profile.parquet: {fault}"]
        write_profile(folder, visits)
    change(profile, PROFILE_COLUMNS, "machine", lambda v: v.__setitem__(0, "Abacus 8"))
    two = "Abacus 8 with torch 9.9 and on Abacus 9 with torch 9.9"
    assert verify(folder) == [f"profile.parquet: times on {two} are not comparable"]
    write_profile(folder, visits)
    more = visits | {"visit": visits["visit"] + np.int8(2), "latency": visits["latency"] / 10}
    write_visits(folder, concatenate([visits, more], VISIT_COLUMNS))
    assert verify(folder) == [], "a pass that is under way has visited more than the profile tells"


@pytest.mark.parametrize("of", ["profile.parquet", VISITS])
@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("latency", 0, "1 rows have a time that is not a positive number"),
        ("latency", np.inf, "1 rows have a time that is not a positive number"),
        ("step_time_s", -1, "1 rows have a time that is not a positive number"),
        ("step_time_s", np.nan, "1 rows have a time that is not a positive number"),
        ("config_id", 7, "1 configs are not in configs.parquet"),
        (None, None, "1 rows are stored twice"),
    ],
)
def test_an_impossible_row_of_the_profile_is_found(folder, of, name, value, fault):
    visited(folder, config_id=np.unique(read_runs(folder)["config_id"]))
    columns = VISIT_COLUMNS if of == VISITS else PROFILE_COLUMNS
    if name:
        change(folder / of, columns, name, lambda v: v.__setitem__(0, value))
    else:
        table = read_table(folder / of, columns)
        RunsFolder(folder).commit(of, concatenate([table, take(table, [0])], columns), columns)
    assert verify(folder) == [f"{of}: {fault}"]


def test_a_profile_lacks_a_visited_config_during_a_pass(folder):
    visited(folder, config_id=np.unique(read_runs(folder)["config_id"]))
    profile = read_table(folder / "profile.parquet", PROFILE_COLUMNS)
    RunsFolder(folder).commit("profile.parquet", take(profile, [0]), PROFILE_COLUMNS)
    assert verify(folder) == []


def test_another_processor_for_the_runtimes_is_announced(folder, tmp_path, caplog):
    ids = np.unique(read_runs(folder)["config_id"])
    other = shutil.copytree(folder, tmp_path / "other")
    for path, machine, n in ((folder, "Abacus 9", 1), (other, "Abacus 8", 2)):
        visited(path, config_id=ids[:n], machine=machine)
    merge(other, [folder])
    assert "profile" not in caplog.text
    merge(folder, [other])
    assert "are now from Abacus 8 with torch 9.9, not from Abacus 9 with torch 9.9" in caplog.text


@pytest.mark.parametrize("is_other", [False, True])
def test_a_profile_without_its_visits_is_not_merged(folder, tmp_path, is_other):
    ids = np.unique(read_runs(folder)["config_id"])
    other = shutil.copytree(folder, tmp_path / "other")
    visited(folder, config_id=ids)
    visited(other, config_id=ids[:1])
    (folder / "index.json").unlink()
    (folder / VISITS).unlink()
    assert merge(folder, []) == (4, 0), "without more visits, the profile stays"
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    with pytest.raises(InvalidTable, match=rf"^{folder}: 1 configs of profile.parquet have no visits.* {VISITS}"):
        merge(*((other, [folder]) if is_other else (folder, [other])))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before


def test_a_merge_of_what_cannot_be_read_changes_nothing(folder, tmp_path):
    sound, damaged = (shutil.copytree(folder, tmp_path / name) for name in ("sound", "damaged"))
    RunsFolder(sound).add_configs(config_table(0, 540))
    (damaged / VISITS).write_bytes(b"PAR1")
    before = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    with pytest.raises(CorruptFile):
        merge(folder, [sound, damaged])
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == before


def test_status_counts_configs_by_what_they_are_and_not_by_their_numbers(folder):
    was = status(folder)["configs_per_group"]
    change(folder / "configs.parquet", CONFIG_COLUMNS, "config_index", lambda v: v.fill(-1))  # from elsewhere
    assert status(folder)["configs_per_group"] == was
    table = read_table(folder / "configs.parquet", CONFIG_COLUMNS)
    RunsFolder(folder).commit("configs.parquet", take(table, np.arange(0)), CONFIG_COLUMNS)
    with pytest.raises(InvalidTable, match=r"configs have runs but are not in configs\.parquet"):
        status(folder)


def test_a_negative_seed_is_refused(folder):
    with pytest.raises(InvalidArgument, match="seed=-1 is not an integer in 0"):
        retrain(folder, 1, seed=-1)


@pytest.mark.parametrize(
    ("column", "edit", "fault"),
    [
        ("train_acc", lambda v: v.__setitem__(2, np.nan), "train_acc is not 0..100 % in steps of 100/256"),
        ("valid_acc", lambda v: v.__setitem__(2, 101), "valid_acc is not 0..100 % in steps of 100/64"),
        ("test_acc", lambda v: v.__setitem__(2, np.float32(100 / 3)), "test_acc is not 0..100 % in steps of 100/64"),
        ("seed", lambda v: v.fill(-1), "the seed is negative"),
        ("device", lambda v: v.fill("gpu"), "device 'gpu' is not cpu, native or the model of an accelerator"),
        ("train_loss", lambda v: v.__setitem__(2, np.nan), "a loss is negative or not finite"),
        ("runtime", lambda v: v.__setitem__(2, v[1]), "runtime does not increase"),
        ("epoch", lambda v: v.__setitem__(2, 40), "epochs are not 1..3"),
        ("status", lambda v: v.__setitem__(slice(None), "diverged"), "losses of its last epoch are finite"),
        ("config_id", lambda v: v.__setitem__(slice(None), 1), "not in configs.parquet"),
    ],
)
def test_every_planted_fault_is_found(folder, column, edit, fault):
    change(run_shards(folder)[0], RUN_COLUMNS, column, edit)
    assert any(fault in line for line in verify(folder))


@pytest.mark.parametrize("name", ["0000100-0", f"{7:016x}-0", "0000000-9", "spare"])
def test_a_single_run_in_a_file_of_another_run_is_found(folder, name):
    shard = RunsFolder(folder).shard(0, 0)
    shard.rename(shard.with_stem(name))
    identity = read_configs(folder)["config_id"][0]
    [fault] = verify(folder)
    assert fault.startswith(f"new/{name}.parquet holds config {identity:016x} with seed 0; `python -m pipeline.collect")
    merge(folder, [])
    assert verify(folder) == []


def test_a_run_diverges_within_the_epochs_of_its_task(folder):
    shard = run_shards(folder)[0]
    run = read_table(shard, RUN_COLUMNS)
    run["status"] = np.full(3, "diverged")
    run["valid_loss"] = np.append(run["valid_loss"][:2], np.float32(np.inf))
    write_table(shard, run, RUN_COLUMNS)
    assert verify(folder) == []
    longer = take(run, [0, 1, 1, 2]) | {"epoch": np.arange(1, 5, dtype=np.int16), "runtime": np.float32([1, 2, 3, 4])}
    write_table(shard, longer, RUN_COLUMNS)
    [fault] = verify(folder)
    assert fault.endswith("diverged in epoch 4 of 3")


def test_a_negative_round_is_found(folder):
    change(folder / "configs.parquet", CONFIG_TABLE_COLUMNS, "round", lambda v: v.__setitem__(0, -1))
    assert verify(folder) == ["configs.parquet: 1 configs have a negative round"]


def test_a_config_that_is_not_its_number_is_found(folder):
    change(folder / "configs.parquet", CONFIG_COLUMNS, "LearningRate", lambda v: v.__setitem__(4, 0.5))
    assert any("1 configs do not match their config_id, first in row 4" in line for line in verify(folder))


def test_retraining_on_the_same_machine_gives_the_same_bits(folder):
    lines, faults = retrain(folder, 2)
    assert len(lines) == 2
    assert faults == []
    assert all("bit-identical: reproduced" in line for line in lines)


def test_retraining_notices_a_changed_measurement(folder):
    change_runs(folder, "valid_loss", lambda v: v.__setitem__(-1, v[-1] + 1e-6))
    _, faults = retrain(folder, 1)
    assert "differs in valid_loss" in faults[0]


def test_another_processor_is_held_to_the_noise_between_seeds(folder):
    change_runs(folder, "torch_version", lambda v: v.fill("0"))
    lines, faults = retrain(folder, 1)
    assert "within three standard deviations" in lines[0]
    assert faults == []


def test_without_repeats_another_processor_is_not_judged(folder):
    for shard in run_shards(folder):
        change(shard, RUN_COLUMNS, "torch_version", lambda v: v.fill("0"))
        runs = read_table(shard, RUN_COLUMNS)
        write_table(shard, take(runs, runs["seed"] == 0), RUN_COLUMNS)
    lines, faults = retrain(folder, 1)
    assert "not judged, because no config has two seeds" in lines[0]
    assert faults == []


def test_two_trainings_may_differ_by_more_than_one_deviates(folder):
    """Three deviations of a difference of two runs are 4.2 of one run's."""
    change_runs(folder, "torch_version", lambda v: v.fill("0"))
    shards = {(of["config_id"][0], of["seed"][0]): path for path, of in by_shard(folder)}
    repeated = next(i for i, seed in shards if seed == 2)
    [single] = (path for (i, _), path in shards.items() if i != repeated)
    for seed in (0, 2):  # so that seeds differ after so short a training, too
        change(shards[repeated, seed], RUN_COLUMNS, "valid_acc", lambda v, by=seed - 1: v.__setitem__(-1, v[-1] + by))
    spread = np.std([of["valid_acc"][-1] for path, of in by_shard(folder) if path != single], ddof=1)
    results = []
    for step in (4.0, 0.5):  # in all 4, then 4.5 of them
        change(single, RUN_COLUMNS, "valid_acc", lambda v, by=step * spread: v.__setitem__(-1, v[-1] - by))
        results.append(retrain(folder, 4)[1])
    assert [len(faults) for faults in results] == [0, 1]


def test_nothing_is_called_sound_that_could_not_be_trained_again(folder, caplog):
    for column, value in (("runtime", np.nan), ("device", "NVIDIA H200")):
        change_runs(folder, column, lambda v, value=value: v.fill(value))
    assert main(["verify", str(folder), "--retrain", "1"]) == 2
    assert "has 0 finished runs on a CPU, and 1 are to be trained again" in caplog.text


def test_runs_with_seeds_that_the_stream_does_not_ask_for_are_not_taken_off_the_work_that_is_left(folder, monkeypatch):
    monkeypatch.setattr(inspect_runs, "run_seeds", lambda _: (7,))
    facts = status(folder)
    assert facts["core_hours_left"] == pytest.approx(2000 * facts["mean_core_seconds"]["cpu"] / 3600)


def test_a_status_knows_no_cost_where_nothing_was_timed(folder):
    facts = status(folder)
    assert facts["core_hours_left"] == pytest.approx(facts["mean_core_seconds"]["cpu"] * (2400 - 4) / 3600, rel=0.2)
    for column, value in (("runtime", np.nan), ("device", "gpu")):
        change_runs(folder, column, lambda v, value=value: v.fill(value))
    facts = status(folder)
    assert (facts["mean_core_seconds"], facts["core_hours_left"], facts["core_hours"]) == ({}, None, 0.0)


def test_a_status_estimates_by_one_processor(folder):
    mean = status(folder)["mean_core_seconds"]["cpu"]
    first = next(shard for shard in run_shards(folder))
    change(first, RUN_COLUMNS, "machine", lambda v: v.__setitem__(slice(None), "another"))
    change(first, RUN_COLUMNS, "runtime", lambda v: v.__setitem__(slice(None), 1000 * v))
    assert 0.2 * mean < status(folder)["mean_core_seconds"]["cpu"] < 5 * mean


def test_shards_that_are_compacted_meanwhile_are_skipped(folder, monkeypatch):
    def with_one_gone(path):
        return [*parquet_files(path), *([path / "gone.parquet"] if path.name == "new" else [])]

    for module in (inspect_runs, verify_module):
        monkeypatch.setattr(module, "parquet_files", with_one_gone)
    assert verify(folder) == []
    assert status(folder)["n_runs"] == 4


def test_files_of_the_same_moment_have_no_rate(folder):
    moment = time.time()
    for shard in run_shards(folder):
        os.utime(shard, (moment, moment))
    assert status(folder)["runs_per_hour"] is None


def test_folders_of_one_protocol_merge_without_doubles(folder, recorded, tmp_path):
    other = tmp_path / "other"
    collect(CollectSettings(task=TASK, out=other, runs=6, workers=1))
    before = read_runs(folder)
    assert merge(folder, [other, recorded]) == (6, 8)
    assert verify(folder) == []
    assert len(run_shards(folder)) == 1
    after = read_runs(folder)
    assert np.array_equal(after["config_id"], read_runs(other)["config_id"])
    assert set(before["runtime"].tolist()) <= set(after["runtime"].tolist())  # its own measurements were kept


def scored(folder, ids, *, seed=0, score=1.0):
    """Give a folder proxies of some configs."""
    facts = {"seed": seed, "format": PROXIES_FORMAT, "protocol": read_protocol(folder).digest}
    scores = dict.fromkeys(PROXIES, score)
    table = filled(PROXY_COLUMNS, len(ids), config_id=np.sort(ids), **facts, **scores)
    RunsFolder(folder).commit("proxies.parquet", table, PROXY_COLUMNS)
    return folder


def test_the_proxies_of_folders_merge_and_those_of_the_first_folder_count(folder, tmp_path):
    ids = np.unique(read_runs(folder)["config_id"])
    other, third = (shutil.copytree(folder, tmp_path / name) for name in ("other", "third"))
    scored(folder, ids[:1], score=1.0)
    scored(other, ids[:2], score=2.0)
    scored(third, ids[:1], seed=1, score=3.0)
    merge(folder, [other, other, third])
    proxies = read_proxies(folder)
    assert proxies["config_id"].tolist() == ids[[0, 0, 1]].tolist()
    assert proxies["seed"].tolist() == [0, 1, 0]
    assert proxies["snip"].tolist() == [1.0, 3.0, 2.0]
    assert verify(folder) == []


def test_proxies_that_cannot_be_read_are_stored_twice_or_are_of_unknown_configs_are_found(folder):
    ids = np.unique(read_runs(folder)["config_id"])
    scored(folder, np.append(ids, ids[0]))
    assert verify(folder) == ["proxies.parquet: 1 rows are stored twice"]
    scored(folder, np.append(ids, np.uint64(7)))
    assert verify(folder) == ["proxies.parquet: 1 configs are not in configs.parquet"]
    change(folder / "proxies.parquet", PROXY_COLUMNS, "format", lambda v: v.fill("0"))
    [fault] = verify(folder)
    assert "proxies.parquet: scores" in fault


def edited(folder, path, name, edit):
    """A copy of a folder in which every run was changed by somebody who knows how."""
    copy = shutil.copytree(folder, path)
    change_runs(copy, name, edit)
    return copy


def test_runs_of_one_machine_that_contradict_one_another_are_not_merged(folder, tmp_path, caplog):
    other = edited(folder, tmp_path / "other", "valid_acc", lambda v: v.__setitem__(-1, 99))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["merge", str(folder), str(other)]) == 2
    assert caplog.text.count(f"{folder} and {other} differ in valid_acc, but") == 4
    assert "verify --retrain shows which folder is right" in caplog.text
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    caplog.clear()
    empty = tmp_path / "empty"
    RunsFolder.open_or_make(empty, facts=read_protocol(folder).facts, digest=read_protocol(folder).digest)
    RunsFolder(empty).add_configs(config_table(0, 1))
    assert main(["merge", str(empty), str(folder), str(other)]) == 2
    assert caplog.text.count(f"{folder} and {other} differ in valid_acc, but") == 4


@pytest.mark.parametrize("name", ["machine", "torch_version", "device"])
def test_runs_of_two_machines_may_differ_and_the_first_folder_counts(folder, tmp_path, name):
    other = edited(folder, tmp_path / "other", "valid_acc", lambda v: v.__setitem__(-1, 99))
    change_runs(other, name, lambda v: v.fill("9.9"))
    wanted = read_runs(folder)
    assert merge(folder, [other]) == (4, 4)
    assert read_runs(folder)["valid_acc"].tolist() == wanted["valid_acc"].tolist()


def test_another_runtime_is_no_contradiction(folder, tmp_path):
    other = edited(folder, tmp_path / "other", "runtime", lambda v: v.__imul__(2))
    assert merge(folder, [other]) == (4, 4)


def test_a_damaged_folder_is_neither_merged_nor_merged_into(folder, tmp_path, caplog):
    other = shutil.copytree(folder, tmp_path / "other")
    configs = other / "configs.parquet"
    configs.write_bytes(configs.read_bytes()[:-1])
    for arguments in ([folder, other], [other, folder]):
        assert main(["merge", *map(str, arguments)]) == 2
        assert f"{configs} was damaged or edited" in caplog.text
        caplog.clear()


def test_a_run_that_was_put_there_without_a_digest_is_not_sound(folder):
    import pyarrow.parquet as pq

    shard = run_shards(folder)[0]
    pq.write_table(pq.read_table(shard).replace_schema_metadata({}), shard)
    assert verify(folder) == [f"new/{shard.name} has no digest: another program wrote or edited it"]


def test_another_protocol_is_not_merged(folder, recorded, tmp_path, caplog):
    other = shutil.copytree(recorded, tmp_path / "other")
    (other / "index.json").unlink()  # as one of an earlier version
    content = json.loads((other / "protocol.json").read_text())
    (other / "protocol.json").write_text(json.dumps({**content, "digest": "0" * 16}))
    assert main(["merge", str(folder), str(other)]) == 2
    assert "they cannot be merged" in caplog.text


def test_the_status_counts_what_is_there(folder, capsys):
    facts = status(folder)
    assert (facts["n_configs"], facts["n_runs"], facts["n_repeated_configs"]) == (2, 4, 1)
    assert sum(facts["configs_per_group"].values()) == 2
    assert main(["status", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out)["n_runs"] == 4


def test_verify_says_so_in_its_exit_status(folder, capsys):
    assert main(["verify", str(folder)]) == 0
    assert "sound" in capsys.readouterr().out
    change(run_shards(folder)[0], RUN_COLUMNS, "valid_acc", lambda v: v.__setitem__(2, -1))
    assert main(["verify", str(folder)]) == 1
    assert "valid_acc is not 0..100 %" in capsys.readouterr().out
