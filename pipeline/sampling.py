"""Which configs are trained, in which order, with which seeds: config number i is a pure function of (seed, i).

Number i belongs to fidelity group i mod 27, so that every prefix is balanced; every tenth number is trained with three
seeds, and as 10 and 27 have no common factor the repeats are balanced too. A number reads four blocks of one Philox
stream that nobody else reads: no two numbers overlap, wherever they are drawn. (JAHS-Bench-201 gave every worker a
stream of its own by counting the same stream up by one block, and so drew the same configs again and again.)

A second stream of a key of its own is uniform at full size (N=5, W=16, Resolution=1). The first of it, as a list for
`pipeline.collect --source full`:

    python -m pipeline.sampling --full 200 > full.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from randomgen import Philox  # type: ignore[import-untyped]  # ships no types

from jahs.cli.stdout import write_stdout
from jahs.errors import InvalidArgument
from jahs.files.tables import Table, typed
from jahs.schema import CONFIG_TABLE_COLUMNS, SOURCE_DEFAULTS
from jahs.spaces.columns import Columns, config_ids, rows
from jahs.spaces.configs import Config
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.space import space

__all__ = [
    "FIDELITY_GROUPS",
    "FULL_SEED",
    "N_GROUPS",
    "SAMPLE_SEED",
    "config_table",
    "full_range",
    "group_positions",
    "main",
    "run_seeds",
    "sample_config",
    "sample_range",
]

_SIZES: Final = ("N", "W", "Resolution")

SAMPLE_SEED: Final = 20_261
"""Key of the stream that the recorded configs come from."""

FULL_SEED: Final = 20_262
"""Key of the stream of configs at full size."""

FIDELITY_GROUPS: Final = tuple(product(*(PARAMETERS[key].choices for key in _SIZES)))
"""The 27 values of (N, W, Resolution); number i belongs to the group i mod 27."""

N_GROUPS: Final = len(FIDELITY_GROUPS)
_WORDS_PER_CONFIG: Final = 16  # four of Philox's blocks; a config needs 14
_EVERY: Final = 10
_REPEATS: Final = (0, 1, 2)


def sample_range(start: int, stop: int, *, seed: int = SAMPLE_SEED) -> Columns:
    """Return configs number `start` to `stop - 1` as one array per key.

    Raises:
        InvalidArgument: not 0 <= start <= stop, or a negative seed.
    """
    columns = _draw(start, stop, seed=seed)
    groups = np.array(FIDELITY_GROUPS)[np.arange(start, stop) % N_GROUPS]
    for j, key in enumerate(_SIZES):
        columns[key] = groups[:, j].astype(columns[key].dtype)
    return columns


def full_range(start: int, stop: int) -> Columns:
    """Return configs number `start` to `stop - 1` of the stream at full size; raises as `sample_range`."""
    columns = _draw(start, stop, seed=FULL_SEED)
    for key, value in zip(_SIZES, FIDELITY_GROUPS[-1], strict=True):
        columns[key] = np.full_like(columns[key], value)
    return columns


def _draw(start: int, stop: int, *, seed: int) -> Columns:
    faults = [
        f"{name}={value!r} is not an integer >= 0" for name, value in (("start", start), ("seed", seed)) if value < 0
    ]
    if stop < start:
        faults.append(f"stop={stop} is before start={start}")
    if faults:
        raise InvalidArgument("\n".join(faults))
    stream = Philox(key=seed, counter=start * _WORDS_PER_CONFIG // 4, number=4, width=64)
    words = stream.random_raw(_WORDS_PER_CONFIG * (stop - start)).reshape(-1, _WORDS_PER_CONFIG)
    return space().columns_from_words(words[:, : len(PARAMETERS)])


def sample_config(number: int, *, seed: int = SAMPLE_SEED) -> Config:
    """Return config number `number`."""
    return rows(sample_range(number, number + 1, seed=seed))[0]


def group_positions(configs: Table) -> NDArray[np.int64]:
    """Return the position in `FIDELITY_GROUPS` of each row's fidelity group."""
    positions = {group: i for i, group in enumerate(FIDELITY_GROUPS)}
    values = zip(*(configs[key].tolist() for key in _SIZES), strict=True)
    return np.array([positions[value] for value in values], dtype=np.int64)


def config_table(start: int, stop: int) -> Table:
    """Return configs number `start` to `stop - 1` as rows of the config table."""
    columns = sample_range(start, stop)
    ids = config_ids(columns)
    table = {"config_id": ids, "config_index": np.arange(start, stop), **columns}
    table |= {name: np.full(stop - start, value) for name, value in SOURCE_DEFAULTS.items()}
    return typed(table, CONFIG_TABLE_COLUMNS)


def run_seeds(number: int) -> tuple[int, ...]:
    """Return the seeds that config number `number` is trained with."""
    return _REPEATS if number % _EVERY == 0 else _REPEATS[:1]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.sampling",
        description="Write the first configs of the stream at full size, one JSON object a line.",
        epilog="Example: python -m pipeline.sampling --full 200 > full.jsonl; then pipeline.collect ... "
        "--configs full.jsonl --source full",
    )
    parser.add_argument("--full", type=int, required=True, metavar="K", help="how many")
    n_configs = parser.parse_args(argv).full
    if n_configs < 1:
        parser.error(f"--full {n_configs} is not at least 1")
    write_stdout("\n".join(json.dumps({"config": config}) for config in rows(full_range(0, n_configs))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
