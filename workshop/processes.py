"""Work spread over processes of one thread each; XGBoost with two threads on two shared cores was slower than one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from jahs.errors import InvalidArgument

__all__ = ["check_workers", "in_processes"]

T = TypeVar("T")


def in_processes(
    function: Callable[..., T],
    calls: Sequence[Mapping[str, Any]],  # Any: arguments of the function
    *,
    workers: int,
) -> list[T]:
    """Return what `function` gives for each of the calls' arguments, in their order; one worker is this process.

    The answers do not depend on the number of workers. Anything that a call raises is raised here.

    Raises:
        InvalidArgument: `workers` is not an integer of at least 1.
    """
    check_workers(workers)
    if (n_processes := min(workers, len(calls))) <= 1:
        return [function(**arguments) for arguments in calls]
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        return list(Parallel(n_jobs=n_processes)(delayed(function)(**arguments) for arguments in calls))


def check_workers(workers: int) -> None:
    """Refuse what is no number of processes.

    Raises:
        InvalidArgument: it is not an integer of at least 1.
    """
    if type(workers) is not int or workers < 1:
        raise InvalidArgument(f"workers={workers!r} is not an integer of at least 1")
