"""Jobs over processes: each is done once where nothing goes wrong, and done again where its worker was killed."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from jahs.errors import InvalidArgument, JahsError
from surrogate.data.rows import assemble, by_part
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import fit_each
from tests.surrogate.landscape import TASK, measurements, split_of
from workshop.jobs import Where, _Processes, in_processes, run_jobs


def divide(*, a: int, b: int) -> float:
    if b == 0:
        raise InvalidArgument(f"{a} / 0")
    return a / b


def square(n: int) -> int:
    return n * n


def die_once(folder: Path, n: int) -> int:
    """Square a number; the first worker that is given a 3 is killed."""
    with (folder / f"{n}").open("a") as file:
        file.write("x")
    if n == 3 and (folder / "3").stat().st_size == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def ask_hash(_: int) -> int:
    return hash("Mish")


def ask_signals(_: int) -> tuple[bool, str]:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN, os.environ["OMP_NUM_THREADS"]


def test_the_number_of_workers_does_not_change_a_byte() -> None:
    measured = measurements(3)
    split = split_of(measured)
    training = {m: by_part(assemble(m, measured), split)["train"] for m in ("latency", "valid_acc", "runtime")}
    settings = dict.fromkeys(training, ForestSettings(n_trees=5, colsample_bytree=0.5))
    alone, together = (fit_each(training, TASK, settings, workers=n) for n in (1, 2))
    assert list(alone) == list(together) == list(training)
    for metric in training:
        assert alone[metric].booster.save_raw("ubj") == together[metric].booster.save_raw("ubj")


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_come_in_order_and_errors_come_back(workers: int) -> None:
    calls = [{"a": n, "b": 2} for n in range(9)]
    assert in_processes(divide, calls, workers=workers) == [n / 2 for n in range(9)]
    with pytest.raises(InvalidArgument, match="1 / 0"):
        in_processes(divide, [*calls, {"a": 1, "b": 0}], workers=workers)
    assert in_processes(divide, [], workers=workers) == []


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_what_is_no_number_of_workers_is_refused(workers: int) -> None:
    with pytest.raises(InvalidArgument, match="is not at least 1"):
        in_processes(divide, [], workers=workers)


def test_every_fault_of_a_place_is_named() -> None:
    assert [fault.split()[0] for fault in Where(workers=0, backend="dask").faults()] == ["workers=0", "backend=dask"]
    assert Where(scheduler="tcp://a:1").faults() == ["scheduler=tcp://a:1 is for a cluster: --backend dask"]


@pytest.mark.parametrize(
    ("address", "is_valid"),
    [
        ("tcp://a:8786", True),
        ("a:8786", True),
        ("tls://[::1]:8786", True),
        ("tcp://a", False),
        ("a", False),
        ("tcp://a:port", False),
        ("tcp://a:99999", False),
        ("tcp://[a:1", False),
        ("", False),
    ],
)
def test_the_address_of_a_scheduler_needs_a_port(address: str, is_valid: bool) -> None:
    faults = Where(backend="dask", scheduler=address).faults()
    example = "give an address such as tcp://HOST:8786"
    assert faults == ([] if is_valid else [f"scheduler={address} has no valid port; {example}"])


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_are_drawn_when_there_is_a_worker_for_them(workers: int) -> None:
    drawn = []

    def jobs():
        for n in range(6):
            drawn.append(n)
            yield n

    done = run_jobs(square, jobs(), where=Where(workers=workers))
    first = next(done)
    assert first.result == first.job**2
    assert len(drawn) == workers
    assert {first.job, *(each.job for each in done)} == set(range(6))


def test_a_job_whose_worker_was_killed_is_done_again_and_no_result_is_lost_or_doubled(tmp_path: Path) -> None:
    done = list(run_jobs(functools.partial(die_once, tmp_path), range(8), where=Where(workers=2)))
    assert sorted(each.job for each in done) == list(range(8))
    assert all(each.result == each.job**2 for each in done)
    assert (tmp_path / "3").stat().st_size > 1


def test_a_loss_that_shows_when_a_job_is_submitted_costs_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, n_asked = _Processes.submit, itertools.count()

    def broken_once(pool: _Processes, call: Any, job: int) -> Any:
        if next(n_asked) == 0:
            raise pool.losses[0]
        return submit(pool, call, job)

    monkeypatch.setattr(_Processes, "submit", broken_once)
    assert sorted(each.job for each in run_jobs(square, range(5), where=Where(workers=2))) == list(range(5))


def test_what_kills_every_worker_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workshop.jobs._MOST_LOST", 1)
    with pytest.raises(JahsError, match=r"2 workers were lost \(.*\); finished jobs are kept"):
        list(run_jobs(die, range(2), where=Where(workers=2)))


def test_workers_leave_ctrl_c_to_their_caller_and_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [done.result for done in run_jobs(ask_signals, range(2), where=Where(workers=2))] == [(True, "1")] * 2


def test_workers_go_through_sets_of_strings_in_one_order() -> None:
    one, other = ({done.result for done in run_jobs(ask_hash, range(2), where=Where(workers=2))} for _ in range(2))
    assert len(one) == 1
    assert one == other


def test_the_time_spent_is_that_of_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(100))
    monkeypatch.setattr("workshop.jobs.time.monotonic", lambda: next(now))
    assert [done.spent_s for done in run_jobs(square, range(3), where=Where())] == [1, 2, 3]


def test_an_error_of_lokys_thread_is_not_shown_while_its_workers_are_killed(monkeypatch):
    shown = []
    monkeypatch.setattr(threading, "excepthook", lambda args: shown.append(args.thread.name))
    pool = _Processes(2)
    shutdown = pool._executor.shutdown

    def fail(**how):
        for name in ("ExecutorManagerThread", "another"):
            thread = threading.Thread(target=divide, kwargs={"a": 1, "b": 0}, name=name)
            thread.start()
            thread.join()
        shutdown(**how)

    monkeypatch.setattr(pool._executor, "shutdown", fail)
    hook = threading.excepthook
    pool.close()
    assert shown == ["another"]
    assert threading.excepthook is hook
