"""Whether a process runs, since only unfinished files of ended processes may be removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jahs.files.atomic import is_running


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs os.waitid, to end a process without reaping it")
def test_a_process_runs_until_it_is_killed_and_a_zombie_does_not_run():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert is_running(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it ended, and stays a zombie
        assert not is_running(process.pid) or not Path("/proc").exists()
        assert process.wait() == -signal.SIGKILL
    assert not is_running(process.pid)
    assert is_running(os.getpid())
