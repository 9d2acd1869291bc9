"""The law of `canonical`: equal keys, equal functions, and only then.

Every cell is run with real convolutions and batch normalisations under every assignment of a common stock of weights
to those of its convolutions that depend on the image. Two cells compute the same function if and only if they reach
the same outputs. The classes found that way, which know nothing of the key, must be those of the key.

What does not depend on the image is decided by biases, which are free: they are set so that at every node
where such terms arrive, these have one agreed mean per channel. `PlainCell.settle` does that to real biases.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, permutations, product

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from jahs.spaces.cell import EDGES, Cell, all_ops, canonical, canonical_keys, nb201_key
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, IDENTITY, POOL, ZERO, cell_numbers

N_CHANNELS = 4
SHAPE = (3, N_CHANNELS, 6, 6)
ACTIVATIONS = {"relu": functional.relu, "hardswish": functional.hardswish, "mish": functional.mish}
TOLERANCE = 1e-9  # equal outputs differ by rounding in double precision, different ones by about 1

Assignment = dict[int, nn.Module]  # edge: its weights


class ConvBN(nn.Module):
    """Activation, convolution, batch normalisation with random statistics, scale and bias."""

    def __init__(self, size: int, *, activation: str, is_training: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.conv = nn.Conv2d(N_CHANNELS, N_CHANNELS, size, padding=size // 2, bias=False, dtype=torch.float64)
        self.norm = nn.BatchNorm2d(N_CHANNELS, momentum=0.0, dtype=torch.float64)  # momentum 0: statistics stay
        self.train(is_training)
        for tensor in (self.conv.weight, self.norm.bias, self.norm.weight, self.norm.running_mean):
            tensor.data.normal_(generator=generator)
        self.norm.running_var.uniform_(0.5, 2.0, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(self.activation(x)))


class Stock:
    """Weights that all cells share: six convolutions of each size, and those whose input is a constant."""

    def __init__(self, *, activation: str, is_training: bool) -> None:
        generator = torch.Generator().manual_seed(20)

        def conv(size: int) -> ConvBN:
            return ConvBN(size, activation=activation, is_training=is_training, generator=generator)

        self.x = torch.randn(SHAPE, generator=generator, dtype=torch.float64)
        self.probe = torch.randn(SHAPE, generator=generator, dtype=torch.float64)
        self.mean = torch.randn(N_CHANNELS, generator=generator, dtype=torch.float64)[:, None, None]  # agreed
        self.convs = {CONV3X3: [conv(3) for _ in range(6)], CONV1X1: [conv(1) for _ in range(6)]}
        self.on_constants = {CONV3X3: conv(3), CONV1X1: conv(1)}


def _pool(x: Tensor) -> Tensor:
    return functional.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)


class PlainCell(nn.Module):
    """A cell as a network would hold it: a module on each edge, a sum at each node."""

    def __init__(self, ops: tuple[int, ...], stock: Stock, assignment: Assignment) -> None:
        super().__init__()
        self.ops = ops
        self.convs = nn.ModuleDict(
            {
                str(edge): copy.deepcopy(assignment.get(edge, stock.on_constants[op]))
                for edge, op in enumerate(ops)
                if op in (CONV3X3, CONV1X1)
            }
        )

    def apply_edge(self, edge: int, x: Tensor) -> Tensor:
        op = self.ops[edge]
        if op == ZERO:
            return x * 0.0
        if op == IDENTITY:
            return x
        return _pool(x) if op == POOL else self.convs[str(edge)](x)

    def forward(self, x: Tensor) -> Tensor:
        nodes = {1: x}
        for node in (2, 3, 4):
            nodes[node] = sum(self.apply_edge(edge, nodes[source]) for edge, source in _into(node))
        return nodes[4]

    def settle(self, mean: Tensor) -> None:
        """Set the bias of one convolution per node so that terms without the image have this mean."""
        fixed = {1: torch.zeros(SHAPE, dtype=torch.float64)}  # the part of each node without the image
        seeing = _seeing(self.ops)
        for node in (2, 3, 4):
            terms, free = [torch.zeros(SHAPE, dtype=torch.float64)], None
            for edge, source in _into(node):
                if str(edge) not in self.convs:
                    terms.append(self.apply_edge(edge, fixed[source]))
                elif source not in seeing:
                    terms.append(self.apply_edge(edge, fixed[source]))
                    free = self.convs[str(edge)]
            fixed[node] = sum(terms)
            if free is not None:
                shift = mean - fixed[node].mean((0, 2, 3))[:, None, None]
                free.norm.bias += shift[:, 0, 0]
                fixed[node] = fixed[node] + shift


def _into(node: int) -> list[tuple[int, int]]:
    return [(edge, source) for edge, (source, target) in enumerate(EDGES) if target == node]


def _seeing(ops: tuple[int, ...]) -> set[int]:
    """Nodes that depend on the image."""
    seeing = {1}
    for edge, (source, target) in enumerate(EDGES):  # EDGES is sorted by source
        if ops[edge] != ZERO and source in seeing:
            seeing.add(target)
    return seeing


def _assignments(ops: tuple[int, ...], stock: Stock) -> Iterator[Assignment]:
    """Every way to give stock to the convolutions that carry the image to the output."""
    heard = {4}
    for edge, (source, target) in reversed(list(enumerate(EDGES))):
        if ops[edge] != ZERO and target in heard:
            heard.add(source)
    seeing = _seeing(ops)
    edges = [edge for edge, (source, target) in enumerate(EDGES) if source in seeing and target in heard]
    by_size = {op: [edge for edge in edges if ops[edge] == op] for op in (CONV3X3, CONV1X1)}
    orders = [permutations(stock.convs[op][: len(by_size[op])]) for op in by_size]
    for order in product(*orders):
        yield dict(zip(chain(*by_size.values()), chain(*order), strict=True))


class FastOutputs:
    """The same outputs as `PlainCell` after `settle`, probed, with every tensor computed once over all cells.

    A value is a pair: the part that depends on the image, and the part that does not; either may be None.
    """

    def __init__(self, stock: Stock) -> None:
        self.stock = stock
        self.values: dict[tuple, tuple[Tensor | None, Tensor | None]] = {}
        self.probes: dict[tuple, tuple[float, Tensor | None]] = {}

    def probe(self, ops: tuple[int, ...], assignment: Assignment) -> float:
        steps = [(op, id(assignment[edge]) if edge in assignment else 0) for edge, op in enumerate(ops)]
        to_2 = (steps[0],)
        to_3 = (steps[0], steps[1], steps[3])
        total, fixed = 0.0, []
        for edge, past in ((2, ()), (4, to_2), (5, to_3)):
            term, constant = self._probe_term(past, steps[edge], assignment.get(edge), assignment)
            total += term
            fixed += [] if constant is None else [constant]
        if fixed:
            total += float((self._centred(sum(fixed)) * self.stock.probe).sum())
        return total

    def _probe_term(self, past, step, conv, assignment) -> tuple[float, Tensor | None]:
        key = (past, step)
        if key not in self.probes:
            seen, fixed = self._edge(self._node(past, assignment), step[0], conv)
            self.probes[key] = (0.0 if seen is None else float((seen * self.stock.probe).sum()), fixed)
        return self.probes[key]

    def _node(self, past, assignment) -> tuple[Tensor | None, Tensor | None]:
        if past not in self.values:
            edges = ((), (0,), None, (0, 1, 3))[len(past)]
            if edges == ():
                value = (self.stock.x, None)
            elif edges == (0,):
                value = self._edge((self.stock.x, None), past[0][0], assignment.get(0))
            else:
                second = self._node(past[:1], assignment)
                value = self._sum(
                    self._edge((self.stock.x, None), past[1][0], assignment.get(1)),
                    self._edge(second, past[2][0], assignment.get(3)),
                )
            self.values[past] = value
        return self.values[past]

    def _edge(self, value, op, conv) -> tuple[Tensor | None, Tensor | None]:
        seen, fixed = value
        if op == ZERO:
            return None, None
        if op == IDENTITY:
            return value
        if op == POOL:
            return (None if seen is None else _pool(seen)), (None if fixed is None else _pool(fixed))
        if seen is None:
            source = torch.zeros(SHAPE, dtype=torch.float64) if fixed is None else fixed
            return None, self._centred(self.stock.on_constants[op](source))
        if conv is None:
            return None, None  # it leads nowhere: no assignment has weights for it
        return conv(seen if fixed is None else seen + fixed), None

    def _sum(self, *values) -> tuple[Tensor | None, Tensor | None]:
        seen = [value[0] for value in values if value[0] is not None]
        fixed = [value[1] for value in values if value[1] is not None]
        return (sum(seen) if seen else None), (self._centred(sum(fixed)) if fixed else None)

    def _centred(self, fixed: Tensor) -> Tensor:
        return fixed - fixed.mean((0, 2, 3))[:, None, None] + self.stock.mean


CASES = [("mish", True), ("hardswish", False)]


@cache
def _stock(activation: str, is_training: bool) -> Stock:
    return Stock(activation=activation, is_training=is_training)


@cache
def _functions(activation: str, is_training: bool) -> np.ndarray:
    """For each cell the smallest probed output over all assignments: equal functions, equal numbers."""
    stock = _stock(activation, is_training)
    outputs = FastOutputs(stock)
    with torch.no_grad():
        return np.array(
            [
                min(outputs.probe(ops, assignment) for assignment in _assignments(ops, stock))
                for ops in map(tuple, all_ops().tolist())
            ]
        )


def _function_classes(activation: str, is_training: bool) -> np.ndarray:
    values = _functions(activation, is_training)
    order = np.argsort(values)
    gaps = np.diff(values[order])
    assert not np.any((gaps > TOLERANCE / 100) & (gaps < TOLERANCE * 10)), "no gap lies near the tolerance"
    classes = np.empty(len(values), dtype=np.int64)
    classes[order] = np.concatenate([[0], np.cumsum(gaps > TOLERANCE)])
    return classes


def _n_classes(*labels: np.ndarray) -> int:
    return len(np.unique(np.column_stack(labels), axis=0))


def _is_same_partition(keys: np.ndarray, classes: np.ndarray) -> bool:
    return _n_classes(keys) == _n_classes(classes) == _n_classes(keys, classes)


@pytest.mark.parametrize(("activation", "is_training"), CASES)
def test_keys_are_equal_exactly_where_the_networks_compute_the_same(activation, is_training):
    assert _is_same_partition(canonical_keys(all_ops()), _function_classes(activation, is_training))


@pytest.mark.parametrize(("activation", "is_training"), CASES)
def test_the_probed_outputs_are_those_of_a_plain_cell_with_settled_biases(activation, is_training):
    stock, functions = _stock(activation, is_training), _functions(activation, is_training)
    sample = np.random.default_rng(3).choice(len(functions), 120, replace=False).tolist()
    with_a_map = Cell((1, 1, 0, 2, 3, 2))
    sample.append(int(cell_numbers([with_a_map.ops])[0]))
    with torch.no_grad():
        for ops in map(tuple, all_ops()[sample].tolist()):
            outputs = []
            for assignment in _assignments(ops, stock):
                cell = PlainCell(ops, stock, assignment)
                cell.settle(stock.mean)
                outputs.append(float((cell(stock.x) * stock.probe).sum()))
            assert min(outputs) == pytest.approx(functions[int(cell_numbers([ops])[0])], abs=TOLERANCE)


def _without_sharing(cell: Cell) -> str:
    """The key with each name replaced by what it stands for: two convolutions of one input look the same."""
    *definitions, output = canonical(cell).split(" ")
    for definition in reversed(definitions):
        name, _, text = definition.partition("=")
        output = re.sub(rf"\b{name}\b", text, output)
    return output


def _without_constants(cell: Cell) -> str:
    return re.sub(r"\+?(constant|border_map)", "", canonical(cell))


def _live_operations(cell: Cell) -> tuple[object, ...]:
    """A key that is too fine: the paths that are alive, operation by operation."""
    return tuple(path.operations for path in cell.paths if path.is_alive), canonical(cell)


@pytest.mark.parametrize("wrong", [nb201_key, _without_sharing, _without_constants, _live_operations])
def test_the_law_notices_a_wrong_key(wrong: Callable[[Cell], object]):
    numbers: dict[object, int] = {}
    keys = [numbers.setdefault(wrong(Cell(tuple(ops))), len(numbers)) for ops in all_ops().tolist()]
    assert not _is_same_partition(np.array(keys), _function_classes(*CASES[0]))
