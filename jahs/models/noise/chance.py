"""Counter-based normal numbers: number i of a key is a pure function of both, so nothing has to be drawn in order.

A key is a 64-bit number; word i of a key is one step of SplitMix64 (Steele, Lea, Flood 2014) at state key + i * GOLDEN.
Each word gives four normal numbers, looked up by its 16-bit pieces in one table of quantiles. Every function is
here twice, for Python's integers and for arrays, and both give the same bits.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

PIECES: Final = 4
"""Normal numbers in a word."""

_MASK: Final = 2**64 - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
_GOLDEN_64, _FIRST_64, _SECOND_64 = np.uint64(_GOLDEN), np.uint64(_FIRST), np.uint64(_SECOND)
_N_QUANTILES: Final = 2**16
_DIGITS: Final = 9  # so that the platform's logarithm does not decide the last bits


def word(key: int, counter: int) -> int:
    """Return word `counter` of a key; a negative counter counts as its two's complement."""
    z = (key + counter * _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


def words(keys: NDArray[np.uint64], counters: NDArray[np.uint64] | int) -> NDArray[np.uint64]:
    """Return `word` of each key and counter."""
    step = np.uint64(counters * _GOLDEN & _MASK) if isinstance(counters, int) else counters * _GOLDEN_64
    z: NDArray[np.uint64] = keys + step
    z ^= z >> np.uint64(30)
    z *= _FIRST_64
    z ^= z >> np.uint64(27)
    z *= _SECOND_64
    z ^= z >> np.uint64(31)
    return z


def run_key(salt: int, config_id: int, seed: int) -> int:
    """Return the key of everything that is random in one training."""
    return word(word(salt, config_id), seed)


def run_keys(salt: int, config_ids: NDArray[np.uint64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the `run_key` of each config and seed."""
    return words(words(np.full(len(config_ids), salt, dtype=np.uint64), config_ids), seeds)


def normals(of_words: NDArray[np.uint64], piece: int) -> NDArray[np.float64]:
    """Return one of the four normal numbers of each word: the entry of `normal_table` at a piece of 16 bits."""
    entries = ((of_words >> np.uint64(16 * piece)) & np.uint64(0xFFFF)).astype(np.intp)
    return np.asarray(normal_table()[entries])


@cache
def normal_table() -> NDArray[np.float64]:
    """Return 65,536 quantiles of the standard normal distribution, at the midpoints of 65,536 equal shares."""
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
    """Return the quantile of the standard normal distribution at a share."""
    return NormalDist().inv_cdf(share)
