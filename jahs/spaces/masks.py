"""Masked arrays are refused: a masked value is missing, and `np.asarray` would return what lies under the mask."""

from __future__ import annotations

import numpy as np

from jahs.errors import InvalidArgument


def masked_fault(name: str, values: object) -> str | None:
    """Say how many values of an array are masked, and in which row the first is; None if no value is masked."""
    if not isinstance(values, np.ndarray) or not hasattr(values, "mask"):  # np.ma itself would have to be imported
        return None
    masked = np.argwhere(np.broadcast_to(values.mask, values.shape))
    if not len(masked):
        return None
    where = f", the first is in row {masked[0][0]}" if values.ndim else ""
    return f"{name} is masked in {len(masked)} of {values.size} values{where}; leave those out, or fill them in"


def refuse_masked(name: str, values: object) -> None:
    """Refuse an array of which any value is masked."""
    if fault := masked_fault(name, values):
        raise InvalidArgument(fault)
