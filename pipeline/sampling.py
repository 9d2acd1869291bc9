"""Choose the configs of the numbered stream, and their seeds.

Number i belongs to fidelity group i mod 27, so that every prefix is balanced; every tenth number is trained with three
seeds, and as 10 and 27 have no common factor the repeats are balanced too. `workshop.numbered` draws the configs.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.files.tables import Table, typed
from jahs.schema import CONFIG_TABLE_COLUMNS, SIZE_KEYS, SOURCE_DEFAULTS
from jahs.spaces.columns import config_ids, rows
from jahs.spaces.configs import Config
from workshop.numbered import FIDELITY_GROUPS, REPEATED_EVERY, sample_range

_REPEATS: Final = (0, 1, 2)


def sample_config(number: int) -> Config:
    """Return config number `number`."""
    return rows(sample_range(number, number + 1))[0]


def group_positions(configs: Table) -> NDArray[np.int64]:
    """Return the position in `FIDELITY_GROUPS` of each row's fidelity group."""
    positions = {group: i for i, group in enumerate(FIDELITY_GROUPS)}
    values = zip(*(configs[key].tolist() for key in SIZE_KEYS), strict=True)
    return np.array([positions[value] for value in values], dtype=np.int64)


def config_table(start: int, stop: int) -> Table:
    """Return configs number `start` to `stop - 1` as rows of the config table."""
    columns = sample_range(start, stop)
    numbers = {"config_id": config_ids(columns), "config_index": np.arange(start, stop)}
    return typed({**numbers, **columns, **SOURCE_DEFAULTS}, CONFIG_TABLE_COLUMNS)


def run_seeds(number: int) -> tuple[int, ...]:
    """Return the seeds that config number `number` is trained with."""
    return _REPEATS if number % REPEATED_EVERY == 0 else _REPEATS[:1]
