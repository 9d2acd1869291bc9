"""Operators that compute what torch's do, faster on one CPU core: Mish, average pooling, convolutions of small images.

Small images make torch's general kernels slow: Mish takes three transcendental functions where one is enough, pooling
is not vectorised where there are few channels, and a convolution costs 100 us however small it is. Each operator
here equals torch's up to rounding, gradients included. `tests/benchmarks/bench_operators.py` compares their times.
A task says which version its trainings use, since another rounding makes another training of a config and seed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

_SATURATED: Final = 20.0  # tanh(softplus(x)) is 1 in single precision from here on
_SATURATED_DOUBLE: Final = 350.0  # in double precision already from 20 on, too, but the slope multiplies the rest by x
_SMALLEST_SUMMED: Final = 8  # side in pixels from which sums of shifted images beat torch's kernel
_LARGEST_MULTIPLIED: Final = 4  # side in pixels up to which a matrix product beats the 1 x 1 convolution


class Operators(NamedTuple):
    """The operators of a network that come in versions."""

    mish: Callable[[Tensor], Tensor]
    average_pool: Callable[[Tensor], Tensor]
    convolve: Callable[[Tensor, Tensor], Tensor]


def mish(x: Tensor) -> Tensor:
    """Return x * tanh(softplus(x)), from one exponential."""
    if torch.is_grad_enabled():
        return _Mish.apply(x)  # type: ignore[no-any-return,no-untyped-call]  # torch leaves it untyped
    rest, _ = _mish_rest(x)
    return torch.addcmul(x, x, rest, value=-1)


def average_pool(x: Tensor) -> Tensor:
    """Return the mean over 3 x 3 pixels at stride 1; pixels outside the image do not count."""
    if x.shape[-1] < _SMALLEST_SUMMED:
        return _torch_pool(x)
    return _AveragePool.apply(x)  # type: ignore[no-any-return,no-untyped-call]  # torch leaves it untyped


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    """Return the convolution of stride 1 without bias that keeps the side, kernel 1 or 3."""
    side = x.shape[-1]
    if side == 1:  # the kernel meets padding all around
        middle = weight.shape[-1] // 2
        return functional.linear(x.flatten(1), weight[:, :, middle, middle])[:, :, None, None]
    if weight.shape[-1] == 1 and side <= _LARGEST_MULTIPLIED:
        return functional.linear(x.permute(0, 2, 3, 1), weight[:, :, 0, 0]).permute(0, 3, 1, 2)
    return _torch_convolve(x, weight)


def _torch_pool(x: Tensor) -> Tensor:
    return functional.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)


def _torch_convolve(x: Tensor, weight: Tensor) -> Tensor:
    return functional.conv2d(x, weight, padding=weight.shape[-1] // 2)


def _mish_rest(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return 1 - tanh(softplus(x)) = 1 / (1 + e + e^2 / 2) and e = exp(x)."""
    e = x.clamp(max=_SATURATED_DOUBLE if x.dtype == torch.float64 else _SATURATED).exp_()
    return torch.addcmul(e, e, e, value=0.5).add_(1).reciprocal_(), e


class _Mish(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # Any: torch's context
        rest, e = _mish_rest(x)
        ctx.save_for_backward(x, e, rest)
        return torch.addcmul(x, x, rest, value=-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:  # Any: torch's context
        """Return grad * (1 - rest + x * (e + e^2) * rest^2)."""
        x, e, rest = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative: the saved tensors are not connected to x
            rest, e = _mish_rest(x)
        slope = torch.addcmul(e, e, e).mul_(rest).mul_(x).sub_(1).mul_(rest).add_(1)
        return slope.mul_(grads[0])


class _AveragePool(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004  # Any: torch's context, which nothing is kept in
        return _sum_around(x).mul_(_shares(x.shape[-1], x.device, x.dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:  # noqa: ARG004  # Any: as above
        return _sum_around(grads[0] * _shares(grads[0].shape[-1], grads[0].device, grads[0].dtype))


def _sum_around(x: Tensor) -> Tensor:
    """Return the sum over the 3 x 3 pixels around each; its transpose is itself."""
    rows = x.clone(memory_format=torch.preserve_format)
    rows[..., 1:, :] += x[..., :-1, :]
    rows[..., :-1, :] += x[..., 1:, :]
    total = rows.clone(memory_format=torch.preserve_format)
    total[..., 1:] += rows[..., :-1]
    total[..., :-1] += rows[..., 1:]
    return total


@functools.lru_cache(maxsize=16)
def _shares(side: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return one over the number of pixels around each pixel, (side, side)."""
    with torch.inference_mode(mode=False):  # it is cached, and a gradient may need it later
        return _sum_around(torch.ones(side, side, dtype=dtype)).reciprocal().to(device)


TORCH: Final = 1

OPERATORS: Final[Mapping[int, Operators]] = MappingProxyType(
    {
        TORCH: Operators(mish=functional.mish, average_pool=_torch_pool, convolve=_torch_convolve),
        2: Operators(mish=mish, average_pool=average_pool, convolve=convolve),
    }
)
"""Every version: TORCH is torch's own, 2 the faster ones; `jahs.tasks.Task.operators` names one."""
