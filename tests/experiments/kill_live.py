"""Run the small live study while it is killed at random moments: `python kill_live.py RELEASE OUT N_KILLS SEED`."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from experiments.live.command import train
from tests.experiments.live_fakes import settings, without_training


def main(release, out, n_kills, seed):
    """Return how often the study was killed before it was complete."""
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        without_training(patch)
        n_killed = 0
        while True:
            child = os.fork()
            if not child:
                train(settings(out, release))
                os._exit(0)
            if n_killed < n_kills:
                time.sleep(rng.uniform(0.05, 1.0))
                os.kill(child, signal.SIGKILL)
            _, code = os.waitpid(child, 0)
            if code == 0:
                break
            assert os.WIFSIGNALED(code), "the study failed"
            n_killed += 1
    return n_killed


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
