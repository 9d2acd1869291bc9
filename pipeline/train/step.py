"""One optimiser step: by torch, or on a CUDA device as a recorded graph of kernels.

A step of a small network takes a GPU less time than it takes a processor core to launch its kernels one by one.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

_WARM_UP: Final = 3
"""Steps before the recording: torch allocates memory and cuDNN chooses its kernels in the first ones."""


def take_step(
    network: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """Update the network by a batch; return the batch's mean loss and how many images were right."""
    logits = network(images)
    loss = functional.cross_entropy(logits, labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    optimizer.step()
    return loss.detach(), (logits.detach().argmax(1) == labels).sum()


class RecordedStep:
    """`take_step` on batches of one shape, recorded on a CUDA device and replayed."""

    def __init__(self, network: nn.Module, optimizer: torch.optim.SGD, images: Tensor, labels: Tensor) -> None:
        """Record a step on such a batch; parameters, running statistics and momenta stay as they are."""
        self._images, self._labels = images.clone(), labels.clone()
        (group,) = optimizer.param_groups
        rate, group["lr"] = group["lr"], torch.tensor(group["lr"], device=images.device)
        self._rate = group["lr"]
        tensors = [*network.parameters(), *network.buffers()]
        before = [tensor.detach().clone() for tensor in tensors]
        momenta = {parameter: state["momentum_buffer"].clone() for parameter, state in optimizer.state.items()}
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                take_step(network, optimizer, self._images, self._labels)
        torch.cuda.current_stream().wait_stream(stream)
        with torch.no_grad():
            for tensor, value in zip(tensors, before, strict=True):
                tensor.copy_(value)
            for parameter, state in optimizer.state.items():
                momentum = state["momentum_buffer"]
                momentum.copy_(momenta.get(parameter, torch.zeros_like(momentum)))
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._result = take_step(network, optimizer, self._images, self._labels)
        group["lr"] = rate
        self._done = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def fits(self, images: Tensor) -> bool:
        """Whether the recorded step takes a batch of this shape."""
        return images.shape == self._images.shape

    def __call__(self, images: Tensor, labels: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        """Take a step with this learning rate; the next call overwrites the result."""
        self._done.synchronize()  # sleeping; launching into a full queue would occupy a processor core
        self._images.copy_(images)
        self._labels.copy_(labels)
        self._rate.fill_(rate)
        self._graph.replay()
        self._done.record()
        return self._result
