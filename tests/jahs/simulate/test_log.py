"""A log is readable and resumable wherever a killed process cut it."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jahs.errors import (
    CorruptFile,
    InvalidArgument,
    JahsError,
    OptimizerFailed,
    OutOfSpace,
    ProtocolMismatch,
    UnknownFormat,
)
from jahs.queries.views import View
from jahs.schema import TRIAL_KEYS
from jahs.simulate import Simulation, read_log, read_trials
from jahs.simulate.log import read_header
from tests.fake_benchmark import FakeBenchmark
from tests.jahs.simulate.chaos import Chaos
from tests.jahs.simulate.full_disk import full_disk

VIEW = View(FakeBenchmark(max_epoch=6))


def simulate(path, **changed):
    settings = {"workers": 3, "budget": 150.0, "failure_rate": 0.2, "seed": 5, **changed}
    return Simulation(VIEW, **settings, log=path).run(Chaos(VIEW, seed=1))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "whole.jsonl"
    simulate(path)
    return path.read_bytes()


def test_a_log_read_back_is_what_happened(tmp_path):
    trials = simulate(tmp_path / "log.jsonl")
    log = read_log(tmp_path / "log.jsonl")
    fields = [(t.trial, t.config, t.fidelity, t.seed, t.metrics, t.start, t.end, t.worker, t.status) for t in trials]
    assert [tuple(t.to_dict().values()) for t in log.trials] == fields
    assert read_trials(tmp_path / "log.jsonl") == log.trials
    assert log.ending == {"ended": "budget", "clock": 150.0, "n_trials": len(trials)}
    assert {t.status for t in log.trials} >= {"finished", "unfinished", "failed"}


def test_the_header_says_what_was_run(whole):
    header = json.loads(whole.splitlines()[0])
    assert header["format"] == 1
    assert header["task"] == "fashion_mnist_mini"
    assert (header["optimizer"], header["optimizer_settings"]) == ("chaos", {"seed": 1})
    assert (header["seed"], header["workers"], header["budget"]) == (5, 3, 150.0)
    assert len(header["view"]["searched"]) == 14
    assert header["view"]["fidelities"] == {"epoch": 6}


def test_every_line_has_the_keys_of_a_trial(whole):
    lines = [json.loads(line) for line in whole.splitlines()[1:-1]]
    assert lines
    assert all(tuple(line) == TRIAL_KEYS for line in lines)


def test_a_log_that_was_cut_anywhere_is_resumed_to_the_same_bytes(tmp_path, whole):
    cuts = sorted({0, 1, len(whole.splitlines()[0]) + 1, *range(0, len(whole), len(whole) // 11), len(whole) - 1})
    for cut in [*cuts, len(whole)]:
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(whole[:cut])
        simulate(path)
        assert path.read_bytes() == whole


SLOW_RUN = """
import sys, time
from tests.jahs.simulate.test_log import VIEW, Chaos, Simulation

class Slow(Chaos):
    def tell(self, trial):
        time.sleep(0.02)

Simulation(VIEW, workers=3, n_trials=200, log=sys.argv[1]).run(Slow(VIEW, seed=1))
"""


def test_a_run_that_was_killed_is_resumed_to_the_same_bytes(tmp_path):
    log, other = tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    process = subprocess.Popen([sys.executable, "-c", SLOW_RUN, str(log)], cwd=Path(__file__).parents[3])
    while process.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < 20):
        time.sleep(0.02)
    process.kill()
    process.wait()
    n_lines = log.read_bytes().count(b"\n")
    for path in (log, other):
        Simulation(VIEW, workers=3, n_trials=200, log=path).run(Chaos(VIEW, seed=1))
    assert 20 <= n_lines < 200
    assert log.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("place", ["in the header", "in a line", "in the last line", "behind a line"])
def test_a_full_disk_ends_the_run_and_its_log_is_resumed_to_the_same_bytes(tmp_path, whole, place):
    last = whole.rindex(b"\n", 0, -1) + 1
    n_bytes = {"in the header": 50, "in a line": last - 60, "in the last line": last + 5, "behind a line": last}[place]
    path = tmp_path / "log.jsonl"
    error, said = (InvalidArgument, "") if place == "behind a line" else (OutOfSpace, ".* written: the disk is full")
    with full_disk(n_bytes), pytest.raises(error, match=rf"log\.jsonl{said}"):
        simulate(path)
    assert path.read_bytes() == whole[:n_bytes]
    simulate(path)
    assert path.read_bytes() == whole


def drive(simulation, configs):
    """Submit the configs one by one, continue after errors, and return the types of the errors."""
    raised = []
    for config in configs:
        try:
            simulation.submit(config)
            simulation.wait()
        except JahsError as err:  # noqa: PERF203
            raised.append(type(err))
    return raised


def test_a_log_that_was_refused_is_not_written_by_whoever_drives_on(tmp_path):
    path, configs = tmp_path / "log.jsonl", VIEW.sample(4, seed=0)
    with Simulation(VIEW, 1, n_trials=5, log=path) as first:
        assert drive(first, configs[:3]) == []
    before = path.read_bytes()
    other = Simulation(VIEW, 1, n_trials=5, log=path)
    assert drive(other, [*configs[:2], configs[3], configs[2]]) == [ProtocolMismatch, OptimizerFailed]
    assert path.read_bytes() == before
    assert other.wait() == []


@pytest.mark.parametrize("n_bytes", [10, 0])
def test_after_a_full_disk_nothing_more_is_taken_from_whoever_drives(tmp_path, n_bytes):
    path, configs = tmp_path / "log.jsonl", VIEW.sample(4, seed=0)
    driven = Simulation(VIEW, 1, n_trials=4, log=path)
    drive(driven, configs[:1])
    n_bytes += path.stat().st_size
    with full_disk(n_bytes):
        first, *others = drive(driven, configs[1:])
    assert issubclass(first, OutOfSpace | InvalidArgument)
    assert others == [OptimizerFailed, OptimizerFailed]
    assert path.stat().st_size == n_bytes
    assert driven.ended is None


def test_a_driven_run_whose_last_line_failed_is_resumed(tmp_path):
    def driven(path):
        simulation = Simulation(VIEW, 1, n_trials=1, log=path)
        drive(simulation, VIEW.sample(1, seed=0))
        return simulation

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    driven(whole).wait()
    first = driven(cut)
    with full_disk(cut.stat().st_size + 5), pytest.raises(OutOfSpace):
        first.wait()
    assert driven(cut).wait() == []
    assert cut.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, OutOfSpace), (errno.EDQUOT, OutOfSpace), (errno.EIO, InvalidArgument)]
)
def test_a_log_that_cannot_be_made_durable_is_named(tmp_path, monkeypatch, number, error):
    def fail(handle):
        raise OSError(number, "no")

    monkeypatch.setattr("jahs.simulate.log.os.fsync", fail)
    with pytest.raises(error, match=r"log\.jsonl (could not|cannot) be written"):
        simulate(tmp_path / "log.jsonl")


@pytest.mark.parametrize(
    "content",
    [b'{"a": 1}', b"notes", b"\0", b'{"format":1,"task":"oth', b'{"format":1,"task":"other"}', b'{"format":2', b" "],
)
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_file_that_is_not_this_log_is_refused_and_stays_as_it_is(tmp_path, content, end):
    path = tmp_path / "notes.json"
    path.write_bytes(content + end)
    with pytest.raises(JahsError, match=r"notes\.json(, line 1 is not| is the log of another run|: a trial log of)"):
        simulate(path)
    assert path.read_bytes() == content + end


def test_a_cut_line_is_not_read(tmp_path, whole):
    path = tmp_path / "log.jsonl"
    n_lines = 4
    end = len(b"".join(whole.splitlines(keepends=True)[:n_lines]))
    path.write_bytes(whole[: end + 30])
    log = read_log(path)
    assert len(log.trials) == n_lines - 1
    assert log.ending is None


def test_a_log_of_other_settings_is_not_resumed_and_stays_as_it_is(tmp_path, whole):
    path = tmp_path / "log.jsonl"
    path.write_bytes(whole[:2000])
    with pytest.raises(ProtocolMismatch, match=r"another run.*\nbudget: the log says 150.0, this run 500.0"):
        simulate(path, budget=500.0)
    assert path.read_bytes() == whole[:2000]


def test_facts_in_another_order_are_of_the_same_run(tmp_path):
    path = tmp_path / "log.jsonl"
    trials = simulate(path, facts={"a": 1, "b": {"c": 2, "d": 3}})
    written = path.read_bytes()
    path.write_bytes(b"".join(written.splitlines(keepends=True)[:5]))
    assert simulate(path, facts={"b": {"d": 3, "c": 2}, "a": 1}) == trials
    assert path.read_bytes() == written


def test_an_optimiser_that_does_otherwise_is_not_resumed(tmp_path, whole):
    path = tmp_path / "log.jsonl"
    path.write_bytes(whole)
    other = Chaos(VIEW, seed=2)
    other.settings = {"seed": 1}
    with pytest.raises(ProtocolMismatch, match="cannot be resumed"):
        Simulation(VIEW, workers=3, budget=150.0, failure_rate=0.2, seed=5, log=path).run(other)
    assert path.read_bytes() == whole


def test_measured_thinking_is_not_resumed(tmp_path, whole):
    path = tmp_path / "log.jsonl"
    path.write_bytes(whole)
    with pytest.raises(InvalidArgument, match="thinking is measured cannot be resumed"):
        simulate(path, thinking="measured")


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        (b'{"format":1', b'{"format":2', UnknownFormat, "format 2; this code reads 1"),
        (b'{"format":1', b'{"forma":1', CorruptFile, "line 1 is not the header"),
        (b'{"trial":', b'{"tria":', CorruptFile, r"line 2 is not a trial: a line holds the keys trial, config"),
        (b'{"trial":', b'["trial":', CorruptFile, "line 2 is not JSON"),
        (b'"Optimizer":"SGD"', b'"Optimizer":"Adam"', CorruptFile, "line 2 is not a trial: Optimizer='Adam'"),
        (b'"worker":', b'"worker":-1', CorruptFile, "line 2 is not a trial: worker="),
        (b'"seed":null', b'"seed":"a"', CorruptFile, "line 2 is not a trial: seed='a'"),
        (b'"start":', b'"start":9', CorruptFile, "is before start=9"),
        (b'"start":0.0', b'"start":NaN', CorruptFile, "line 2 is not JSON: NaN is not a finite number"),
        (b'"start":0.0', b'"start":1e999', CorruptFile, "line 2 is not JSON: 1e999 is not a finite number"),
        (b'"epoch":', b'"epoch":0.', CorruptFile, "line 2 is not a trial: fidelity={'epoch': 0."),
        (b'"trial":', b'"trial":' + b"9" * 20, CorruptFile, "line 2 is not a trial: trial=999"),
        (b'{"trial":', b'{"trial":' + b"[" * 100_000, CorruptFile, "line 2 is not JSON"),
        (b'"status":"', b'"status":"un', CorruptFile, "line 2 is not a trial: status='un"),
        (b'"fidelity":{"epoch"', b'"fidelity":{"epochs"', CorruptFile, "line 2 is not a trial: fidelity="),
    ],
    ids=[
        *("format", "header", "keys", "json", "config", "worker", "seed", "start", "nan", "infinite", "part", "large"),
        *("deep", "status", "fidelity"),
    ],
)
def test_a_line_that_is_not_what_it_should_be_is_named(tmp_path, whole, old, new, error, message):
    path = tmp_path / "log.jsonl"
    first, rest = whole.split(b"\n", 1)
    text = first.replace(old, new) + b"\n" + rest.replace(old, new, 1)
    if b"seed" in old or b"status" in old:
        text = first + b"\n" + rest.replace(old, new)
    path.write_bytes(text)
    with pytest.raises(error, match=message):
        read_log(path)


def test_what_follows_the_end_of_a_log_is_refused_or_if_it_was_cut_off_removed(tmp_path, whole):
    path = tmp_path / "log.jsonl"
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1])
    with pytest.raises(CorruptFile, match="a line follows the one that ends the log"):
        simulate(path)
    path.write_bytes(whole + b'{"trial"')
    simulate(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"value": float("nan")}, "is not a mapping of JSON"),
        ({"value": {1, 2}}, "is not a mapping of JSON"),
        (5, "facts=5 is not a mapping of JSON"),
        ({"task": "x", "workers": 1}, "facts must not have task, workers, which the log's header has already"),
        ({"model": "x", "refit": 1}, "facts must not have model, refit, which"),
    ],
)
def test_facts_that_the_header_cannot_hold_are_refused_before_there_is_a_log(tmp_path, facts, message):
    with pytest.raises(InvalidArgument, match=message):
        Simulation(VIEW, workers=3, budget=9.0, log=tmp_path / "log", facts=facts)
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("read", [read_log, read_trials])
@pytest.mark.parametrize("path", [None, 3, b"run.jsonl"])
def test_what_is_no_path_is_refused(read, path):
    with pytest.raises(InvalidArgument, match="is not a path; give a str"):
        read(path)


def test_an_empty_file_and_lines_after_the_end_are_refused(tmp_path, whole):
    (tmp_path / "empty").touch()
    with pytest.raises(CorruptFile, match="begins with its header"):
        read_log(tmp_path / "empty")
    (tmp_path / "more").write_bytes(whole + whole.splitlines(keepends=True)[1])
    with pytest.raises(CorruptFile, match="follows the one that ends the log"):
        read_log(tmp_path / "more")


@pytest.mark.parametrize("ask", [read_log, read_header, lambda path: Simulation(VIEW, n_trials=1, log=path)])
def test_a_path_that_no_file_can_have_is_refused(tmp_path, ask):
    with pytest.raises(InvalidArgument, match=r"holds a character that no path has; give another path"):
        ask(tmp_path / "a\0b")
