"""The NAS-Bench-201 macro network with its depth N, width W, activation, classes and channels free.

stem -> N cells of W channels -> reduction -> N cells of 2W -> reduction -> N cells of 4W -> head.
Operations are pre-activation: activation, convolution without bias, BatchNorm.
Node 1 is a cell's input and node 4 its output; a node is the sum of the edges that enter it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from jahs.spaces.cell import EDGES, Cell
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, IDENTITY, POOL, ZERO
from jahs.tasks.definitions import Task
from pipeline.operators import OPERATORS, TORCH, Operators

_KERNELS: Final = {CONV3X3: 3, CONV1X1: 1}


class ConvBN(nn.Module):
    """Convolution and BatchNorm; the caller activates, because edges that leave one node share its activation."""

    def __init__(self, n_in: int, n_out: int, kernel: int, operators: Operators, *, stride: int = 1) -> None:
        super().__init__()
        self.convolve = operators.convolve
        self.conv = nn.Conv2d(n_in, n_out, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(n_out)

    def forward(self, x: Tensor) -> Tensor:
        """Return norm(conv(x))."""
        out: Tensor = self.norm(self.conv(x) if self.conv.stride != (1, 1) else self.convolve(x, self.conv.weight))
        return out


class CellBlock(nn.Module):
    """One cell of `n_channels`; every edge is computed, even one without a path to the output; Zero adds nothing."""

    def __init__(
        self, ops: tuple[int, ...], n_channels: int, activation: Callable[[Tensor], Tensor], operators: Operators
    ) -> None:
        super().__init__()
        self.ops = ops
        self.average_pool = operators.average_pool
        self.activation = activation
        self.convs = nn.ModuleDict(
            {
                f"Op{number}": ConvBN(n_channels, n_channels, _KERNELS[op], operators)
                for number, op in enumerate(ops, start=1)
                if op in _KERNELS
            }
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the value of node 4."""
        nodes: dict[int, Tensor] = {1: x}  # a missing node is zero: no edge has reached it
        activated: dict[int, Tensor] = {}
        pooled: dict[int, Tensor] = {}
        for number, ((source, target), op) in enumerate(zip(EDGES, self.ops, strict=True), start=1):
            if op == ZERO:
                continue
            if source not in nodes:
                nodes[source] = torch.zeros_like(x)
            value = nodes[source]
            if op == IDENTITY:
                term = value
            elif op == POOL:
                if source not in pooled:
                    pooled[source] = self.average_pool(value)
                term = pooled[source]
            else:
                if source not in activated:
                    activated[source] = self.activation(value)
                term = self.convs[f"Op{number}"](activated[source])
            nodes[target] = nodes[target] + term if target in nodes else term
        return nodes[4] if 4 in nodes else torch.zeros_like(x)


class ReductionBlock(nn.Module):
    """Basic residual block that halves the side and doubles the channels."""

    def __init__(self, n_in: int, n_out: int, activation: Callable[[Tensor], Tensor], operators: Operators) -> None:
        super().__init__()
        self.activation = activation
        self.first = ConvBN(n_in, n_out, 3, operators, stride=2)
        self.second = ConvBN(n_out, n_out, 3, operators)
        self.shortcut = nn.Conv2d(n_in, n_out, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return shortcut(x) + second(first(x))."""
        main: Tensor = self.second(self.activation(self.first(self.activation(x))))
        shortcut: Tensor = self.shortcut(functional.avg_pool2d(x, 2))
        return shortcut + main


class Network(nn.Module):
    """The whole network of a validated config, from normalised images to logits."""

    def __init__(self, config: Mapping[str, Any], task: Task, operators: Operators) -> None:  # Any: a config's values
        super().__init__()
        width = config["W"]
        activations = {"ReLU": functional.relu, "Hardswish": functional.hardswish, "Mish": operators.mish}
        self.activation = activations[config["Activation"]]
        ops = Cell.from_config(config).ops
        self.stem = ConvBN(task.n_channels, width, 3, operators)
        blocks: list[nn.Module] = []
        for stage in range(3):
            n = width * 2**stage
            if stage:
                blocks.append(ReductionBlock(n // 2, n, self.activation, operators))
            blocks += [CellBlock(ops, n, self.activation, operators) for _ in range(config["N"])]
        self.body = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(4 * width)
        self.classify = nn.Linear(4 * width, task.n_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits of shape (n_images, n_classes)."""
        features = self.activation(self.norm(self.body(self.stem(images))))
        logits: Tensor = self.classify(features.mean(dim=(2, 3)))
        return logits


def build_network(config: Mapping[str, Any], task: Task, *, on_gpu: bool = False) -> Network:  # Any: as above
    """Build the network of a validated config, weights drawn from torch's global generator.

    Args:
        on_gpu: use torch's own operators and layout, and do not count batches, so that a GPU launches fewer kernels;
            otherwise the operators of the task, channels last.
    """
    network = Network(config, task, OPERATORS[TORCH if on_gpu else task.operators])
    if on_gpu:
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.num_batches_tracked = None
        return network
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]  # absent from its stubs
