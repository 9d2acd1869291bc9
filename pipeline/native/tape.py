"""The tape of a network: its operations in order, on numbered tensors, as `engine.c` executes them.

Operations from which no path leads to the logits are left out: they do not change the loss, and torch leaves their
parameters without a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from jahs.spaces.cell import EDGES
from jahs.spaces.cell.operations import IDENTITY, POOL, ZERO
from pipeline.network import CellBlock, ConvBN, Network, ReductionBlock

SCRATCH: Final = 0
IMAGES: Final = 1
_SPAN: Final = 16  # unused floats between two channels
_POINTS: Final = 36  # points of a tile in Winograd's domain
_MOST_TILES: Final = 2  # tiles transformed at the same time
_BLOCK: Final = 4  # channels that a kernel reads and writes at once; images get channels of zeros
_MOST_CHANNELS: Final = 1024


class Kind(IntEnum):
    """The operations, as `engine.c` numbers them."""

    CONVOLVE_NORM = 0
    CONVOLVE = 1
    ACTIVATE = 2
    COPY = 3
    POOL = 4
    HALVE = 5
    NORM = 6
    CLASSIFY = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation: the fields of `op_t` in engine.c, in its order.

    Attributes:
        source, target: the tensor that is read, and the one that is assigned or added to.
        n_in, n_out: channels of source and target.
        side, side_out: image sides of source and target, in pixels.
        kernel, stride: kernel size and stride of a convolution.
        weight: offset of the weights of a convolution or the classifier in the array of all parameters.
        norm, running: offsets of a BatchNorm's parameters and running statistics in the arrays of all of them.
        raw: the tensor that holds a convolution's output before BatchNorm.
        is_first_value: whether the target is assigned rather than added to.
        is_first_grad: whether the source's gradient is assigned rather than added to.
        needs_grad: whether the gradient of the source is computed.
    """

    kind: Kind
    source: int
    target: int
    n_in: int
    n_out: int
    side: int
    side_out: int
    kernel: int = 0
    stride: int = 1
    weight: int = 0
    norm: int = 0
    running: int = 0
    raw: int = 0
    is_first_value: bool = False
    is_first_grad: bool = False
    needs_grad: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """The operations, and the memory that they need.

    Attributes:
        ops: (n_ops, 16), the fields of `Op`.
        value_at, grad_at: offset of each tensor's value and gradient, in floats.
        n_values, n_grads, n_work: floats of all values, of all gradients, and of scratch memory.
    """

    ops: NDArray[np.int32]
    value_at: NDArray[np.int64]
    grad_at: NDArray[np.int64]
    n_values: int
    n_grads: int
    n_work: int


def plane(side: int, batch: int) -> int:
    """Return the floats from one channel of a tensor to the next: PLANE of engine.c."""
    return side * side * batch + _SPAN


@dataclass(slots=True)
class _Writer:
    """Writes operations in order; `channels`, `sizes` (floats) and `blocks` have one entry per tensor so far."""

    place_of: Callable[[Tensor], int]
    batch: int
    ops: list[Op] = field(default_factory=list)
    channels: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    block: int = 0

    def tensor(self, n_channels: int, side: int) -> int:
        """Return the number of a new tensor."""
        self.channels.append(n_channels)
        self.sizes.append(n_channels * plane(side, self.batch))
        self.blocks.append(self.block)
        return len(self.sizes) - 1

    def convolve_norm(self, layer: ConvBN, source: int, target: int, side: int) -> None:
        """Add norm(conv(source)) to the target."""
        raw = self.tensor(layer.conv.out_channels, side // layer.conv.stride[0])
        more = {"raw": raw, **self._norm_offsets(layer.norm)}
        self.convolve(layer.conv, source, target, side, kind=Kind.CONVOLVE_NORM, **more)

    def convolve(
        self, conv: nn.Conv2d, source: int, target: int, side: int, *, kind: Kind = Kind.CONVOLVE, **more: int
    ) -> None:
        """Add conv(source) to the target."""
        shape = {"n_in": conv.in_channels, "n_out": conv.out_channels, "side_out": side // conv.stride[0]}
        how = {"kernel": conv.kernel_size[0], "stride": conv.stride[0], "weight": self.place_of(conv.weight)}
        self.plain(kind, source, target, conv.in_channels, side, **shape, **how, **more)

    def norm(self, layer: nn.BatchNorm2d, source: int, target: int, side: int) -> None:
        """Set the target to norm(source)."""
        self.plain(Kind.NORM, source, target, layer.num_features, side, **self._norm_offsets(layer))

    def plain(self, kind: Kind, source: int, target: int, n_channels: int, side: int, **more: int) -> None:
        """Write an operation that keeps channels and side unless `more` says otherwise."""
        shape = {"n_in": n_channels, "n_out": n_channels, "side": side, "side_out": side} | more
        op = Op(kind=kind, source=source, target=target, **shape)  # type: ignore[arg-type]  # `more` sets no flags
        self.ops.append(op)

    def _norm_offsets(self, layer: nn.BatchNorm2d) -> dict[str, int]:
        assert layer.running_mean is not None
        return {"norm": self.place_of(layer.weight), "running": self.place_of(layer.running_mean)}


def write_tape(network: Network, side: int, *, places: Mapping[int, int], batch: int) -> Tape:
    """Write the tape of a network for images of `side` pixels.

    Args:
        places: offset of each parameter and running mean in the array that holds it, by its address.
        batch: images in one batch.
    """
    writer = _Writer(lambda tensor: places[tensor.data_ptr()], batch)
    widths = [module.out_channels for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert all(width % _BLOCK == 0 and width <= _MOST_CHANNELS for width in widths), widths
    writer.tensor(max(widths), side)  # SCRATCH, at least as large as any other but the images
    stem = network.stem.conv
    images = writer.tensor(-(-stem.in_channels // _BLOCK) * _BLOCK, side)
    value = writer.tensor(stem.out_channels, side)
    writer.convolve_norm(network.stem, images, value, side)
    for writer.block, block in enumerate(network.body, start=1):
        if isinstance(block, CellBlock):
            value = _write_cell(writer, block, value, side)
        elif isinstance(block, ReductionBlock):
            value, side = _write_reduction(writer, block, value, side), side // 2
    writer.block += 1
    n_channels = network.norm.num_features
    normed, active = (writer.tensor(n_channels, side) for _ in range(2))
    writer.norm(network.norm, value, normed, side)
    writer.plain(Kind.ACTIVATE, normed, active, n_channels, side)
    logits = writer.tensor(0, 0)
    weight = writer.place_of(network.classify.weight)
    writer.plain(Kind.CLASSIFY, active, logits, n_channels, side, weight=weight)
    return _finish(writer, logits)


def _write_cell(writer: _Writer, cell: CellBlock, value: int, side: int) -> int:
    n_channels = writer.channels[value]
    nodes = {1: value} | {node: writer.tensor(n_channels, side) for node in (2, 3, 4)}
    active: dict[int, int] = {}
    for number, ((start, end), op) in enumerate(zip(EDGES, cell.ops, strict=True), start=1):
        source, target = nodes[start], nodes[end]
        if op == IDENTITY:
            writer.plain(Kind.COPY, source, target, n_channels, side)
        elif op == POOL:
            writer.plain(Kind.POOL, source, target, n_channels, side)
        elif op != ZERO:
            if start not in active:
                active[start] = writer.tensor(n_channels, side)
                writer.plain(Kind.ACTIVATE, source, active[start], n_channels, side)
            layer = cell.convs[f"Op{number}"]
            assert isinstance(layer, ConvBN)
            writer.convolve_norm(layer, active[start], target, side)
    return nodes[4]


def _write_reduction(writer: _Writer, block: ReductionBlock, value: int, side: int) -> int:
    n_in, n_out, half = block.first.conv.in_channels, block.first.conv.out_channels, side // 2
    active, small = writer.tensor(n_in, side), writer.tensor(n_in, half)
    first, activated, out = (writer.tensor(n_out, half) for _ in range(3))
    writer.plain(Kind.ACTIVATE, value, active, n_in, side)
    writer.convolve_norm(block.first, active, first, side)
    writer.plain(Kind.ACTIVATE, first, activated, n_out, half)
    writer.convolve_norm(block.second, activated, out, half)
    writer.plain(Kind.HALVE, value, small, n_in, side, side_out=half)
    writer.convolve(block.shortcut, small, out, half)
    return out


def _finish(writer: _Writer, logits: int) -> Tape:
    """Drop operations from which no path leads to the logits; mark the first write of each value and each gradient."""
    needed, live_ops = {logits}, list[Op]()
    with_grad: set[int] = set()
    for op in reversed(writer.ops):
        if op.target not in needed:
            continue
        needed.add(op.source)
        has_grad = op.source != IMAGES
        live_ops.append(replace(op, needs_grad=has_grad, is_first_grad=has_grad and op.source not in with_grad))
        with_grad.add(op.source)
    ops: list[Op] = []
    written: set[int] = set()
    for op in reversed(live_ops):
        ops.append(replace(op, is_first_value=op.target not in written))
        written.add(op.target)
    value_at = np.cumsum([0, *writer.sizes])
    grad_at, n_grads = _share_memory(writer.sizes, writer.blocks)
    return Tape(
        ops=np.array([[int(getattr(op, name)) for name in Op.__dataclass_fields__] for op in ops], dtype=np.int32),
        value_at=value_at[:-1].astype(np.int64),
        grad_at=grad_at,
        n_values=int(value_at[-1]),
        n_grads=n_grads,
        n_work=max(_work(op, writer.batch) for op in ops),
    )


def _share_memory(sizes: list[int], blocks: list[int]) -> tuple[NDArray[np.int64], int]:
    """Return the offset of each gradient, and the floats of all of them.

    Blocks 0, 2, 4, ... share one region and blocks 1, 3, 5, ... another: backpropagation through a block writes
    gradients of that block and of the one before it, and no longer needs those of later blocks.
    """
    ends = [0, 0]
    within = np.zeros(len(sizes), dtype=np.int64)
    start_of: dict[int, int] = {}
    for tensor, (size, block) in enumerate(zip(sizes, blocks, strict=True)):
        if tensor == SCRATCH:
            continue
        within[tensor] = start_of.get(block, 0)
        start_of[block] = int(within[tensor]) + size
        ends[block % 2] = max(ends[block % 2], start_of[block])
    at = np.array([within[i] + sizes[SCRATCH] + (ends[0] if block % 2 else 0) for i, block in enumerate(blocks)])
    at[SCRATCH] = 0
    return at, sizes[SCRATCH] + sum(ends)


def _work(op: Op, batch: int) -> int:
    """Return an upper bound of the scratch floats of an operation: packed weights, transformed tiles and sums."""
    n_in, n_out = -(-op.n_in // _BLOCK) * _BLOCK, op.n_out
    return _POINTS * (n_in * n_out + _MOST_TILES * (n_in + n_out) * batch + 3 * _SPAN)
