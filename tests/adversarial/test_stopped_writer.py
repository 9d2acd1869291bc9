"""A process that is stopped while it writes a log, and wakes up when another wants to finish that log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jahs.errors import InvalidArgument
from jahs.queries.views import View
from jahs.simulate import Simulation, read_log
from tests.fake_benchmark import FakeBenchmark
from tests.jahs.simulate.chaos import Chaos

VIEW = View(FakeBenchmark(max_epoch=6))
PATIENCE_S = 60.0
SLOW_RUN = """
import sys, time
from tests.adversarial.test_stopped_writer import VIEW, Chaos, Simulation

class Slow(Chaos):
    def tell(self, trial):
        time.sleep(0.05)

Simulation(VIEW, workers=3, n_trials=30, log=sys.argv[1]).run(Slow(VIEW, seed=1))
"""


def simulate(path: Path) -> None:
    Simulation(VIEW, workers=3, n_trials=30, log=path).run(Chaos(VIEW, seed=1))


def start(path: Path) -> subprocess.Popen[bytes]:
    """Start a slow writer and stop it in the middle of its log."""
    writer = subprocess.Popen([sys.executable, "-c", SLOW_RUN, str(path)])
    end = time.monotonic() + PATIENCE_S
    while not path.exists() or path.read_bytes().count(b"\n") < 4:
        assert writer.poll() is None and time.monotonic() < end  # noqa: PT018
        time.sleep(0.01)
    os.kill(writer.pid, signal.SIGSTOP)
    os.waitpid(writer.pid, os.WUNTRACED)
    return writer


def test_a_stopped_writer_keeps_its_log_and_finishes_it_when_it_wakes_up(tmp_path: Path) -> None:
    simulate(tmp_path / "whole.jsonl")
    path = tmp_path / "log.jsonl"
    writer = start(path)
    try:
        before = path.read_bytes()
        with pytest.raises(InvalidArgument, match=r"log\.jsonl is open in another simulation"):
            simulate(path)
        assert path.read_bytes() == before
        os.kill(writer.pid, signal.SIGCONT)
        assert writer.wait(PATIENCE_S) == 0
    finally:
        writer.kill()
        writer.wait()
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_killed_writer_leaves_its_log_to_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    writer = start(path)
    writer.kill()
    writer.wait()
    simulate(path)
    assert read_log(path).ending is not None


def test_two_simulations_of_one_process_do_not_share_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with Simulation(VIEW, n_trials=2, log=path) as first:
        first.submit(VIEW.sample(seed=0))
        with pytest.raises(InvalidArgument, match="is open in another simulation"):
            simulate(path)
