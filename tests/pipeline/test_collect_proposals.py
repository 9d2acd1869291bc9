"""Listed configs are trained beside the numbered ones, once per seed, whoever lists them and whatever dies."""

import json
import os
import shutil
import signal

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, MissingDependency
from jahs.files.runs import read_configs, read_profile, read_runs, run_shards
from jahs.files.tables import read_table, write_table
from jahs.schema import CONFIG_COLUMNS, CONFIG_TABLE_COLUMNS
from pipeline.collect import CollectSettings, collect, main
from pipeline.inspect_runs import merge, retrain, status
from pipeline.profile import profile_folder
from pipeline.protocol import trained_task
from pipeline.proxies import proxy_folder
from pipeline.runs import RunsFolder
from pipeline.sampling import config_table, sample_config
from pipeline.verify import verify
from tests.pipeline.test_collect import TASK, arguments, n_shards, nothing_goes_on_after_a_test, start, wait_for
from workshop.jobs import Where
from workshop.measured import last_rows, read_proxies

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
__all__ = ["nothing_goes_on_after_a_test"]  # pytest takes it from here

LISTED = [{**config, "N": 1, "W": 4, "Resolution": 0.25} for config in jahs.space().sample(3, seed=7)]


def write_list(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def settings(out, configs, source, **more):
    return CollectSettings(task=TASK, out=out, workers=1, configs=configs, source=source, **more)


def recorded(out):
    last = last_rows(read_runs(out))
    return sorted(zip(last["config_id"].tolist(), last["seed"].tolist(), strict=True))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """One numbered run, and three of two listed configs."""
    folder = tmp_path_factory.mktemp("mixed")
    collect(CollectSettings(task=TASK, out=folder / "runs", workers=1, runs=1))
    first = {"config": LISTED[0], "seeds": [0, 1], "round": 2, "release": "0123456789abcdef"}
    path = write_list(folder / "list", first, LISTED[1])
    assert collect(settings(folder / "runs", path, "best")) == 3
    return folder / "runs"


def test_listed_configs_are_recorded_with_where_they_come_from(mixed):
    configs = read_configs(mixed)
    assert configs["config_index"].tolist() == [*range(270), -1, -1]
    of = {i: row for row, i in enumerate(configs["config_id"].tolist())}
    rows = [of[jahs.config_id(config)] for config in LISTED[:2]]
    assert configs["source"][rows].tolist() == ["best", "best"]
    assert configs["round"][rows].tolist() == [2, 0]
    assert configs["release"][rows].tolist() == ["0123456789abcdef", ""]
    assert {*configs["source"][:270].tolist()} == {"uniform"}
    names = {path.stem for path in run_shards(mixed)}
    a, b = (f"{jahs.config_id(config):016x}" for config in LISTED[:2])
    assert names == {"0000000-0", f"{a}-0", f"{a}-1", f"{b}-0"}
    assert verify(mixed) == []


def test_status_counts_each_source(mixed, capsys):
    facts = status(mixed)
    assert facts["per_source"] == {"uniform": {"n_configs": 1, "n_runs": 1}, "best": {"n_configs": 2, "n_runs": 3}}
    last = last_rows(read_runs(mixed))
    [uniform_s] = last["runtime"][last["config_id"] == read_configs(mixed)["config_id"][0]].tolist()
    assert facts["core_hours_left"] == pytest.approx(uniform_s * (2400 - 1) / 3600)
    assert facts["mean_core_seconds"] == {"cpu": pytest.approx(last["runtime"].mean())}
    assert main(["status", str(mixed)]) == 0
    assert json.loads(capsys.readouterr().out)["per_source"] == facts["per_source"]


def test_a_status_without_uniform_runs_estimates_nothing(mixed, tmp_path):
    folder = shutil.copytree(mixed, tmp_path / "runs")
    (folder / "index.json").unlink()
    (folder / "new" / "0000000-0.parquet").unlink()
    facts = status(folder)
    assert facts["core_hours_left"] is None
    assert facts["mean_core_seconds"]["cpu"] > 0


def test_a_config_that_is_proposed_again_or_in_the_stream_is_trained_once_per_seed(mixed, tmp_path):
    out = shutil.copytree(mixed, tmp_path / "runs")
    before = recorded(out)
    again = {"config": LISTED[0], "seeds": [1, 2], "round": 9}
    path = write_list(tmp_path / "list", again, sample_config(0), sample_config(7), LISTED[1])
    assert collect(settings(out, path, "disagreement")) == 2
    added = {*recorded(out)} - {*before}
    assert added == {(jahs.config_id(LISTED[0]), 2), (jahs.config_id(sample_config(7)), 0)}
    assert collect(settings(out, path, "disagreement")) == 0
    configs = read_configs(out)
    assert {*configs["source"].tolist()} == {"uniform", "best"}, "what a config was first trained for stays"
    assert {*configs["round"].tolist()} == {0, 2}
    assert (out / "new" / "0000007-0.parquet").exists()
    assert verify(out) == []


def test_a_config_gets_its_number_when_the_stream_reaches_it(tmp_path):
    out = tmp_path / "runs"
    path = write_list(tmp_path / "list", sample_config(1))
    assert collect(settings(out, path, "poor")) == 1
    assert read_configs(out)["config_index"].tolist() == [-1]
    assert collect(CollectSettings(task=TASK, out=out, workers=1, runs=4)) == 4
    configs = read_configs(out)
    assert configs["config_index"].tolist() == list(range(270))
    assert configs["source"].tolist() == ["uniform", "poor", *["uniform"] * 268]
    assert len(recorded(out)) == len({*recorded(out)}) == 5
    assert verify(out) == []
    folder = RunsFolder(out)
    run = {name: values[:3] for name, values in read_table(run_shards(out)[0], {"config_id": "uint64"}).items()}
    hexed = f"{jahs.config_id(sample_config(0)):016x}"
    assert not folder.write_run(hexed, 0, run), "it is recorded by its number"


def test_merging_compacting_profiling_and_scoring_take_every_source(mixed, tmp_path, capsys):
    out = tmp_path / "runs"
    collect(CollectSettings(task=TASK, out=out, workers=1, runs=2))
    merge(out, [mixed])
    assert verify(out) == []
    assert {*recorded(mixed)} <= {*recorded(out)}
    kept, theirs = read_configs(out), read_configs(mixed)
    assert all(np.array_equal(kept[name], theirs[name]) for name in CONFIG_TABLE_COLUMNS)
    assert len(run_shards(out)) == 1
    lines, faults = retrain(out, 5)
    assert faults == []
    assert any(f"{jahs.config_id(LISTED[1]):016x} seed 0" in line for line in lines)
    trained = np.isin(kept["config_id"], read_runs(out)["config_id"])
    RunsFolder(out).commit("configs.parquet", {n: v[trained] for n, v in kept.items()}, CONFIG_TABLE_COLUMNS)
    assert profile_folder(out, trained_task(TASK), visits=1, repeats=1, allow_busy=True) == 3
    assert proxy_folder(out, trained_task(TASK), where=Where(workers=1)) == 3
    for table in (read_profile(out), read_proxies(out)):
        assert {*table["config_id"].tolist()} == {i for i, _ in recorded(out)}
    assert verify(out) == []


def test_a_folder_without_sources_is_of_the_stream_and_goes_on(mixed, tmp_path):
    out = shutil.copytree(mixed, tmp_path / "runs")
    (out / "index.json").unlink()
    write_table(out / "configs.parquet", config_table(0, 270), CONFIG_COLUMNS)
    for shard in run_shards(out)[1:]:
        shard.unlink()
    configs = read_configs(out)
    assert {*configs["source"].tolist()} == {"uniform"}
    assert {*configs["round"].tolist()} == {0}
    assert {*configs["release"].tolist()} == {""}
    assert collect(settings(out, write_list(tmp_path / "list", LISTED[2]), "live")) == 1
    assert read_configs(out)["source"].tolist() == [*["uniform"] * 270, "live"]
    assert verify(out) == []


def test_an_unknown_source_in_a_folder_is_found(mixed, tmp_path):
    out = shutil.copytree(mixed, tmp_path / "runs")
    table = read_configs(out)
    strange = {**table, "source": np.where(table["config_index"] < 0, "elsewhere", table["source"])}
    RunsFolder(out).commit("configs.parquet", strange, CONFIG_TABLE_COLUMNS)
    assert any("configs.parquet: source elsewhere is not one of uniform, full, best" in fault for fault in verify(out))


def test_a_list_survives_kill_9(tmp_path):
    out = tmp_path / "runs"
    lines = [{"config": config, "seeds": [0, 1]} for config in LISTED]
    more = ["--configs", write_list(tmp_path / "list", *lines), "--source", "seeds"]
    for n_finished, n_workers in ((1, 2), (3, 1)):
        running = start(out, "--workers", n_workers, *more)
        wait_for(lambda n=n_finished: n_shards(out) >= n)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    assert main(arguments(out, "--workers", 1, *more)) == 0
    assert recorded(out) == sorted((jahs.config_id(config), seed) for config in LISTED for seed in (0, 1))
    assert verify(out) == []
    assert not list(out.rglob(".*.part"))


def test_an_unknown_backend_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="backend='slurm' must be loky, for this machine, or dask, for a cluster"):
        CollectSettings(task=TASK, out=tmp_path / "runs", backend="slurm").check()


def test_a_machine_that_only_submits_needs_no_compiler(tmp_path, monkeypatch):
    def no_compiler(batch):
        raise MissingDependency("no C compiler")

    monkeypatch.setattr("pipeline.collect.load_library", no_compiler)
    native = {"task": "cifar10_mini", "out": tmp_path / "runs", "device": "native"}
    assert CollectSettings(**native, backend="dask", scheduler="tcp://host:1").check().name == "cifar10_mini"
    with pytest.raises(MissingDependency):
        CollectSettings(**native).check()


@pytest.mark.parametrize(
    ("lines", "given", "message"),
    [
        ([LISTED[0], {"N": 4}], ["--source", "best"], "line 2: "),
        ([{"config": LISTED[0], "protocol": "0" * 16}], ["--source", "best"], "for another protocol than"),
        ([LISTED[0]], [], "a list of configs needs its source, and a source its list"),
        ([LISTED[0]], ["--source", "best", "--pairs", "3"], "pairs is for numbered configs"),
    ],
)
def test_a_bad_list_is_one_clear_message_and_writes_nothing(tmp_path, caplog, lines, given, message):
    out = tmp_path / "runs"
    path = write_list(tmp_path / "list", *lines)
    assert main(["--task", "digits", "--out", str(out), "--configs", str(path), *given]) == 2
    assert message in caplog.text
    assert not out.exists()
