"""Fidelities: reading an epoch, and the one place where budgets are rounded.

Tools that divide a budget by powers of three ask for 2.469 epochs. `read_budget` rounds to the nearest epoch, half to
even. A query takes only integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidFidelity, first_of
from jahs.schema import SIZE_KEYS
from jahs.spaces.parameters import is_integer, masked_fault, show

_MOST_LISTED = 5


def read_epoch(at: object, max_epoch: int, *, name: str = "at") -> int:
    """Return the epoch of a fidelity: an integer, or a mapping with the key "epoch", by default the last one.

    Nothing is rounded.
    """
    try:
        return _read_one(at, max_epoch, name)
    except InvalidFidelity as fault:
        if name == "at" and is_list(at):
            raise InvalidFidelity(f"{fault}; query_many takes several") from None
        raise


def _read_one(at: object, max_epoch: int, name: str) -> int:
    epoch = _epoch_of(at, max_epoch, name)
    if not is_integer(epoch) or not 1 <= epoch <= max_epoch:
        is_epoch = name != "step" and isinstance(epoch, float | np.floating) and math.isfinite(epoch)
        hint = "; bench.fidelity() rounds" if is_epoch else ""
        raise InvalidFidelity(f"{name}={show(epoch)} is not an integer in 1..{max_epoch}{hint}")
    return int(epoch)


def read_epochs(at: object, max_epoch: int, *, name: str = "at") -> NDArray[np.int64]:
    """Return the epochs of several fidelities, (n,); see `read_epoch`."""
    if fault := masked_fault(name, at):
        raise InvalidFidelity(fault)
    if is_list(at) and hasattr(at, "__array__"):  # a Series, too
        at = np.asarray(at)
    if isinstance(at, np.ndarray) and at.ndim == 1 and at.dtype.kind in "iu":
        if not ((at < 1) | (at > max_epoch)).any():
            return at.astype(np.int64)
        at = at.tolist()
    if not is_list(at):
        raise InvalidFidelity(f"{name}={show(at)} is not a list of epochs")
    epochs, faults = [], []
    for i, value in enumerate(at):
        try:
            epochs.append(_read_one(value, max_epoch, name))
        except InvalidFidelity as fault:  # noqa: PERF203  # costs nothing where nothing is raised
            faults.append(f"{fault} (position {i})" if len(at) > 1 else str(fault))
    if faults:
        rest = [f"... {len(faults)} of {len(at)} are wrong"] if len(faults) > _MOST_LISTED else []
        raise InvalidFidelity("\n".join([*faults[:_MOST_LISTED], *rest]))
    return np.array(epochs, dtype=np.int64)


def is_list(at: object) -> TypeGuard[Sequence[object]]:
    """Return whether `at` is several fidelities, not one."""
    if hasattr(at, "__array__"):
        return np.ndim(at) == 1  # an array, or what becomes one
    return isinstance(at, Sequence) and not isinstance(at, str | bytes)


def read_budget(at: object, max_epoch: int, *, name: str = "at") -> int:
    """Return the epoch of a budget: the nearest integer, half to even.

    Raises:
        InvalidFidelity: it is not a finite number, or its nearest integer is out of range.

    Example:
        >>> read_budget(2.469, 12), read_budget(2.5, 12), read_budget(3.5, 12)
        (2, 2, 4)
    """
    budget = _epoch_of(at, max_epoch, name)
    if isinstance(budget, float | np.floating):
        if not math.isfinite(budget):
            raise InvalidFidelity(f"{name}={show(budget)} is not a finite number")
        rounded = round(float(budget))
        if not 1 <= rounded <= max_epoch:
            raise InvalidFidelity(f"{name}={show(budget)} rounds to {rounded:.6g}, which is outside of 1..{max_epoch}")
        return rounded
    return read_epoch(budget, max_epoch, name=name)


def _epoch_of(at: object, max_epoch: int, name: str) -> object:
    if not isinstance(at, Mapping):
        return at[()] if isinstance(at, np.ndarray) and at.ndim == 0 else at
    faults = []
    for key in at:
        if key in SIZE_KEYS:
            faults.append(
                f"{key} is searched here, not a fidelity; bench.view(fidelities=('epoch', {key!r})) changes it"
            )
        elif key != "epoch":
            faults.append(f"{show(key)} is not a fidelity; there is epoch, and N, W, Resolution through bench.view()")
    if faults:
        raise InvalidFidelity("\n".join(first_of([f"{name}: {fault}" for fault in faults])))
    return at.get("epoch", max_epoch)
