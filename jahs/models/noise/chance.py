"""Normal numbers by their place: number i of a key is a pure function of both, so nothing has to be drawn in order.

A key is a 64-bit number; word i of a key is one step of SplitMix64 (Steele, Lea, Flood 2014) at state key + i * GOLDEN.
Each word gives four normal numbers, looked up by its 16-bit pieces in one table of quantiles. A function takes Python's
integers or arrays of uint64, and both give the same bits.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = Any  # an int, or an array of uint64

PIECES: Final = 4
"""Normal numbers in a word."""

_MASK: Final = 2**64 - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
_N_QUANTILES: Final = 2**16
_DIGITS: Final = 9  # so that the platform's logarithm does not decide the last bits


def word(key: Ints, counter: Ints) -> Ints:
    """Return word `counter` of a key; a negative counter counts as its two's complement."""
    z = (key + (counter * _GOLDEN & _MASK)) & _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


def run_key(salt: int, config_id: Ints, seed: Ints) -> Ints:
    """Return the key of everything that is random in one training."""
    return word(word(salt, config_id), seed)


def normal(table: Any, of_word: Ints, piece: int) -> Any:
    """Return one of the four normal numbers of a word: the entry of a table of normal numbers at a piece of 16 bits."""
    return table[of_word >> 16 * piece & 0xFFFF]


@cache
def normal_table() -> NDArray[np.float64]:
    """Return 65,536 quantiles of the standard normal distribution, at the middle of as many equal shares."""
    inverse = NormalDist().inv_cdf
    half = np.array([round(inverse((i + 0.5) / _N_QUANTILES), _DIGITS) for i in range(_N_QUANTILES // 2)])
    table = np.concatenate([half, -half[::-1]])
    table.flags.writeable = False
    return table


@cache
def normal_list() -> list[float]:
    """Return `normal_table` as a list, which answers one number faster."""
    return normal_table().tolist()  # type: ignore[no-any-return]  # numpy types a list of lists of floats


def quantile(share: float) -> float:
    """Return the standard normal number that is larger than a share of all."""
    return NormalDist().inv_cdf(share)
