"""Studies as they are run: in processes that are killed, continued, extended, and on a cluster."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from experiments.folder import read_folder
from experiments.run import main
from jahs.errors import CorruptFile, UnknownFormat
from jahs.simulate import read_log
from tests.dask_cluster import DaskCluster
from tests.experiments.conftest import run_study
from tests.jahs.simulate.full_disk import full_disk

ROOT = Path(__file__).resolve().parents[2]
ARM = "random_search-jahs"


def run(out, release, *more, study="joint", arms=ARM, seeds=2):
    return run_study(study, out, release, *more, arms=[arms], seeds=seeds)


def logs(out):
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*.jsonl"))}


@pytest.fixture(scope="module")
def reference(release, tmp_path_factory):
    """Four seeds of one arm, run without any trouble in one process."""
    out = tmp_path_factory.mktemp("study") / "joint"
    assert run(out, release, seeds=4) == 0
    return out


def test_a_run_leaves_one_whole_log_for_each_repetition(reference, release, bench):
    contents = logs(reference)
    assert list(contents) == [f"fashion_mnist_mini/{ARM}/seed-{seed:04d}.jsonl" for seed in range(4)]
    assert len(set(contents.values())) == 4
    folder = read_folder(reference)
    facts = folder.tasks["fashion_mnist_mini"]
    log = read_log(reference / next(iter(contents)))
    assert log.ending["ended"] == "budget"
    assert log.header["release"] == facts.release
    assert log.header["arm"] == ARM
    assert log.header["budget"] == facts.budget_s == 100 * facts.mean_runtime_s
    sizes = {(trial.config["N"], trial.config["W"], trial.config["Resolution"]) for trial in log.trials}
    assert sizes == {(5, 16, 1.0)}
    mean = bench.query_many(
        bench.space.fix({"N": 5, "W": 16, "Resolution": 1.0}).sample_columns(10_000, seed=0), metrics=("runtime",)
    )
    assert facts.mean_runtime_s == pytest.approx(mean["runtime"].mean())


def test_finished_repetitions_are_skipped_and_seeds_and_arms_may_be_added(reference, release, tmp_path, capsys):
    out = tmp_path / "joint"
    assert run(out, release, seeds=1) == 0
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*.jsonl")}
    assert run(out, release, seeds=3) == 0
    assert run(out, release, arms="random_search-nas_default", seeds=1) == 0
    counts = list(map(int, re.findall(r'"repetitions_run": (\d+)', capsys.readouterr().out)))
    assert counts == [1, 2, 1]
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert read_folder(out).n_seeds == 3
    assert read_folder(out).arms == (ARM, "random_search-nas_default")
    expected = {name: log for name, log in logs(reference).items() if "0003" not in name}
    assert {name: log for name, log in logs(out).items() if ARM in name} == expected


@pytest.fixture(autouse=True)
def what_is_started_hears_ctrl_c():
    """A shell makes its background jobs deaf to it, and with them what they start."""
    deaf = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, deaf)


def start(out, release, *more):
    arguments = ["--arms", ARM, "--release", release, "--out", out, *more]
    command = [sys.executable, "-m", "experiments.run", "joint", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)


def is_alive(pid):
    """A killed process that nobody has waited for is a zombie."""
    try:
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False


def wait_for(condition, *, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.mark.slow
def test_what_was_killed_goes_on_where_it_was_and_ends_the_same(reference, release, tmp_path):
    out = tmp_path / "joint"
    running = start(out, release, "--seeds", 2000, "--workers", 2)
    try:
        wait_for(lambda: len(logs(out)) >= 2)
        processes = [running.pid, *(each.pid for each in psutil.Process(running.pid).children(recursive=True))]
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    wait_for(lambda: not any(map(is_alive, processes)))
    part = out / "fashion_mnist_mini" / ARM / f".seed-0003.jsonl.{running.pid}.part"
    part.write_text("cut")
    assert run(out, release, seeds=4) == 0
    assert not part.exists()
    assert not list(out.rglob(".*.part"))
    contents = logs(out)
    assert {name: contents[name] for name in logs(reference)} == logs(reference)


@pytest.mark.slow
def test_ctrl_c_stops_cleanly(release, tmp_path):
    out = tmp_path / "joint"
    running = start(out, release, "--seeds", 2000, "--workers", 1)
    try:
        wait_for(lambda: len(logs(out)) >= 1)
        os.killpg(running.pid, signal.SIGINT)
        _, text = running.communicate(timeout=60)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
    assert running.returncode == 130, text
    assert "every finished repetition is kept" in text
    assert "Traceback" not in text


@pytest.mark.slow
def test_a_cluster_writes_the_same(reference, release, tmp_path):
    with DaskCluster() as cluster:
        cluster.start_scheduler()
        cluster.start_worker()
        arguments = ("--backend", "dask", "--scheduler", cluster.address)
        assert run(tmp_path / "joint", release, *arguments, seeds=4) == 0
    assert logs(tmp_path / "joint") == logs(reference)


def test_a_study_without_its_scheduler_ends_with_one_line_within_ten_seconds(release, tmp_path, capsys, monkeypatch):
    from workshop import cluster  # Dask takes half a second to import

    waits_s = cluster._CONNECT_S
    monkeypatch.setattr(cluster, "_CONNECT_S", 1)  # its own test waits as long as a command does
    address = "tcp://127.0.0.1:9"
    started = time.monotonic()
    assert run(tmp_path / "joint", release, "--backend", "dask", "--scheduler", address) != 0
    assert time.monotonic() - started - 1 + waits_s < 10
    (line,) = capsys.readouterr().err.splitlines()
    assert f"no Dask scheduler answers at {address}" in line


def test_progress_is_one_line_for_each_repetition(release, tmp_path, caplog):
    caplog.set_level("INFO")
    run(tmp_path / "joint", release, seeds=2)
    lines = [line for line in caplog.messages if line.startswith(("1/2", "2/2"))]
    assert len(lines) == 2
    assert f"joint fashion_mnist_mini/{ARM}/seed-0000 trials=" in lines[0]


def test_an_optimiser_that_fails_costs_its_own_cell_alone(release, tmp_path, caplog, monkeypatch):
    import experiments.repetitions

    class Broken:
        name = "broken"

        def ask(self, n):
            raise ValueError("lost")

        def tell(self, trial):
            pass

    make = experiments.repetitions.make

    def break_one(name, view, *, seed, **more):
        return Broken() if seed == 1 else make(name, view, seed=seed, **more)

    monkeypatch.setattr(experiments.repetitions, "make", break_one)
    out = tmp_path / "joint"
    assert run(out, release, seeds=3) == 2
    assert "1 of 3 repetitions failed" in caplog.text
    assert "lost" in caplog.text
    assert [name[-9:-6] for name in logs(out)] == ["000", "002"]
    assert not list(out.rglob(".*.part"))
    monkeypatch.undo()
    assert run(out, release, seeds=3) == 0
    assert len(logs(out)) == 3


def test_a_full_disk_costs_the_cell_that_it_cut_and_no_other(reference, release, tmp_path, caplog):
    out = tmp_path / "joint"
    assert run(out, release, seeds=1) == 0
    with full_disk(len((out / "study.json").read_bytes()) + 1000):
        assert run(out, release, seeds=2) == 2
    assert "1 of 1 repetitions failed" in caplog.text
    assert "could not be written: the disk is full" in caplog.text
    assert [name[-9:-6] for name in logs(out)] == ["000"]
    assert not list(out.rglob(".*.part"))
    assert run(out, release, seeds=4) == 0
    assert logs(out) == logs(reference)


def test_every_command_that_ran_repetitions_is_kept(release, tmp_path, monkeypatch):
    out = tmp_path / "joint"
    for commit, seeds in (("a", 1), ("a", 1), ("b", 1), ("b", 2), ("c", 2)):
        monkeypatch.setattr("experiments.folder.commit", lambda commit=commit: commit)
        assert run(out, release, seeds=seeds) == 0
    made = read_folder(out).made_with
    assert [(entry["commit"], entry["command"].split("--seeds ")[1][0]) for entry in made] == [("a", "1"), ("b", "2")]
    assert all(entry["versions"]["numpy"] for entry in made)


def test_what_a_kill_left_of_the_first_file_is_in_nobodys_way(reference, release, tmp_path):
    out = tmp_path / "joint"
    out.mkdir()
    (out / ".study.json.999999999.part").write_text("{")
    assert run(out, release, seeds=4) == 0
    assert logs(out) == logs(reference)
    assert not list(out.rglob(".*.part"))


def without(content, *path):
    for key in path[:-1]:
        content = content[key]
    del content[path[-1]]


@pytest.mark.parametrize(
    "spoil",
    [
        *(lambda content, key=key: without(content, key) for key in ("format", "study", "tasks", "arms", "made_with")),
        *(lambda content, key=key: without(content, "study", key) for key in ("name", "tasks", "arms", "combinations")),
        *(lambda content, key=key: without(content, "study", "arms", 0, key) for key in ("name", "view", "settings")),
        lambda content: content["study"].update(colour="red"),
        lambda content: content["study"]["arms"][0].update(colour="red"),
        lambda content: content["study"]["arms"][0]["view"].update(colour="red"),
        lambda content: content["study"]["arms"].append(content["study"]["arms"][0]),
        lambda content: content["study"]["arms"].append("an arm"),
        lambda content: content["tasks"]["fashion_mnist_mini"].update(colour="red"),
        lambda content: content.update(study=[]),
        lambda content: content.update(tasks=[]),
        lambda content: content.update(arms=["nobody"]),
        lambda content: content.update(n_seeds="3"),
        lambda content: content.update(made_with=[]),
        lambda content: content.update(made_with=["a command"]),
    ],
)
def test_a_declaration_that_is_not_one_is_named(reference, release, tmp_path, caplog, spoil):
    out = tmp_path / "joint"
    out.mkdir()
    content = json.loads((reference / "study.json").read_text())
    spoil(content)
    (out / "study.json").write_text(json.dumps(content))
    with pytest.raises(CorruptFile, match=r"joint/study\.json cannot be read"):
        read_folder(out)
    assert run(out, release) == 2
    assert "study.json cannot be read" in caplog.text


def test_a_study_of_another_format_is_refused(reference, tmp_path):
    content = json.loads((reference / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps({**content, "format": 3}))
    with pytest.raises(UnknownFormat, match="format 3; this version reads 2"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["joints"], "did you mean 'joint'"),
        (["joint", "--seeds", "0"], "seeds=0 must be at least 1"),
        (["joint", "--workers", "0"], "workers=0 is not at least 1"),
        (["joint", "--backend", "dask"], "needs the address of a scheduler"),
        (["joint", "--arms", "random_search-jah"], "did you mean 'random_search-jahs'"),
        (
            ["joint", "--arms", "random*", "--family", "model-based"],
            "no arm of joint is model-based and matches random*; its arms are random_search-jahs (model-free), ",
        ),
        (["truth", "--noise", "mean"], "truth compares single trainings, and most configs have one"),
        (
            ["long", "--family", "model-based"],
            "no arm of long is model-based; its arms are random_search (model-f",
        ),
        (["joint", "--family", "model-free", "--task", "cifar"], "did you mean 'cifar10'"),
        (["joint", "--family", "model-free", "--release", "nowhere"], "nowhere is not a release"),
    ],
    ids=["study", "seeds", "workers", "dask", "arms", "family", "means", "family alone", "task", "release"],
)
def test_bad_input_is_one_clear_message_and_writes_nothing(tmp_path, caplog, arguments, message):
    out = tmp_path / "out"
    assert main([*arguments, "--out", str(out)]) == 2
    assert message in caplog.text
    assert not out.exists()


def test_a_study_with_noise_wants_a_release_with_noise(bench, release, tmp_path, caplog):
    plain = release.parent / "plain"
    assert run(tmp_path / "out", plain, study="baselines", arms="random_search") == 2
    assert "draws training noise" in caplog.text


def test_a_folder_of_another_study_or_release_is_refused(reference, release, tmp_path, caplog):
    out = tmp_path / "joint"
    shutil.copytree(reference, out)
    before = logs(out)
    assert run(out, release, study="fidelity", arms="random_search") == 2
    assert "it has the study 'joint', not 'fidelity'" in caplog.text
    assert run(out, release.parent / "plain", "--noise", "mean") == 2
    assert "its repetitions used release" in caplog.text
    assert logs(out) == before
    other = tmp_path / "notes"
    other.mkdir()
    (other / "a.txt").write_text("mine")
    assert run(other, release) == 2
    assert "must be new or the folder of a study" in caplog.text


def test_noise_is_a_draw_for_each_seed_and_the_mean_is_not(release, bench, tmp_path):
    out = tmp_path / "baselines"
    assert run(out, release, study="baselines", arms="random_search", seeds=2) == 0
    for seed in (0, 1):
        trial = read_log(out / f"fashion_mnist_mini/random_search/seed-{seed:04d}.jsonl").trials[0]
        assert trial.seed == seed
        answer = bench.query(trial.config, seed=seed)
        assert trial.metrics["valid_acc"] == answer.valid_acc != bench.query(trial.config).valid_acc


def test_the_list_of_studies_names_every_arm(capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert "joint: How much sooner" in listed
    assert "    random_search-hpo_random  [model-free]" in listed


def test_workers_share_the_time_of_an_arm(release, tmp_path):
    out = tmp_path / "workers"
    assert run(out, release, study="workers", arms="random_search-*", seeds=1) == 0
    budget = read_folder(out).tasks["fashion_mnist_mini"].budget_s
    for workers in (1, 16):
        log = read_log(out / "fashion_mnist_mini" / f"random_search-workers-{workers}" / "seed-0000.jsonl")
        assert log.header["workers"] == workers
        assert log.header["budget"] == budget / workers
        assert {trial.worker for trial in log.trials} == set(range(workers))
