"""A network that is trained and evaluated in C, on the parameters and running statistics of torch's network."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Callable, Iterator
from typing import Final

import torch
from torch import Tensor, nn

from jahs.errors import refuse
from pipeline.native.build import load_library, native_faults
from pipeline.native.tape import IMAGES, plane, write_tape
from pipeline.network import Network

_ACTIVATIONS: Final = ("ReLU", "Hardswish", "Mish")
_NUMBERS: Final = ("n_ops", "activation", "n_classes")
_ARRAYS: Final = (
    "ops", "value_at", "grad_at", "values", "grads", "params", "param_grads", "momenta", "running", "work", "kept",
    "features", "logits",
)  # fmt: skip


class _Net(ctypes.Structure):
    """`net_t` in engine.c."""

    _fields_ = [*((name, ctypes.c_int32) for name in _NUMBERS), *((name, ctypes.c_void_p) for name in _ARRAYS)]


class Engine:
    """Trains and evaluates one network; one thread at a time may call it.

    Unlike torch, it leaves the running statistics of a BatchNorm alone if no path leads from there to the logits, and
    never updates `num_batches_tracked`. Neither changes the logits.

    Attributes:
        params, param_grads, momenta: all parameters in torch's order, their last gradients, and their momenta.
        running: running mean and variance of every BatchNorm.
    """

    def __init__(self, network: Network, activation: str, *, side: int, n_images: int, batch: int) -> None:
        """Take over a network: its parameters and running statistics become views of the engine's arrays.

        Args:
            side: image side in pixels.
            n_images: training images in one epoch.
            batch: images in one training step.

        Raises:
            InvalidArgument: the batch size, or a partial batch at the end of an epoch, is not supported.
            MissingDependency: there is no C compiler, or it does not compile the engine.
        """
        refuse(*native_faults(n_images, batch))
        self._library = load_library(batch)
        self._batch = batch
        self.params, places = _flatten(list(network.parameters()))
        self.running, running_places = _flatten(list(_running(network)))
        self.param_grads, self.momenta = torch.zeros_like(self.params), torch.zeros_like(self.params)
        tape = write_tape(network, side, places=places | running_places, batch=batch)
        n_channels, n_classes = network.stem.conv.in_channels, network.classify.out_features
        values = _aligned(tape.n_values)
        self._images = values[tape.value_at[IMAGES] :].as_strided(
            (n_channels, side, side, batch), (plane(side, batch), side * batch, batch, 1)
        )
        self._kept_alive = (  # the arrays of `_ARRAYS`, which C reads by address
            *(torch.from_numpy(array) for array in (tape.ops, tape.value_at, tape.grad_at)),
            values, _aligned(tape.n_grads), self.params, self.param_grads, self.momenta, self.running,
            _aligned(tape.n_work), torch.zeros_like(self.running), _aligned(network.classify.in_features * batch),
            _aligned(n_classes * batch),
        )  # fmt: skip
        addresses = (array.data_ptr() for array in self._kept_alive)
        self._net = _Net(len(tape.ops), _ACTIVATIONS.index(activation), n_classes, *addresses)

    def learn(self, images: Tensor, labels: Tensor, *, rate: float, momentum: float, decay: float) -> tuple[float, int]:
        """Take one optimiser step on a batch; return the batch's mean loss and how many images were right."""
        assert len(images) == self._batch, f"a step takes {self._batch} images, not {len(images)}"
        loss, n_right = self._run(self._library.train_step, images, labels, rate, momentum, decay)
        return loss / self._batch, n_right

    def evaluate(self, images: Tensor, labels: Tensor) -> tuple[float, int]:
        """Return the loss summed over the images, and how many were right."""
        parts = zip(torch.split(images, self._batch), torch.split(labels, self._batch), strict=True)
        measured = [self._run(self._library.evaluate, *part) for part in parts]
        return sum(loss for loss, _ in measured), sum(n_right for _, n_right in measured)

    def _run(self, call: Callable[..., float], images: Tensor, labels: Tensor, *rates: float) -> tuple[float, int]:
        """Call a C function on a batch; a smaller one is padded with labels of -1, which do not count."""
        assert labels.dtype == torch.int64, labels.dtype
        assert labels.min() >= 0, "C uses labels as indices without checking them"
        assert labels.max() < self._net.n_classes, "C uses labels as indices without checking them"
        self._images[..., : len(images)] = images.permute(1, 2, 3, 0)
        labels = nn.functional.pad(labels, (0, self._batch - len(labels)), value=-1).contiguous()
        n_right = ctypes.c_int64()
        loss = call(
            ctypes.byref(self._net),
            ctypes.c_void_p(labels.data_ptr()),
            ctypes.byref(n_right),
            *map(ctypes.c_float, rates),
        )
        return loss, n_right.value


def _running(network: Network) -> Iterator[Tensor]:
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            yield from (module.running_mean, module.running_var)


def _flatten(tensors: list[Tensor]) -> tuple[Tensor, dict[int, int]]:
    """Make the tensors views of one array, in their order; return it, and each tensor's offset by its new address."""
    flat = torch.cat([tensor.detach().contiguous().flatten() for tensor in tensors])
    places, at = {}, 0
    for tensor in tensors:
        tensor.data = flat[at : at + tensor.numel()].view(tensor.shape)
        places[tensor.data_ptr()] = at
        at += tensor.numel()
    return flat, places


def _aligned(n: int) -> Tensor:
    """Return `n` zeros from a page boundary on, in huge pages where possible: channels lie many small pages apart."""
    memory = mmap.mmap(-1, 4 * n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.float32)
