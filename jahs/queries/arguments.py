"""Reads which metrics a query is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jahs.errors import InvalidArgument, UnknownName
from jahs.spaces.parameters import show
from jahs.tasks.metrics import Metric, metric

__all__ = ["read_metrics"]


def read_metrics(metrics: object, known: Mapping[str, Metric]) -> tuple[str, ...]:
    """Return our names of metrics that are given by ours or the published ones, each once.

    Raises:
        UnknownName: one that is not known; lists those that are.
        InvalidArgument: it is no list of names, or an empty one.
    """
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise InvalidArgument(f"metrics={show(metrics)} is not a list of names; for one metric give [name]")
    names = []
    for given in metrics:
        try:
            name = metric(given).name
        except UnknownName:
            name = ""
        if name not in known:
            raise UnknownName.of("metric", given if isinstance(given, str) else show(given), known)
        names.append(name)
    if not names:
        raise InvalidArgument(f"metrics is empty; there are {', '.join(known)}")
    return tuple(dict.fromkeys(names))
