"""The collector as it is used: in processes that are killed, on full disks, two at a time, and on a Dask cluster."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pipeline.collect
from jahs.errors import InvalidArgument
from jahs.files.runs import read_configs, read_runs, run_shards
from jahs.spaces.configs import config_id
from jahs.tasks.definitions import TASKS
from pipeline.collect import CollectSettings, collect, main
from pipeline.sampling import run_seeds, sample_config
from pipeline.verify import verify
from tests.dask_cluster import DaskCluster
from tests.pipeline.light_collector import COMMAND
from tests.pipeline.unwritable import ADVICE, unwritable

ROOT = Path(__file__).resolve().parents[2]
TASK = str(Path(__file__).with_name("digits_short.json"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def arguments(out, *more):
    return ["--task", TASK, "--out", str(out), *map(str, more)]


STARTED: list[subprocess.Popen[str]] = []


def start(out, *more):
    """Start a collector whose processes load no torch."""
    running = subprocess.Popen(
        [*COMMAND, *arguments(out, *more)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    STARTED.append(running)
    return running


@pytest.fixture(autouse=True)
def nothing_goes_on_after_a_test():
    # A shell makes its background jobs deaf to Ctrl-C, and with them what they start.
    deaf = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, deaf)
    for running in STARTED:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    STARTED.clear()


def stream():
    """Yield the number and the seed of each run, in order."""
    return ((number, seed) for number in itertools.count() for seed in run_seeds(number))


def expected(n_runs):
    """The first `n_runs` (config_id, seed) in order."""
    return {(config_id(sample_config(number)), seed) for number, seed in itertools.islice(stream(), n_runs)}


def recorded(out):
    runs = read_runs(out)
    assert verify(out) == []
    pairs = {*zip(runs["config_id"].tolist(), runs["seed"].tolist(), strict=True)}
    assert len(runs["epoch"]) == sum(len(set(runs["epoch"][rows_of(runs, pair)])) for pair in pairs)
    return pairs


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of its own, of 80 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", disk]
    if (mounted := subprocess.run(mount, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


def the_error(caplog):
    """Return the one error that was logged, a line, and forget it."""
    [said] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "\n" not in said
    caplog.clear()
    return said


def fill(ballast):
    """Write until the disk is full."""
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


def rows_of(runs, pair):
    return (runs["config_id"] == pair[0]) & (runs["seed"] == pair[1])


def wait_for(condition, *, seconds=150):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def n_shards(out):
    return len(list((out / "new").glob("*.parquet")))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Seven runs, collected without any trouble in one process that loads no torch."""
    out = tmp_path_factory.mktemp("reference") / "runs"
    subprocess.run([*COMMAND, *arguments(out, "--runs", 7, "--workers", 1)], cwd=ROOT, check=True)
    return out


def first_of(reference, out, n_runs):
    """Copy the first runs of the reference, as if it had been stopped after them; return the copy."""
    shutil.copytree(reference, out)
    for named, seed in itertools.islice(stream(), n_runs, 7):
        (out / "new" / f"{named:07d}-{seed}.parquet").unlink()
    assert recorded(out) == expected(n_runs)
    return out


def same_measurements(one, other):
    one, other = read_runs(one), read_runs(other)
    return all(
        np.array_equal(one[name], other[name]) for name in ("config_id", "seed", "epoch", "valid_acc", "train_loss")
    )


def test_the_first_runs_are_those_of_the_stream_and_go_on_where_they_were(reference, tmp_path):
    assert recorded(reference) == expected(7)
    assert read_configs(reference)["config_index"].tolist() == list(range(270))
    out = shutil.copytree(reference, tmp_path / "runs")
    assert collect(CollectSettings(task=TASK, out=out, runs=2, workers=1)) == 2
    assert recorded(out) == expected(9)


def test_workers_measure_what_one_process_measures(tmp_path):
    """The trainings in both folders are equal to the last bit."""
    assert collect(CollectSettings(task=TASK, out=tmp_path / "one", runs=2, workers=1)) == 2
    command = [sys.executable, "-m", "pipeline.collect", *arguments(tmp_path / "other", "--runs", 2, "--workers", 2)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert recorded(tmp_path / "other") == recorded(tmp_path / "one") == expected(2)
    assert same_measurements(tmp_path / "one", tmp_path / "other")


def test_workers_record_what_one_process_records_after_kills_of_the_collector_and_of_a_worker(tmp_path, reference):
    """Killing a worker loses only the run that it was training, and exactly the requested runs are recorded."""
    out = tmp_path / "runs"
    running = start(out, "--workers", 2, "--runs", 7)
    wait_for(lambda: n_shards(out) >= 1)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    n_before = n_shards(out)
    assert n_before < 6
    running = start(out, "--workers", 2, "--runs", 7 - n_before)
    wait_for(lambda: n_shards(out) > n_before)
    os.kill(worker_of(running.pid), signal.SIGKILL)
    _, log = running.communicate(timeout=300)
    assert running.returncode == 0, log
    assert recorded(out) == expected(7)
    assert same_measurements(out, reference)


def test_torch_is_loaded_where_a_training_begins():
    """Loading it takes seconds; commands that only start jobs, check images or show a folder need none of it."""
    code = "import sys, pipeline.collect, pipeline.define, pipeline.inspect_runs; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_what_another_collector_has_is_not_counted(tmp_path, monkeypatch, reference):
    run_jobs = pipeline.collect.run_jobs
    out, other = tmp_path / "runs", first_of(reference, tmp_path / "other", 1)

    def after_the_others_run(call, jobs, *, where):
        first = list(itertools.islice(jobs, 1))
        shutil.copytree(other / "new", out / "new", dirs_exist_ok=True)
        yield from run_jobs(call, itertools.chain(first, jobs), where=where)

    monkeypatch.setattr(pipeline.collect, "run_jobs", after_the_others_run)
    assert collect(CollectSettings(task=TASK, out=out, runs=2, workers=1)) == 2
    assert recorded(out) == expected(3)


def test_a_run_whose_worker_was_lost_with_the_line_about_it_counts(tmp_path, monkeypatch):
    """Its job is done again, and must not be collected on top of what was asked for."""
    run_jobs = pipeline.collect.run_jobs

    def lose_the_first_line(call, jobs, *, where):
        first = next(jobs)
        assert call(first) is not None
        yield from run_jobs(call, itertools.chain([first], jobs), where=where)

    monkeypatch.setattr(pipeline.collect, "run_jobs", lose_the_first_line)
    out = tmp_path / "runs"
    assert collect(CollectSettings(task=TASK, out=out, runs=3, workers=1)) == 3
    assert recorded(out) == expected(3)


def worker_of(pid):
    """A process below `pid` that trains: it uses the most memory."""
    import psutil

    children = psutil.Process(pid).children(recursive=True)
    return max(children, key=lambda child: child.memory_info().rss).pid


def test_two_collectors_share_a_folder(tmp_path):
    out = tmp_path / "runs"
    both = [start(out, "--workers", 1, "--runs", 3) for _ in range(2)]
    for running in both:
        _, log = running.communicate(timeout=300)
        assert running.returncode == 0, log
    assert recorded(out) == expected(6), "each counts its own"


@pytest.mark.parametrize("way", ["ctrl-c", "sigterm of the command alone"])
def test_it_is_stopped_cleanly(tmp_path, way):
    out = tmp_path / "runs"
    running = start(out, "--workers", 2)
    wait_for(lambda: n_shards(out) >= 1)
    if way == "ctrl-c":
        os.killpg(running.pid, signal.SIGINT)
    else:
        running.terminate()
    _, log = running.communicate(timeout=300)  # which waits for the pipes of the workers, too
    assert running.returncode == 130, log
    assert "every finished run is recorded" in log
    assert "Traceback" not in log
    assert recorded(out) <= expected(50)
    assert not list(out.rglob(".*.part"))


def test_a_shard_cut_short_is_trained_again(tmp_path, reference):
    out = first_of(reference, tmp_path / "runs", 3)
    shard = sorted((out / "new").iterdir())[1]
    shard.write_bytes(shard.read_bytes()[:100])
    assert collect(CollectSettings(task=TASK, out=out, runs=2, workers=1)) == 2
    assert {*zip(*(read_runs(out)[name].tolist() for name in ("config_id", "seed")), strict=True)} == expected(4)
    assert verify(out) == [f"damaged/{shard.name}: a damaged shard was set aside; look at it, then delete it"]


def test_a_full_disk_stops_the_collector_and_loses_nothing(small_disk):
    out = small_disk / "runs"
    running = start(out, "--workers", 1)
    wait_for(lambda: n_shards(out) >= 1)
    fill(small_disk / "ballast")
    _, log = running.communicate(timeout=300)
    assert running.returncode == 2, log
    assert "the disk is full" in log
    assert not list(out.rglob(".*.part"))
    n_before = n_shards(out)
    (small_disk / "ballast").unlink()
    assert main(arguments(out, "--runs", 1, "--workers", 1)) == 0
    assert recorded(out) == expected(n_before + 1)


@pytest.mark.parametrize("number", ADVICE)
@pytest.mark.parametrize("command_of", ["new", "there", "merge"])
def test_a_disk_that_cannot_be_written_is_one_line_that_says_what_to_do(
    tmp_path, monkeypatch, caplog, reference, number, command_of
):
    """Whichever file is the first that it cannot write."""
    out = tmp_path / "runs"
    if command_of != "new":
        shutil.copytree(reference, out)
        shutil.rmtree(out / ".locks")
    given = ["merge", str(out)] if command_of == "merge" else arguments(out, "--runs", 1, "--workers", 1)
    for refused in ("open", "mkdir"):
        with unwritable(tmp_path, number), monkeypatch.context() as patch:
            if refused == "mkdir":
                patch.setattr(Path, "mkdir", lambda path, *_, **__: path.open("w"))
            assert main(given) == 2
        said = the_error(caplog)
        assert ADVICE[number] in said or "cannot be made: " in said


def test_a_read_only_disk_is_one_line_that_says_what_to_do(small_disk, reference, caplog):
    shutil.copytree(reference, small_disk / "runs")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for given in (arguments(small_disk / "runs", "--runs", 1), arguments(small_disk / "new", "--runs", 1)):
        assert main(given) == 2
        assert "Read-only file system; " in the_error(caplog)
    assert main(["status", str(small_disk / "runs")]) == 0


def test_a_cluster_measures_the_same_and_survives_the_death_of_a_worker(tmp_path, reference):
    out = tmp_path / "runs"
    with DaskCluster() as cluster:
        cluster.start_scheduler()
        first, _ = (cluster.start_worker() for _ in range(2))
        running = start(out, "--runs", 4, "--backend", "dask", "--scheduler", cluster.address)
        wait_for(lambda: n_shards(out) >= 1)
        cluster.kill(first)
        _, log = running.communicate(timeout=300)
        assert running.returncode == 0, log
        assert recorded(out) == expected(4)
    assert same_measurements(out, first_of(reference, tmp_path / "plain", 4))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--task", "digit"], "did you mean 'digits'"),
        (["--task", "digits", "--minutes", "-1"], "minutes=-1.0 must be more than 0"),
        (["--task", "digits", "--runs", "0"], "runs=0 must be at least 1"),
        (["--task", "digits", "--start", "99999999999999999999"], "give 0 <= start < stop <= 2147483648"),
        (["--task", "digits", "--start", "5", "--stop", "5"], "start=5 and stop=5 select no configs"),
        (["--task", "digits", "--pairs", "-3"], "pairs=-3 must be at least 0"),
        (["--task", "digits", "--device", "gpu"], "device='gpu' must be cpu, native or cuda"),
        (["--task", "digits", "--backend", "dask"], "needs the address of a scheduler"),
        (["--task", "digits", "--configs", "l", "--source", "best", "--start", "1"], "leave them out with a list"),
        (["--task", "colorectal_histology", "--data-dir", "nowhere"], "no images in nowhere"),
    ],
)
def test_bad_input_is_one_clear_message_and_writes_nothing(tmp_path, caplog, given, message):
    out = tmp_path / "runs"
    assert main([*given, "--out", str(out)]) == 2
    assert message in caplog.text
    assert not out.exists()


def test_a_task_that_the_engine_cannot_train_is_refused_before_a_folder_is_made(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(pipeline.collect, "trained_task", lambda _: replace(TASKS["digits"], batch_size=50))
    assert main(["--task", "digits", "--device", "native", "--out", str(tmp_path / "runs")]) == 2
    assert "batch_size=50 is not a multiple of" in caplog.text
    assert not (tmp_path / "runs").exists()


def test_a_command_that_only_submits_needs_no_device_of_its_own(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    there = CollectSettings(task="digits", out=Path("runs"), device="cuda", backend="dask", scheduler="tcp://host:1")
    assert there.check().name == "digits"
    with pytest.raises(InvalidArgument, match="no CUDA device is available"):
        replace(there, backend="loky", scheduler=None).check()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, caplog):
    (tmp_path / "runs").write_text("a file")
    assert main(arguments(tmp_path / "runs", "--runs", 1)) == 2
    assert "cannot be made: File exists; choose another folder" in caplog.text


def test_a_folder_of_another_protocol_is_refused(tmp_path, caplog, reference):
    out = tmp_path / "runs"
    shutil.copytree(reference, out)
    (out / "index.json").unlink()  # as one of an earlier version
    recorded_protocol = out / "protocol.json"
    content = json.loads(recorded_protocol.read_text())
    recorded_protocol.write_text(json.dumps({**content, "digest": "0" * 16}))
    before = run_shards(out)
    assert main(arguments(out, "--runs", 1)) == 2
    assert "collect into another folder" in caplog.text
    assert run_shards(out) == before
