"""Metrics: name, unit, direction, bounds, and whether a metric is computed exactly or learned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeGuard

from jahs.errors import InvalidArgument, UnknownName
from jahs.spaces.parameters import is_iterable, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number that a query answers.

    Attributes:
        name: identifier, the key of a result.
        unit: unit of `name`.
        direction: whether less or more is better.
        lower, upper: bounds that no answer leaves (`upper` may be infinite).
        kind: "exact" is computed from the config, "learned" is predicted, "recorded" is only in the tables.
        by_epoch: whether the value depends on the epoch.
        published_name, published_scale: JAHS-Bench-201's name, and the factor that gives its number.
        description: one sentence.
    """

    name: str
    unit: str
    direction: Literal["min", "max"] = "min"
    lower: float = 0.0
    upper: float = math.inf
    kind: Literal["exact", "learned", "recorded"] = "learned"
    by_epoch: bool = True
    description: str
    published_name: str | None = None
    published_scale: float = 1.0


_PARTS: Final = {
    "train": "over the epoch's training batches as they were trained on, augmentation included",
    "valid": "on the validation images after the epoch",
    "test": "on the test images after the epoch",
}
_COST: Final[Any] = {"kind": "exact", "by_epoch": False, "published_scale": 1e-6}  # Any: fields of a Metric

_ALL = (
    *(
        Metric(
            name=f"{part}_acc",
            unit="%",
            direction="max",
            upper=100.0,
            published_name=f"{part}-acc",
            description=f"Top-1 accuracy {where}.",
        )
        for part, where in _PARTS.items()
    ),
    Metric(
        name="latency",
        unit="s",
        by_epoch=False,
        published_name="latency",
        description="CPU seconds of one core for an evaluation forward pass of one batch of 256 images.",
    ),
    Metric(
        name="runtime",
        unit="s",
        published_name="runtime",
        description="Cumulative CPU seconds of one core from the first to the queried epoch, training plus evaluation.",
    ),
    Metric(
        name="n_params",
        unit="parameters",
        published_name="size_MB",
        description="Trainable parameters. The published size_MB is this number in millions, not megabytes.",
        **_COST,
    ),
    Metric(
        name="n_macs",
        unit="multiply-adds",
        published_name="FLOPS",
        description="Multiply-adds of convolutions and the linear layer for one image, forward. "
        "The published FLOPS is this number in millions, not a rate.",
        **_COST,
    ),
    *(
        Metric(
            name=f"{part}_loss",
            unit="nat",
            kind="recorded",
            published_name=f"{part}-loss",
            description=f"Mean cross-entropy over the {part} images.",
        )
        for part in _PARTS
    ),
)

METRICS: Final[Mapping[str, Metric]] = MappingProxyType({m.name: m for m in _ALL})
"""Every metric by name."""

LEARNED: Final = tuple(m.name for m in _ALL if m.kind == "learned")
ACCURACIES: Final = ("train_acc", "valid_acc", "test_acc")

_NAMES = {alias: m.name for m in _ALL for alias in (m.name, m.published_name) if alias}


def metric(name: str) -> Metric:
    """Return the metric called `name`, which may be our name or the published one.

    Raises:
        UnknownName: the metric does not exist; lists those that do.

    Example:
        >>> metric("valid-acc").name
        'valid_acc'
    """
    if isinstance(name, str) and name in _NAMES:
        return METRICS[_NAMES[name]]
    raise UnknownName.of("metric", name, list(dict.fromkeys([*METRICS, *_NAMES])))


def is_hidden(metric: str) -> bool:
    """Return whether optimisers must not see this metric: everything measured on the test images."""
    return metric.startswith("test_")


def _fault_of(name: str, known: Mapping[str, Metric]) -> str:
    if name in _NAMES and metric(name).kind == "recorded":
        return f"metric={name!r} is recorded, not predicted: ask a table for it (kind='table', --kind table)"
    if name in _NAMES and is_hidden(_NAMES[name]) and "valid_acc" in known:
        return (
            f"metric={name!r} is measured on the test images, which optimisers must not see; metric is one of: "
            f"{', '.join(known)}"
        )
    return str(UnknownName.of("metric", name, known))


def is_ordered(metrics: object) -> TypeGuard[Iterable[Any]]:  # Any: whatever a user gives
    """Return whether this is an iterable with an order; the order of a set differs between processes."""
    return is_iterable(metrics) and not isinstance(metrics, set | frozenset)


def read_metrics(metrics: object, *, known: Mapping[str, Metric] = METRICS, name: str = "metrics") -> tuple[str, ...]:
    """Return our names of metrics, named as we or JAHS-Bench-201 do, each once; only `known` metrics are allowed.

    Messages call the argument `name`.
    """
    if isinstance(metrics, str):
        if _NAMES.get(metrics, metrics) not in known:
            raise UnknownName(_fault_of(metrics, known))
        raise InvalidArgument(f"{name}={show(metrics)} is not a list of names; for one metric give [{show(metrics)}]")
    if not is_ordered(metrics):
        raise InvalidArgument(f"{name}={show(metrics)} is not a list of names; give some of {', '.join(known)}")
    requested = [each if isinstance(each, str) else show(each) for each in metrics]
    if not requested:
        raise InvalidArgument(f"{name} is empty; give one or more of {', '.join(known)}")
    names = [_NAMES.get(each, each) for each in requested]
    if unknown := [each for each, key in zip(requested, names, strict=True) if key not in known]:
        raise UnknownName("\n".join(_fault_of(each, known) for each in unknown))
    return tuple(dict.fromkeys(names))
