"""The command `jahs serve` as another process uses it: pipes, signals, options and a log for the leaderboard."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jahs.cli import main
from jahs.comparison import leaderboard
from jahs.simulate import read_log
from tests.jahs.comparison.conftest import bench, release

__all__ = ["bench", "release"]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def serve(release):
    """Start the command; it is killed at the end of the test."""
    started = []

    def start(*options: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "jahs", "serve", "--release", str(release), *map(str, options)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, cwd=ROOT, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ask(process: subprocess.Popen[bytes], **request: object) -> dict:
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def spend(process: subprocess.Popen[bytes], configs: list) -> dict:
    """Submit until the budget is spent, as a client in any language would."""
    state, ahead = ask(process, do="status"), iter(configs)
    while not state["over"]:
        state = ask(process, do="submit", config=next(ahead)) if state["free"] else ask(process, do="wait")
    return state


def test_a_log_of_another_run_is_a_mistake_of_the_command(serve, bench, release, tmp_path: Path, capsys) -> None:
    log = tmp_path / "log.jsonl"
    process = serve("--log", log, "--workers", 2)
    ask(process, do="submit", config=bench.view(fixed={"N": 5, "W": 16, "Resolution": 1.0}).sample(seed=0))
    assert process.communicate(timeout=60) == (b"", b"")
    assert main(["serve", "--log", str(log), "--release", str(release), "--workers", "3"]) == 2
    assert "is the log of another run" in capsys.readouterr().err


@pytest.mark.parametrize("options", [(), ("--workers", 3, "--study", "joint", "--seed", 2, "--client", "agent")])
def test_the_leaderboard_recomputes_a_served_log(options, serve, bench, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    process = serve("--log", log, *options)
    configs = bench.view(fixed={"N": 5, "W": 16, "Resolution": 1.0}).sample(400, seed=0)
    spend(process, configs)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 0
    (board,), refused = leaderboard.leaderboard([log], opened=lambda task: bench)
    assert refused == []
    assert board.lines[0].name == ("agent" if options else "client")
    assert board.terms.workers == (3 if options else 1)
    assert board.lines[0].valid_error < 100


def test_a_client_that_stops_reading_ends_the_server_quietly(serve, bench, tmp_path: Path) -> None:
    process = serve("--log", tmp_path / "log.jsonl")
    config = bench.sample(seed=0)
    assert ask(process, do="submit", config={**config, "N": 5, "W": 16, "Resolution": 1.0})["trial"] == 0
    process.stdout.close()
    process.stdin.write(b'{"do": "wait"}\n' * 3)
    process.stdin.flush()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    log = read_log(tmp_path / "log.jsonl")
    assert (len(log.trials), log.ending) == (1, None)


@pytest.fixture
def what_is_started_hears_ctrl_c():
    """A shell makes its background jobs deaf to it, and with them what they start."""
    deaf = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, deaf)


@pytest.mark.usefixtures("what_is_started_hears_ctrl_c")
@pytest.mark.parametrize("way", ["eof", "kill", "ctrl-c"])
def test_a_run_that_was_cut_off_goes_on(way: str, serve, bench, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    config = {**bench.sample(seed=0), "N": 5, "W": 16, "Resolution": 1.0}
    first = serve("--log", log)
    ask(first, do="submit", config=config, at=1)
    ask(first, do="wait")
    ask(first, do="submit", config=config)
    if way == "eof":
        assert first.communicate(timeout=60)[1] == b""
    else:
        first.send_signal(signal.SIGKILL if way == "kill" else signal.SIGINT)
        said = first.communicate(timeout=60)[1].decode()
        assert said == (
            "" if way == "kill" else "jahs serve: stopped; the same command keeps finished work and continues\n"
        )
    assert first.returncode == {"eof": 0, "kill": -signal.SIGKILL, "ctrl-c": 130}[way]
    second = serve("--log", log)
    state = ask(second, do="trials")
    assert (len(state["trials"]), state["running"]) == (1, [1])
    assert ask(second, do="end")["over"] == "optimizer"
    second.communicate(timeout=60)
    assert [trial.fidelity["epoch"] for trial in read_log(log).trials] == [1, 27]
    assert leaderboard.leaderboard([log], opened=lambda task: bench)[1] == []


def test_a_log_that_cannot_be_written_is_one_error_line(serve, tmp_path: Path) -> None:
    process = serve("--log", tmp_path / "no" / "log.jsonl")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said.count(b"\n") == 1
    assert b"no" in said


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--budget", "0"), "budget=0.0 is not a positive number of seconds"),
        (("--workers", "0"), "workers=0 is not an integer"),
        (("--seed", "-1"), "seed=-1"),
        (("--blind", "-1"), "blind=-1 is not an integer"),
        (("--study", "jonit"), "did you mean 'joint'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_option_is_a_mistake(options, fault: str, release, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--release", str(release), *options]) == 2
    said = capsys.readouterr().err
    assert fault in said
    assert said.count("\n") == 1


def test_without_mcp_one_line_says_what_to_install(
    release, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["serve", "--mcp", "--release", str(release)]) == 1
    said = capsys.readouterr().err
    assert said.endswith("pip install 'mcp>=2'\n")
    assert said.count("\n") == 1
