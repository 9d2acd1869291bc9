"""A Dask cluster whose workers may join late, leave, and lose their scheduler; this process runs no job."""

from __future__ import annotations

import functools
import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from distributed import CancelledError, Client, KilledWorker

from jahs.errors import JahsError

_log = logging.getLogger(__name__)
_CONNECT_S: Final = 8
_PATIENCE_S: Final = 120
_COUNT_EVERY_S: Final = 2.0
_LOG_EVERY_S: Final = 30.0

J = TypeVar("J")
R = TypeVar("R")


class Cluster:
    """The workers of a scheduler.

    Raises:
        JahsError: no scheduler answers at this address.
    """

    ahead = 2
    losses: tuple[type[BaseException], ...] = (CancelledError, KilledWorker)

    def __init__(self, address: str) -> None:
        for noisy in ("distributed.client", "distributed.core", "distributed.comm"):
            logging.getLogger(noisy).setLevel(logging.CRITICAL)  # this class logs one line instead
        self._address = address
        self._n_workers, self._counted_at, self._logged_at = -1, -_COUNT_EVERY_S, -_LOG_EVERY_S
        try:
            self._client = self._connect()
        except (OSError, ValueError) as err:
            raise JahsError(
                f"no Dask scheduler answers at {address}; start one (dask scheduler), or give the address that it logs"
            ) from err

    def n_workers(self) -> int:
        """Return the number of workers; at least 1, so that a first job waits for the first worker."""
        now = time.monotonic()
        if now - self._counted_at >= _COUNT_EVERY_S and self._client.status == "running":
            self._counted_at = now
            try:
                total = int(self._client.scheduler_info(n_workers=0)["total_threads"])
            except OSError:  # the scheduler has gone; its futures will fail
                return max(self._n_workers, 1)
            if total != self._n_workers and (0 in {total, self._n_workers} or now - self._logged_at >= _LOG_EVERY_S):
                self._logged_at = now
                none = f"no workers yet; each is started by: dask worker {self._address} --nthreads 1"
                _log.info("%s", f"workers: {total}" if total else none)
            self._n_workers = total
        return max(self._n_workers, 1)

    def submit(self, call: Callable[[J], R], job: J) -> Any:  # Any: a future of Dask's, which are untyped
        """Submit a job to the workers and return its future."""
        checked_call = functools.partial(_call_in_worker, (socket.gethostname(), os.getpid()), call)
        return self._client.submit(checked_call, job, pure=False)

    def renew(self) -> None:
        """Wait until the scheduler is back, if it has gone.

        Raises:
            JahsError: the scheduler has not come back in time.
        """
        deadline = time.monotonic() + _PATIENCE_S
        if self._client.status != "running":
            _log.warning("the scheduler at %s has gone; waiting %d s for another", self._address, _PATIENCE_S)
        while self._client.status != "running":  # the client reconnects for a while, then closes
            if time.monotonic() > deadline:
                raise JahsError(
                    f"the scheduler at {self._address} has gone and did not come back; finished jobs are kept: start a "
                    "scheduler, its workers and this command again"
                )
            if self._client.status == "closed":
                try:
                    self._client = self._connect()
                except OSError:
                    continue
            time.sleep(0.1)

    def close(self) -> None:
        """Drop the jobs that have not started; workers finish their current ones."""
        self._client.close(timeout=2)  # type: ignore[no-untyped-call]

    def _connect(self) -> Client:
        return Client(self._address, timeout=_CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]


def _call_in_worker(caller: tuple[str, int], call: Callable[[J], R], job: J) -> R:
    if (socket.gethostname(), os.getpid()) == caller:
        raise JahsError("a worker runs inside the command's own process; start workers as separate processes")
    return call(job)
