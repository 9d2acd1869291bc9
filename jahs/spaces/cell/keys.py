"""When two cells are the same: by the published definition, and by the function of the network.

`nb201_key` is the string by which NAS-Bench-201 counts unique cells: 6,466 among 15,625. It does not describe the
function of the network: it treats a convolution without input as zero, and two convolutions of the same input as one.

`canonical` describes the function of the network, for every activation, weight and image. Two cells have the same key
if and only if their convolutions can be matched so that, with matched weights, both compute the same function. This
holds for images of at least 3 pixels a side. The rules:

- A zero is dropped and a sum is flattened: x + x is 2x, which is not x.
- Pooling is linear, so it moves inside sums: pool(x + y) is pool(x) + pool(y).
- A convolution is one module with its own weights, wherever its output goes: a(x) + a(x) is not a(x) + b(x).
- A convolution without input is not zero: its batch normalisation has a learned bias. Its output is a learned constant,
  the same at every pixel. Pooling does not change it (padding is not counted), and a 1x1 convolution with batch
  normalisation turns it into a learned constant again. A 3x3 convolution sees the padding: its output is a learned map
  that differs at the border.
- Terms of a sum that do not depend on the image merge, since the free biases decide their value: constants into one
  constant, and constants into a map.

This gives 5,189 keys, and running networks give the same classes (`tests/pipeline/test_cell_canonical_law.py`). For
comparison, expressions that ignore the identity of convolutions and the linearity of pooling give 5,130 classes with
constants merged in sums, and 4,930 with constants dropped. Both put cells with different functions together.

Neither key describes costs: cells with the same function may differ in parameters and latency.

The classes of equal `canonical` keys are numbered by their smallest member, which represents them. Computing them takes
a second, so the package contains their table. A test computes the classes again and compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from io import BytesIO
from itertools import chain, permutations, product
from pkgutil import get_data
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.spaces.cell.index import STRING_ORDER
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, EDGES, IDENTITY, OPERATIONS, POOL, ZERO, all_ops, cell_numbers

if TYPE_CHECKING:
    from jahs.spaces.cell.value import Cell

_INPUT: Final = "x"
_CONSTANT: Final = "constant"
_BORDER: Final = "border_map"
_NAMES: Final = {CONV3X3: "conv3x3", CONV1X1: "conv1x1"}

# A term is (base, number of poolings); a base is the input, a constant, a map, or the edge of a convolution.
_Term = tuple[str | int, int]
_Value = Mapping[_Term, int]  # number of occurrences of each term in the sum
_Convolutions = dict[int, tuple[str, _Value]]  # edge: kind and input

TABLE: Final = "classes.npz"
"""The file of the package with the class of each cell number, (15625,) uint16."""


def nb201_key(cell: Cell) -> str:
    """Return the string by which NAS-Bench-201 counts unique cells.

    Example:
        >>> from jahs.spaces.cell import Cell
        >>> nb201_key(Cell((0, 2, 1, 1, 2, 0)))
        '#+#+(0)@nor_conv_3x3+(0)@nor_conv_3x3'
    """
    nodes = {1: "0"}
    incoming: dict[int, list[str]] = {}
    for edge in STRING_ORDER:
        source, target = EDGES[edge]
        op = cell.ops[edge]
        if op == ZERO or nodes[source] == "#":
            text = "#"
        elif op == IDENTITY:
            text = nodes[source]
        else:
            text = f"({nodes[source]})@{OPERATIONS[op]}"
        incoming.setdefault(target, []).append(text)
        nodes[target] = "+".join(sorted(incoming[target]))
    return nodes[4]


def canonical(cell: Cell) -> str:
    """Return the function of the cell's input x as text; equal text, equal function (see the module).

    Example:
        >>> from jahs.spaces.cell import Cell
        >>> canonical(Cell((0, 2, 4, 1, 2, 0)))
        'a=conv3x3(x) b=conv3x3(x) out=a+b+pool(x)'
    """
    convolutions: _Convolutions = {}
    nodes: dict[int, _Value] = {1: {(_INPUT, 0): 1}}
    for target in (2, 3, 4):
        edges = [edge for edge, (_, end) in enumerate(EDGES) if end == target]
        nodes[target] = _sum(_apply(cell.ops[edge], nodes[EDGES[edge][0]], edge, convolutions) for edge in edges)
    output = nodes[4]
    return min(_texts(output, {edge: convolutions[edge] for edge in _reachable(output, convolutions)}))


def _apply(op: int, value: _Value, edge: int, convolutions: _Convolutions) -> _Value:
    """Return the value at the end of an edge; add a convolution that depends on the image to `convolutions`."""
    if op == ZERO:
        return {}
    if op == IDENTITY:
        return value
    if op == POOL:
        return {(base, n if base == _CONSTANT else n + 1): count for (base, n), count in value.items()}
    if not value or (op == CONV1X1 and set(value) == {(_CONSTANT, 0)}):
        return {(_CONSTANT, 0): 1}
    if set(value) == {(_CONSTANT, 0)}:
        return {(_BORDER, 0): 1}
    convolutions[edge] = (_NAMES[op], value)
    return {(edge, 0): 1}


def _sum(values: Iterator[_Value]) -> _Value:
    total: Counter[_Term] = Counter()
    for value in values:
        total.update(value)
    for base in (_CONSTANT, _BORDER):
        if (base, 0) in total:
            total[base, 0] = 1
    if (_BORDER, 0) in total:
        total.pop((_CONSTANT, 0), None)
    return total


def _reachable(value: _Value, convolutions: _Convolutions) -> set[int]:
    """Return the edges of the convolutions that `value` depends on."""
    edges = {base for base, _ in value if isinstance(base, int)}
    return edges.union(*(_reachable(convolutions[edge][1], convolutions) for edge in edges))


def _texts(output: _Value, convolutions: _Convolutions) -> Iterator[str]:
    """Yield the text under every naming of the convolutions that could matter.

    Names follow the structure of each convolution's input; convolutions of the same structure, which only sharing
    distinguishes, try each other's names.
    """

    def structure(edge: int) -> str:
        kind, value = convolutions[edge]
        return f"{kind}({_text(value, structure)})"

    alike: dict[str, list[int]] = {}
    for edge in convolutions:
        alike.setdefault(structure(edge), []).append(edge)
    in_order = sorted(alike, key=lambda text: (len(text), text))  # an inner expression is shorter, so it comes first
    for orders in product(*(permutations(alike[text]) for text in in_order)):
        names = dict(zip(chain.from_iterable(orders), ascii_lowercase, strict=False))
        parts = [
            f"{name}={convolutions[edge][0]}({_text(convolutions[edge][1], names.__getitem__)})"
            for edge, name in names.items()
        ]
        yield " ".join([*parts, f"out={_text(output, names.__getitem__)}"])


def _text(value: _Value, name: Callable[[int], str]) -> str:
    """Return the sum as text, in an order that only depends on the names."""
    terms = []
    for (base, n_pools), count in value.items():
        term = name(base) if isinstance(base, int) else base
        term = "pool(" * n_pools + term + ")" * n_pools
        terms.append(term if count == 1 else f"{count}*{term}")
    return "+".join(sorted(terms)) or "0"


def canonical_keys(ops: ArrayLike) -> NDArray[np.int64]:
    """Return the number of each row's class, (n,), for `ops` of shape (n, 6): equal numbers, equal functions."""
    return _classes()[0][cell_numbers(ops)]


def representatives() -> NDArray[np.int64]:
    """Return the smallest cell of each class in the order of Op1 .. Op6, (n_classes, 6); row i is of class i."""
    return all_ops()[_classes()[1]]


@cache
def _classes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the class of each cell number, (15625,), and the number of each class's smallest cell, (n_classes,)."""
    table = get_data("jahs.spaces.cell", TABLE)  # reads zips, too, and loads in a tenth of importlib.resources' time
    assert table is not None, "loaders of packages read data"
    with np.load(BytesIO(table), allow_pickle=False) as file:
        classes = file["classes"].astype(np.int64)
    return classes, np.unique(classes, return_index=True)[1]
