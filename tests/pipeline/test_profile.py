import dataclasses
import functools
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.files.runs import VISITS, read_profile
from jahs.files.tables import take
from jahs.schema import PROFILE_COLUMNS, VISIT_COLUMNS
from jahs.tasks import definitions as tasks
from pipeline import profile as profile_module
from pipeline.data import load_images
from pipeline.profile import main, measure_config, merge_visits, profile_folder
from pipeline.protocol import protocol_digest
from pipeline.runs import RunsFolder
from pipeline.sampling import config_table, sample_config
from tests.pipeline.run_folders import make_folder
from tests.pipeline.unwritable import ADVICE, fails_in_one_line_and_goes_on
from workshop.machine import processor_model
from workshop.measured import read_visits, visits_of_profile


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """An idle machine."""
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))


@pytest.fixture
def folder(task, tmp_path):
    return make_folder(tmp_path, task, 5)


def _visited(task, path, *, n_configs, visits, repeats):
    """Two folders of so many configs each, with a profile."""
    folders = []
    for name, n in zip(("one", "two"), n_configs, strict=True):
        folders.append(make_folder(path / name, task, n))
        profile_folder(folders[-1], task, visits=visits, repeats=repeats)
    return folders


@pytest.fixture
def quick(monkeypatch):
    """Measures nothing; lists the configs in the order in which they would be measured."""
    order = []

    def measure(config, task, images, *, repeats, seed):
        order.append(config["LearningRate"])
        return [(0.001 * (len(order) + i), 0.002 * (len(order) + i)) for i in range(repeats)]

    monkeypatch.setattr(profile_module, "measure_config", measure)
    return order


def test_every_config_is_in_the_profile_once_with_the_recorded_columns(tmp_path, task):
    folder = make_folder(tmp_path, task, 3)
    assert profile_folder(folder, task, visits=2, repeats=2) == 3
    profile = read_profile(folder)
    assert tuple(profile) == tuple(PROFILE_COLUMNS)
    assert sorted(profile["config_id"].tolist()) == sorted(config_table(0, 3)["config_id"].tolist())
    assert np.all(profile["latency"] > 0)
    assert np.all(profile["step_time_s"] > profile["latency"])
    assert set(profile["n_repeats"].tolist()) == {4}
    assert set(profile["machine"].tolist()) == {processor_model()}
    assert set(profile["protocol"].tolist()) == {protocol_digest(task)}
    visits = read_visits(folder)
    for row, config in enumerate(profile["config_id"]):
        own = visits["config_id"] == config
        assert visits["visit"][own].tolist() == [0, 0, 1, 1]
        assert visits["repeat"][own].tolist() == [0, 1, 0, 1]
        for name in ("latency", "step_time_s"):
            assert profile[name][row] == visits[name][own].min()
    assert profile_folder(folder, task, visits=2, repeats=2) == 0


def test_a_slow_minute_of_the_machine_leaves_no_trace(folder, task, monkeypatch):
    n_measured = 0

    def measure(config, task, images, *, repeats, seed):
        nonlocal n_measured
        n_measured += 1
        slow = 2.0 if n_measured <= 5 else 1.0  # the whole first visit
        return [(slow * config["LearningRate"], slow)] * repeats

    monkeypatch.setattr(profile_module, "measure_config", measure)
    profile_folder(folder, task, visits=2, repeats=1)
    wanted = config_table(0, 5)
    rates = dict(zip(wanted["config_id"].tolist(), wanted["LearningRate"].tolist(), strict=True))
    profile = read_profile(folder)
    assert profile["latency"].tolist() == pytest.approx([rates[i] for i in profile["config_id"].tolist()])


def test_more_visits_and_more_configs_are_added_to_what_is_there(folder, task, quick):
    profile_folder(folder, task, visits=1, repeats=1)
    before = read_visits(folder)
    RunsFolder(folder).add_configs(config_table(0, 8))
    assert profile_folder(folder, task, visits=2, repeats=1) == 8
    assert len(quick) == 5 + 3 + 8
    after = read_visits(folder)
    is_old = np.isin(after["config_id"], before["config_id"]) & (after["visit"] == 0)
    assert np.array_equal(after["latency"][is_old], before["latency"])
    assert read_profile(folder)["n_repeats"].tolist() == [2] * 8


def test_visits_of_folders_merge_into_a_profile_of_the_machine_that_visited_the_most(
    task, tmp_path, quick, monkeypatch
):
    one, two = _visited(task, tmp_path, n_configs=(5, 8), visits=2, repeats=2)
    own = read_visits(one)
    merge_visits(one, [read_visits(two)] * 2)
    merged = read_visits(one)
    assert len(merged["visit"]) == 8 * 2 * 2
    is_own = np.isin(merged["config_id"], own["config_id"])
    assert np.array_equal(merged["latency"][is_own], own["latency"]), "of one visit the folder's own repeats count"
    assert read_profile(one)["n_repeats"].tolist() == [4] * 8
    monkeypatch.setattr(profile_module, "processor_model", lambda: "Abacus 9")
    far = tmp_path / "far"
    profile_folder(make_folder(far, task, 8), task, visits=1, repeats=1)
    before = (one / "profile.parquet").read_bytes()
    merge_visits(one, [read_visits(far)])
    assert len(read_visits(one)["visit"]) == 8 * 2 * 2 + 8
    assert (one / "profile.parquet").read_bytes() == before, "of as many configs, the one with more repeats"
    profile_folder(make_folder(far, task, 9), task, visits=1, repeats=1)
    merge_visits(one, [read_visits(far)])
    assert (one / "profile.parquet").read_bytes() == (far / "profile.parquet").read_bytes()
    kept = read_visits(one)
    assert np.array_equal(kept["latency"][kept["machine"] != "Abacus 9"], merged["latency"])
    empty = make_folder(tmp_path, task, 5)
    merge_visits(empty, [read_visits(one)])
    assert (empty / VISITS).read_bytes() == (one / VISITS).read_bytes()
    assert (empty / "profile.parquet").read_bytes() == (one / "profile.parquet").read_bytes()


@pytest.mark.parametrize("n_visited_before", [0, 1])
def test_visits_that_are_merged_during_a_pass_stay(task, tmp_path, quick, monkeypatch, n_visited_before):
    one, two = make_folder(tmp_path / "one", task, 5), make_folder(tmp_path / "two", task, 8)
    profile_folder(two, task, visits=1, repeats=2)
    if n_visited_before:
        profile_folder(one, task, visits=n_visited_before, repeats=2)
    measure, merged = profile_module.measure_config, []

    def merge_first(*args, **options):
        if not merged:
            merge_visits(one, [read_visits(two)])
            merged.append(two)
        return measure(*args, **options)

    monkeypatch.setattr(profile_module, "measure_config", merge_first)
    profile_folder(one, task, visits=2, repeats=2)
    assert merged == [two]
    visits = read_visits(one)
    assert len(visits["visit"]) == (8 + 5) * 2
    is_merged = ~np.isin(visits["config_id"], config_table(0, 5)["config_id"])
    theirs = read_visits(two)
    assert set(visits["latency"][is_merged].tolist()) < set(theirs["latency"].tolist())
    assert len(read_profile(one)["config_id"]) == 8


def test_a_merge_that_was_killed_between_its_two_files_is_made_good_by_the_same_merge(
    task, tmp_path, quick, monkeypatch
):
    one, two = _visited(task, tmp_path, n_configs=(3, 5), visits=1, repeats=1)
    n_written = []

    def write_or_die(write, *args):
        if n_written:
            raise KeyboardInterrupt
        n_written.append(write(*args))

    with monkeypatch.context() as patch:
        for name in ("write_visits", "write_profile"):  # whichever comes second
            patch.setattr(profile_module, name, functools.partial(write_or_die, getattr(profile_module, name)))
        with pytest.raises(KeyboardInterrupt):
            merge_visits(one, [read_visits(two)])
    merge_visits(one, [read_visits(two)])
    assert len(read_visits(one)["visit"]) == len(read_profile(one)["config_id"]) == 5


def test_readers_see_the_visits_of_the_profile_alone(folder, task, quick, monkeypatch):
    profile_folder(folder, task, visits=3, repeats=1)
    own = read_visits(folder)
    RunsFolder(folder).add_configs(config_table(0, 8))
    monkeypatch.setattr(profile_module, "processor_model", lambda: "Abacus 9")
    measure = profile_module.measure_config

    def stop_in_the_second_visit(*args, **options):
        if len(quick) == 5 * 3 + 8:
            raise KeyboardInterrupt
        return measure(*args, **options)

    monkeypatch.setattr(profile_module, "_SAVE_EVERY", 1)
    monkeypatch.setattr(profile_module, "measure_config", stop_in_the_second_visit)
    with pytest.raises(KeyboardInterrupt):
        profile_folder(folder, task, visits=3, repeats=1)
    assert {*read_profile(folder)["machine"].tolist()} == {processor_model()}, "the other pass is not at its end"
    seen = visits_of_profile(read_visits(folder), read_profile(folder))
    assert all(np.array_equal(seen[name], own[name]) for name in VISIT_COLUMNS)
    assert len(visits_of_profile(read_visits(folder), take(read_profile(folder), np.arange(0)))["visit"]) == 0


@pytest.mark.parametrize("name", ["processor_model", "torch"])
def test_another_machine_measures_every_config_anew_beside_what_is_there(folder, task, quick, monkeypatch, name):
    profile_folder(folder, task, visits=1, repeats=1)
    before, own = read_visits(folder), read_profile(folder)
    other = (lambda: "Abacus 9") if name == "processor_model" else type("torch", (), {"__version__": "9.9"})
    monkeypatch.setattr(profile_module, name, other)
    fact = "machine" if name == "processor_model" else "torch_version"
    assert profile_folder(folder, task, visits=2, repeats=1) == 5
    after = read_visits(folder)
    is_old = after[fact] == before[fact][0]
    assert np.array_equal(after["latency"][is_old], before["latency"])
    profile = read_profile(folder)
    assert len({*profile["machine"].tolist()}) == len({*profile["torch_version"].tolist()}) == 1
    assert profile[fact][0] != own[fact][0], "the one with more repeats"
    for row, config in enumerate(profile["config_id"]):
        assert profile["latency"][row] == after["latency"][~is_old & (after["config_id"] == config)].min()
    assert profile_folder(folder, task, visits=2, repeats=1) == 0


@pytest.mark.parametrize(("factor", "is_refused"), [(1.0, False), (1.1, False), (1.6, True), (0.6, True)])
def test_another_processor_that_has_the_same_name_is_refused(task, tmp_path, monkeypatch, factor, is_refused):
    folder = make_folder(tmp_path, task, 20)
    speed = 1.0

    def measure(config, task, images, *, repeats, seed):
        return [(speed * config["N"] * config["W"], 3 * speed * config["N"] * config["W"])] * repeats

    monkeypatch.setattr(profile_module, "measure_config", measure)
    profile_folder(folder, task, visits=1, repeats=1)
    before, speed = read_visits(folder), factor
    if not is_refused:
        assert profile_folder(folder, task, visits=2, repeats=1) == 20
        return
    with pytest.raises(InvalidArgument, match=rf"12 configs take {factor:.2f} times as long as on earlier visits"):
        profile_folder(folder, task, visits=2, repeats=1)
    assert all(np.array_equal(column, before[name]) for name, column in read_visits(folder).items())
    assert profile_folder(folder, task, visits=1, repeats=1) == 0, "nothing to measure, nothing to compare"


def test_a_merge_waits_for_a_pass_that_saves(task, tmp_path, quick):
    one, two = _visited(task, tmp_path, n_configs=(2, 2), visits=1, repeats=1)
    with ThreadPoolExecutor(1) as pool:
        with RunsFolder(one).lock("profile"):
            merging = pool.submit(merge_visits, one, [read_visits(two)])
            with pytest.raises(TimeoutError):
                merging.result(timeout=0.2)
        merging.result()


def test_a_larger_network_takes_longer(task):
    images = load_images(task)
    config = sample_config(0) | {f"Op{i}": 2 for i in range(1, 7)}
    small = measure_config(config | {"N": 1, "W": 4, "Resolution": 0.25}, task, images[0.25], repeats=5)
    large = measure_config(config | {"N": 3, "W": 8, "Resolution": 0.5}, task, images[0.5], repeats=5)
    assert len(small) == len(large) == 5
    assert all(a > 3 * b for a, b in zip(np.min(large, axis=0), np.min(small, axis=0), strict=True))


def test_configs_are_measured_in_random_order_the_same_for_a_seed(task, tmp_path, quick):
    orders = []
    for number, seed in enumerate((0, 0, 1)):
        profile_folder(make_folder(tmp_path / str(number), task, 20), task, visits=2, repeats=1, seed=seed)
        orders.append(quick[:])
        quick.clear()
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    assert sorted(orders[0][:20]) == sorted(orders[0][20:])
    assert orders[0][:20] != orders[0][20:], "every visit has an order of its own"
    assert orders[0][:20] != config_table(0, 20)["LearningRate"].tolist()


def test_a_pass_that_was_stopped_goes_on_where_it_saved(task, tmp_path, quick, monkeypatch):
    folder, whole = make_folder(tmp_path, task, 60), quick
    measure = profile_module.measure_config

    def stop(*args, **options):
        if len(whole) == 110:
            raise KeyboardInterrupt
        return measure(*args, **options)

    monkeypatch.setattr(profile_module, "measure_config", stop)
    with pytest.raises(KeyboardInterrupt):
        profile_folder(folder, task, visits=2, repeats=1)
    before = read_visits(folder)
    assert len(before["config_id"]) == 100
    assert not (folder / "profile.parquet").exists(), "no config's latency rests on fewer visits than another's"
    monkeypatch.setattr(profile_module, "measure_config", measure)
    monkeypatch.setattr(profile_module, "_refuse_other_processor", lambda *_: None)  # here each time is another one
    assert profile_folder(folder, task, visits=2, repeats=1) == 20
    after = read_visits(folder)
    keys = {*zip(after["config_id"].tolist(), after["visit"].tolist(), strict=True)}
    assert len(keys) == len(after["config_id"]) == 120
    assert set(before["latency"].tolist()) <= set(after["latency"].tolist())
    assert set(whole[60:100]).isdisjoint(whole[110:]), "nothing that was saved is measured again"


def test_a_busy_machine_is_refused_before_anything_is_measured(folder, task, quick, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.9, 0.0, 0.0))
    with pytest.raises(InvalidArgument, match=r"busy \(load average 1\.90.*--allow-busy"):
        profile_folder(folder, task, repeats=1)
    assert quick == []
    assert not (folder / "profile_visits.parquet").exists()
    assert profile_folder(folder, task, repeats=1, allow_busy=True) == 5


def test_what_was_measured_while_the_machine_became_busy_is_thrown_away(task, tmp_path, quick, monkeypatch):
    folder = make_folder(tmp_path, task, 120)
    loads = iter((0.1, 1.05, 2.4))  # before, after the first block (the pass's own load is 1), after the second
    monkeypatch.setattr("os.getloadavg", lambda: (next(loads), 0.0, 0.0))
    with pytest.raises(InvalidArgument, match=r"busy \(load average 2\.40"):
        profile_folder(folder, task, repeats=1)
    assert len(read_visits(folder)["config_id"]) == 50


def test_another_protocol_and_no_folder_and_no_repeats_are_refused(folder, task, tmp_path):
    with pytest.raises(ProtocolMismatch, match="holds runs of protocol"):
        profile_folder(folder, dataclasses.replace(task, max_epoch=3))
    with pytest.raises(MissingData, match="is not a folder of runs"):
        profile_folder(tmp_path / "nowhere", task)
    with pytest.raises(InvalidArgument, match="visits=-1 must be 1 to 127\nrepeats=0 must be 1 to 127\nseed=-1 is not"):
        profile_folder(folder, task, visits=-1, repeats=0, seed=-1)
    assert not (folder / "profile.parquet").exists()


def test_more_visits_and_repeats_than_a_table_can_number_are_refused(folder, task, quick):
    with pytest.raises(InvalidArgument, match="visits=300 must be 1 to 127\nrepeats=128 must be 1 to 127"):
        profile_folder(folder, task, visits=300, repeats=128)
    assert quick == []
    profile_folder(folder, task, visits=1, repeats=127)
    assert sorted(set(read_visits(folder)["repeat"].tolist())) == list(range(127))


def test_the_command_says_how_many_it_measured_and_exits_2_on_mistakes(folder, task, quick, monkeypatch, capsys):
    monkeypatch.setitem(tasks.KNOWN, "shrunk", task)
    assert main(["--task", "shrunk", "--runs", str(folder), "--repeats", "1", "--allow-busy"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["configs_measured"], report["profile_of"]) == (5, processor_model())
    assert main(["--task", "digts", "--runs", str(folder)]) == 2
    assert main(["--task", "shrunk", "--runs", str(folder / "nowhere")]) == 2
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert first.startswith("pipeline.profile: task='digts' does not exist")
    assert second.startswith("pipeline.profile: ")
    assert "is not a folder of runs" in second


@pytest.mark.parametrize("number", ADVICE)
def test_a_profile_that_cannot_be_written_is_one_line(folder, task, quick, monkeypatch, capsys, number):
    monkeypatch.setitem(tasks.KNOWN, "shrunk", task)
    command = ["--task", "shrunk", "--runs", str(folder), "--repeats", "1", "--allow-busy"]
    fails_in_one_line_and_goes_on(main, command, folder, number, lambda: capsys.readouterr().err)
    assert len(read_profile(folder)["config_id"]) == 5
