"""Seeds: integers in 0..2**63-1, Python's or numpy's; bools and durations are refused, and nothing is rounded.

Only `Space.sample` takes one bit more, since samples of such seeds are frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument
from jahs.spaces.parameters import is_integer, refuse_masked, show

SEED_RANGE: Final = "0..2**63-1"
_MOST_SEEDS: Final = 2**63

Seeds: TypeAlias = "int | npt.NDArray[np.int64] | None"
"""One seed for all configs, one for each, or None for the mean."""


def is_seed(value: object, *, bits: int = 63) -> bool:
    """Return whether this is a seed."""
    return is_integer(value) and bool(0 <= value < 2**bits)


def read_seed(seed: object, *, name: str = "seed", or_else: str = "", bits: int = 63) -> int:
    """Return a seed as a built-in integer; `or_else` names other allowed values in the message."""
    if isinstance(seed, np.ndarray) and seed.ndim == 0:
        seed = seed[()]
    if not is_seed(seed, bits=bits):
        raise InvalidArgument(f"{name}={show(seed)} is not an integer in 0..2**{bits}-1{or_else}")
    return int(seed)  # type: ignore[call-overload,no-any-return]  # an integer, as was just checked


def read_optional_seed(seed: object, *, or_else: str = ", or None") -> int | None:
    """Return a seed as a built-in integer, or None; raises as `read_seed`."""
    return None if seed is None else read_seed(seed, or_else=or_else)


def read_seeds(seed: object, n_configs: int) -> Seeds:
    """Return one seed for all configs, an array of one for each, or None.

    Seeds for each are an array, a list, or anything else that numpy accepts as an array (a Series).

    Raises:
        InvalidArgument: a seed is not an integer in 0..2**63-1, or their number differs from the configs'.
    """
    if isinstance(seed, Sequence) and not isinstance(seed, str | bytes):
        if any(value is None for value in seed):
            raise InvalidArgument(f"seed={show(seed)} holds None; leave the seed out for the mean of every config")
        seeds = np.array(
            [read_seed(value, or_else=", or None") for value in seed], dtype=np.int64
        )  # numpy would take [1, True] for integers
    elif hasattr(seed, "__array__") and np.ndim(seed):
        refuse_masked("seed", seed)
        seeds = np.asarray(seed)
    else:
        return read_optional_seed(seed, or_else=f", or None, or an array of one for each of {n_configs} configs")
    if seeds.ndim != 1 or seeds.dtype.kind not in "iu" or len(seeds) != n_configs:
        given = f"{seeds.dtype} of shape {seeds.shape}"
        raise InvalidArgument(f"seed: {given}; give an integer, or an array of one for each of {n_configs} configs")
    is_bad = (seeds < 0) | (seeds >= _MOST_SEEDS)
    if is_bad.any():
        read_seed(seeds[int(is_bad.argmax())], or_else=", or None")
    return seeds.astype(np.int64)
