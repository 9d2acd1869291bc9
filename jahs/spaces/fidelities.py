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

from jahs.errors import InvalidFidelity
from jahs.spaces.parameters import is_integer, masked_fault, show

_OF_A_VIEW = ("N", "W", "Resolution")


def read_epoch(at: object, max_epoch: int, *, name: str = "at") -> int:
    """Return the epoch of a fidelity: an integer, or a mapping with the key "epoch"; nothing is rounded."""
    epoch = _epoch_of(at, name)
    if not is_integer(epoch) or not 1 <= epoch <= max_epoch:
        hint = "; bench.fidelity() rounds" if isinstance(epoch, float | np.floating) and math.isfinite(epoch) else ""
        raise InvalidFidelity(f"{name}={show(epoch)} is not an integer in 1..{max_epoch}{hint}")
    return int(epoch)


def read_epochs(at: object, max_epoch: int, *, name: str = "at") -> NDArray[np.int64]:
    """Return the epochs of several fidelities, (n,); see `read_epoch`."""
    if fault := masked_fault(name, at):
        raise InvalidFidelity(fault)
    if isinstance(at, np.ndarray) and at.ndim == 1 and at.dtype.kind in "iu":
        is_bad = (at < 1) | (at > max_epoch)
        if is_bad.any():
            read_epoch(at[int(is_bad.argmax())], max_epoch, name=name)
        return at.astype(np.int64)
    if not is_list(at):
        raise InvalidFidelity(f"{name}={show(at)} is not a list of epochs")
    return np.array([read_epoch(one, max_epoch, name=name) for one in at], dtype=np.int64)


def is_list(at: object) -> TypeGuard[Sequence[object]]:
    """Return whether `at` is several fidelities, not one."""
    if isinstance(at, np.ndarray):
        return at.ndim == 1
    return isinstance(at, Sequence) and not isinstance(at, str | bytes)


def read_budget(at: object, max_epoch: int, *, name: str = "at") -> int:
    """Return the epoch of a budget: the nearest integer, half to even.

    Raises:
        InvalidFidelity: it is not a finite number, or its nearest integer is out of range.

    Example:
        >>> read_budget(2.469, 12), read_budget(2.5, 12), read_budget(3.5, 12)
        (2, 2, 4)
    """
    budget = _epoch_of(at, name)
    if isinstance(budget, float | np.floating):
        if not math.isfinite(budget):
            raise InvalidFidelity(f"{name}={show(budget)} is not a finite number")
        rounded = round(float(budget))
        if not 1 <= rounded <= max_epoch:
            raise InvalidFidelity(f"{name}={show(budget)} rounds to {rounded}, which is outside of 1..{max_epoch}")
        return rounded
    return read_epoch(budget, max_epoch, name=name)


def _epoch_of(at: object, name: str) -> object:
    if not isinstance(at, Mapping):
        return at[()] if isinstance(at, np.ndarray) and at.ndim == 0 else at
    faults = []
    for key in at:
        if key in _OF_A_VIEW:
            faults.append(
                f"{key} is searched here, not a fidelity; bench.view(fidelities=('epoch', {key!r})) changes it"
            )
        elif key != "epoch":
            faults.append(f"{show(key)} is not a fidelity; there is epoch, and N, W, Resolution through bench.view()")
    if "epoch" not in at:
        faults.append("epoch is missing")
    if faults:
        raise InvalidFidelity("\n".join(f"{name}: {fault}" for fault in faults))
    return at["epoch"]
