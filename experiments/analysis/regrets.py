"""Final test regret and its distribution over many rollouts (NAS-Bench-101, section 4 and figure 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.analysis.logs import Floats
from jahs.errors import InvalidArgument

__all__ = ["Ecdf", "ecdf", "regret"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ecdf:
    """An empirical distribution: `shares[i]` of all values are at most `values[i]`."""

    values: Floats
    shares: Floats

    def at(self, values: Floats) -> Floats:
        """The share of values that are at most each given one."""
        place = np.searchsorted(self.values, values, side="right")
        return np.concatenate([[0.0], self.shares])[place]


def ecdf(values: Floats) -> Ecdf:
    """The distribution of finite values, one step for each different one.

    Raises:
        InvalidArgument: there are none, or some are not finite.
    """
    if not len(values) or not np.all(np.isfinite(values)):
        raise InvalidArgument("values: a distribution needs at least one value, and finite ones only")
    found, counts = np.unique(values, return_counts=True)
    return Ecdf(values=found, shares=np.cumsum(counts) / len(values))


def regret(test_acc: Floats, *, best: float) -> Floats:
    """Percentage points that an incumbent's mean test accuracy lacks to the best one known.

    Raises:
        InvalidArgument: an incumbent is better than the best one known, so that one is not the best.
    """
    if np.any(test_acc > best):
        raise InvalidArgument(f"best={best}: an incumbent has {np.nanmax(test_acc)}, so this is not the best one known")
    return np.asarray(best - test_acc)
