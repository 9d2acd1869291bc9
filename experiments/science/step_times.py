"""How operations change the time of a training step, from the profiles that a release records.

The logarithm of the time is regressed on the number of edges with each operation, and on activation and TrivialAugment.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from experiments.science.subjects import Spread, spread_of
from jahs.comparison.logs import Floats
from jahs.files.tables import take
from jahs.release import RecordedTable
from jahs.spaces.cell import OPERATIONS
from jahs.spaces.parameters import LARGEST
from workshop.exhaustive import ops_of
from workshop.measured import rows_of

_FEWEST: Final = 30  # configs of a regression
_N_RESAMPLES: Final = 1000
_OTHER_KEYS: Final = ("Activation", "TrivialAugment")


def step_changes(recorded: RecordedTable) -> Spread | None:
    """Return the change of a step's time in percent when one operation is replaced, (5, 5); None for too few profiles.

    Row a, column b: an edge with operation a against the same edge with b, in networks of full size. The spread is that
    of a bootstrap over configs.
    """
    profile = take(recorded.profile, np.isfinite(recorded.profile["step_time_s"]))
    configs = rows_of(recorded.configs, profile["config_id"])
    is_full = np.all([configs[key] == value for key, value in LARGEST.items()], axis=0)
    configs, n = take(configs, is_full), int(is_full.sum())
    if n < _FEWEST:
        return None
    logs = np.log(profile["step_time_s"][is_full].astype(np.float64))
    edges = (ops_of(configs)[:, :, None] == np.arange(len(OPERATIONS))).sum(axis=1)
    others = [configs[key] == value for key in _OTHER_KEYS for value in np.unique(configs[key])[1:]]
    design = np.column_stack([edges, *others]).astype(np.float64)

    def changes(at: NDArray[np.int64]) -> Floats:
        factors = np.linalg.lstsq(design[at], logs[at])[0][: len(OPERATIONS)]
        return np.asarray(100 * np.expm1(factors - factors[:, None]))

    rng = np.random.default_rng(0)
    return spread_of([changes(np.arange(n)), *(changes(rng.integers(n, size=n)) for _ in range(_N_RESAMPLES))])
