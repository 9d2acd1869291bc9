"""Checks of an engine's input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jahs.errors import InvalidArgument, UnknownName
from jahs.models.forest.flat import Float32s, Forest


def check_rows(forest: Forest, X: Float32s) -> None:
    """Refuse anything but float32 rows of the forest's features."""
    # float64 is refused, not rounded: a value that rounds across a threshold would change its side in silence.
    if not isinstance(X, np.ndarray) or X.dtype != np.float32 or X.ndim != 2 or X.shape[1] != forest.n_features:
        given = f"{X.dtype} of shape {X.shape}" if isinstance(X, np.ndarray) else type(X).__name__
        raise InvalidArgument(f"X is {given}; it must be a numpy array, float32 of shape (n_rows, {forest.n_features})")


def check_packed(forest: Forest, row: bytes) -> None:
    """Refuse anything but one packed row of the forest's features."""
    if type(row) is not bytes or len(row) != 4 * forest.n_features:
        given = f"{len(row)} bytes" if isinstance(row, bytes) else type(row).__name__
        raise InvalidArgument(f"row is {given}; it must be bytes, {forest.n_features} packed float32")


def check_forests(forest: Forest, forests: Sequence[int] | None) -> Sequence[int]:
    """All forests for None; else the given ones, if they exist."""
    if forests is None:
        return range(forest.n_forests)
    unknown = [k for k in forests if not 0 <= k < forest.n_forests]
    if unknown:
        raise UnknownName(f"forests={unknown} do not exist; there are 0..{forest.n_forests - 1}")
    return forests


def not_a_number(X: Float32s) -> InvalidArgument:
    """Build the error for rows with NaN: forests have no direction for a missing value."""
    row, column = np.argwhere(np.isnan(X))[0]
    return InvalidArgument(f"X[{row}, {column}] is NaN; every feature needs a value")
