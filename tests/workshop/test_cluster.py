"""A rehearsal of a cluster: workers come late, one is killed, the scheduler is started again."""

from __future__ import annotations

import functools
import os
import threading
import time
from pathlib import Path

import pytest

from jahs.errors import JahsError
from tests.dask_cluster import DaskCluster
from workshop.jobs import Where, run_jobs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # what Dask says of lost connections
N_JOBS = 40
NO_WORKERS = "no workers yet; each is started by: dask worker tcp://"


def record(folder: Path, n: int) -> tuple[int, int]:
    """Record a number once, slowly; return it and who has done it."""
    time.sleep(0.15)
    (folder / str(n)).touch()
    return n * n, os.getpid()


def start_when_waited_for(cluster: DaskCluster, caplog: pytest.LogCaptureFixture) -> None:
    """In a thread, start the first worker once the command has logged that it is waiting for workers."""

    def start() -> None:
        while not any(message.startswith(NO_WORKERS) for message in caplog.messages):
            time.sleep(0.02)
        cluster.start_worker()

    threading.Thread(target=start, daemon=True).start()


def test_nothing_is_lost_or_doubled_while_workers_come_and_go_and_the_scheduler_restarts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "workshop")
    with DaskCluster() as cluster:
        scheduler = cluster.start_scheduler()
        start_when_waited_for(cluster, caplog)
        where = Where(backend="dask", scheduler=cluster.address)
        results = []
        for done in run_jobs(functools.partial(record, tmp_path), range(N_JOBS), where=where):
            results.append(done)
            if len(results) == 1:
                assert caplog.messages[0].startswith(NO_WORKERS)
                cluster.start_worker()
            if len({done.result[1] for done in results}) == 2 and cluster.processes[1].poll() is None:
                cluster.kill(cluster.processes[1])
            if len(results) == 25:
                cluster.kill(scheduler)
                cluster.start_scheduler()
                cluster.start_worker()
    assert sorted(done.job for done in results) == list(range(N_JOBS))
    assert all(done.result[0] == done.job**2 for done in results)
    assert len(list(tmp_path.iterdir())) == N_JOBS
    assert os.getpid() not in {done.result[1] for done in results}
    assert any("the scheduler at" in message and "has gone" in message for message in caplog.messages)


def test_a_scheduler_that_does_not_answer_is_one_line_within_ten_seconds() -> None:
    started = time.monotonic()
    with pytest.raises(JahsError, match=r"^no Dask scheduler answers at tcp://127.0.0.1:9; start one .*that it logs$"):
        list(run_jobs(abs, [1], where=Where(backend="dask", scheduler="tcp://127.0.0.1:9")))
    assert time.monotonic() - started < 10


def test_a_scheduler_that_does_not_come_back_ends_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workshop.cluster._PATIENCE_S", 1)
    monkeypatch.setattr("workshop.cluster._CONNECT_S", 5)
    with DaskCluster() as cluster:
        scheduler = cluster.start_scheduler()
        cluster.start_worker()
        where = Where(backend="dask", scheduler=cluster.address)
        done = run_jobs(functools.partial(record, tmp_path), range(N_JOBS), where=where)
        next(done)
        cluster.kill(scheduler)
        with pytest.raises(JahsError, match="did not come back; finished jobs are kept: start a scheduler"):
            list(done)


def test_a_worker_inside_of_the_command_is_refused() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=None) as local:
        where = Where(backend="dask", scheduler=local.scheduler_address)
        with pytest.raises(JahsError, match="inside the command's own process"):
            list(run_jobs(abs, [1], where=where))
