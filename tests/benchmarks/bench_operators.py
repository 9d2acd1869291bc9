"""How much faster the operators of version 2 are than torch's, forwards and backwards, on one core.

For each operator and each size of images that a network of the laptop task meets in training, with batches of 64: CPU
microseconds of torch's, of ours, and their ratio, the least of several rounds that alternate between the two.

Run: OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_operators
"""

from __future__ import annotations

import time

import torch

from pipeline.one_core import one_core
from pipeline.operators import OPERATORS

BATCH = 64
SIZES = ((4, 4), (16, 1), (4, 16), (8, 8), (16, 4), (16, 16), (32, 8), (64, 4))  # channels and side
N_ROUNDS, N_CALLS = 7, 20


def cpu_seconds(call, inputs):
    started = time.thread_time()
    for _ in range(N_CALLS):
        call(*inputs).sum().backward()
    return (time.thread_time() - started) / N_CALLS


def main() -> int:
    with one_core():
        for name, kernel in (("mish", None), ("average_pool", None), ("convolve", 1), ("convolve", 3)):
            for n_channels, side in SIZES:
                x = torch.randn(BATCH, n_channels, side, side).to(memory_format=torch.channels_last).requires_grad_()
                inputs = [x]
                if kernel is not None:
                    weight = torch.randn(n_channels, n_channels, kernel, kernel).to(memory_format=torch.channels_last)
                    inputs.append(weight.requires_grad_())
                versions = [getattr(OPERATORS[version], name) for version in (1, 2)]
                rounds = [[cpu_seconds(call, inputs) for call in versions] for _ in range(N_ROUNDS)]
                theirs, ours = (1e6 * min(times) for times in zip(*rounds[1:], strict=True))
                label = name if kernel is None else f"{name} {kernel}x{kernel}"
                print(
                    f"{label:13} {n_channels:3} channels, {side:2} px: {theirs:6.0f} us, {ours:6.0f} us, "
                    f"{theirs / ours:.2f} times as fast"
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
