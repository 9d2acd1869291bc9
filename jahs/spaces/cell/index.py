"""NAS-Bench-201's two names for a cell: the architecture string and the number in its published list.

The string is grouped by target node, so its order of edges differs from Op1 .. Op6. The published list has every
string in product order, shuffled by the standard library's generator with seed 88; the shuffle runs on first use.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.errors import InvalidArgument
from jahs.spaces.cell.operations import EDGES, N_CELLS, OPERATIONS, cell_numbers
from jahs.spaces.parameters import as_index, show

STRING_ORDER: Final = tuple(sorted(range(len(EDGES)), key=lambda edge: EDGES[edge][::-1]))
"""Columns of the edges in the string's order: Op1, Op2, Op4, Op3, Op5, Op6."""

_TARGETS: Final = (2, 3, 4)
_PRODUCT_ORDER: Final = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
_ADVICE: Final = (
    "it must be like '|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|nor_conv_1x1~1|skip_connect~2|'"
)


def string_from_ops(ops: Sequence[int]) -> str:
    """Return the architecture string of six codes in JAHS order."""
    groups = dict.fromkeys(_TARGETS, "|")
    for edge in STRING_ORDER:
        source, target = EDGES[edge]
        groups[target] += f"{OPERATIONS[ops[edge]]}~{source - 1}|"
    return "+".join(groups.values())


def ops_from_string(text: str) -> tuple[int, ...]:
    """Read six codes in JAHS order from an architecture string; InvalidArgument has a line for every fault."""
    if not isinstance(text, str):
        raise InvalidArgument(f"architecture string {text!r} is a {type(text).__name__}; {_ADVICE}")
    groups = text.split("+")
    if len(groups) != len(_TARGETS):
        raise InvalidArgument(
            f"architecture string {text!r} has {len(groups)} groups joined by '+', not {len(_TARGETS)}; {_ADVICE}"
        )
    ops = [0] * len(EDGES)
    faults = []
    for target, group in zip(_TARGETS, groups, strict=True):
        edges = [edge for edge in STRING_ORDER if EDGES[edge][1] == target]
        parts = group.split("|")
        if len(parts) != len(edges) + 2 or parts[0] or parts[-1]:
            faults.append(f"group {group!r} of node {target}: must hold {len(edges)} edges between '|'")
            continue
        for edge, part in zip(edges, parts[1:-1], strict=True):
            ops[edge] = _operation(part, edge, faults)
    if faults:
        raise InvalidArgument("\n".join([f"architecture string {text!r}: {_ADVICE}", *faults]))
    return tuple(ops)


def _operation(part: str, edge: int, faults: list[str]) -> int:
    """Return the code in `part`, such as `none~0`; add its faults to `faults`."""
    source, target = EDGES[edge]
    name, tilde, number = part.partition("~")
    where = f"edge {part!r} into node {target}"
    if not tilde:
        faults.append(f"{where}: must be an operation, '~' and its source")
        return 0
    if re.fullmatch(r"[0-9]", number) is None or int(number) != source - 1:
        faults.append(f"{where}: its source must be {source - 1}, not {number!r}")
    if name not in OPERATIONS:
        faults.append(f"{where}: unknown operation {name!r}; allowed are {', '.join(OPERATIONS)}")
        return 0
    return OPERATIONS.index(name)


def nb201_indices(ops: ArrayLike) -> NDArray[np.int64]:
    """Return the number in the published list of each row of `ops`, (n, 6)."""
    indices: NDArray[np.int64] = _published()[1][cell_numbers(ops)]
    return indices


def ops_at(indices: ArrayLike) -> NDArray[np.int64]:
    """Return the operations, (n, 6), of the cells at these numbers of the published list, (n,)."""
    ops: NDArray[np.int64] = _published()[0][np.asarray(indices)]
    return ops


def index_of_number(index: object) -> int:
    """Return `index` as a built-in integer; InvalidArgument if the published list has no such number."""
    allowed = f"allowed are the integers 0 to {N_CELLS - 1}"
    if (number := as_index(index)) is None:
        raise InvalidArgument(f"NAS-Bench-201 index {show(index)} is a {type(index).__name__}; {allowed}")
    if not 0 <= number < N_CELLS:
        raise InvalidArgument(f"NAS-Bench-201 index {show(number)} is out of range; {allowed}")
    return number


@cache
def _published() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the operations in the list's order, (15625, 6), and each cell number's position in the list, (15625,)."""
    places = list(range(N_CELLS))
    random.Random(88).shuffle(places)  # noqa: S311  # not for secrets: the published list was made with it
    base = len(_PRODUCT_ORDER)
    digits = np.array(places)[:, None] // base ** np.arange(len(EDGES) - 1, -1, -1) % base  # in the string's order
    codes = np.array([OPERATIONS.index(name) for name in _PRODUCT_ORDER])
    ops = np.empty((N_CELLS, len(EDGES)), dtype=np.int64)
    ops[:, STRING_ORDER] = codes[digits]
    indices = np.empty(N_CELLS, dtype=np.int64)
    indices[cell_numbers(ops)] = np.arange(N_CELLS)
    return ops, indices
