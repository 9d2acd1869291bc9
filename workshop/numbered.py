"""Numbered streams of uniform configs: config number i of a stream is a pure function of (seed, i).

Each number reads its own four blocks of one Philox stream, so no two numbers overlap, wherever they are drawn. (In
JAHS-Bench-201, the streams of the workers were the same stream shifted by one block, so the same configs were drawn
again and again.)
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from randomgen import Philox  # type: ignore[import-untyped]  # ships no types

from jahs.spaces.columns import Columns
from jahs.spaces.parameters import LARGEST, PARAMETERS
from jahs.spaces.space import space

SAMPLE_SEED: Final = 20_261  # key of the stream that the recorded configs come from
FULL_SEED: Final = 20_262  # key of the stream of configs at full size
FINAL_SEED: Final = 20_263  # key of the stream at full size that the final test set comes from
REPEATED_EVERY: Final = 10
"""Every tenth config of the recorded stream is trained with three seeds, whatever its results."""

FIDELITY_GROUPS: Final = tuple(product(*(PARAMETERS[key].choices for key in LARGEST)))
"""The 27 values of (N, W, Resolution); number i belongs to the group i mod 27."""

N_GROUPS: Final = len(FIDELITY_GROUPS)
_WORDS_PER_CONFIG: Final = 16  # four of Philox's blocks; a config needs 14


def sample_range(start: int, stop: int, *, seed: int = SAMPLE_SEED) -> Columns:
    """Return configs number `start` to `stop - 1` as one array per key, the fidelity groups in turn."""
    columns = _draw(start, stop, seed=seed)
    groups = np.array(FIDELITY_GROUPS)[np.arange(start, stop) % N_GROUPS]
    for j, key in enumerate(LARGEST):
        columns[key] = groups[:, j].astype(columns[key].dtype)
    return columns


def full_range(start: int, stop: int, *, seed: int = FULL_SEED) -> Columns:
    """Return configs number `start` to `stop - 1` of a stream at full size."""
    columns = _draw(start, stop, seed=seed)
    for key, value in LARGEST.items():
        columns[key] = np.full_like(columns[key], value)
    return columns


def _draw(start: int, stop: int, *, seed: int) -> Columns:
    stream = Philox(key=seed, counter=start * _WORDS_PER_CONFIG // 4, number=4, width=64)
    words = stream.random_raw(_WORDS_PER_CONFIG * (stop - start)).reshape(-1, _WORDS_PER_CONFIG)
    return space().columns_from_words(words[:, : len(PARAMETERS)])
