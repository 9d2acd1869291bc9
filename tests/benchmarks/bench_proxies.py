"""How many CPU seconds the zero-cost proxies of one config take, each alone and all together.

The largest network (six 3x3 convolutions in a cell, N=5, W=16, Resolution 1, Mish), and the mean of random configs, on
images of noise. All together must take less than 20 seconds for one full-size config.

Run: OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_proxies [TASK ...]
"""

from __future__ import annotations

import sys
import time

import torch

from jahs.spaces.configs import validate
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from pipeline.network import build_network
from pipeline.one_core import one_core
from pipeline.probe import Probe
from pipeline.sampling import sample_config
from pipeline.zero_cost import PROXIES, score_all

LIMIT_S = 20.0
N_IMAGES, N_RANDOM = 64, 27
LARGEST = validate(
    {
        **space().default(),
        **{f"Op{i}": 2 for i in range(1, 7)},
        "N": 5,
        "W": 16,
        "Resolution": 1.0,
        "Activation": "Mish",
    }
)


def cpu_seconds(config, task):
    side = task.image_side(config["Resolution"])
    x = torch.randn(N_IMAGES, task.n_channels, side, side).to(memory_format=torch.channels_last)
    network = build_network(config, task)
    started = time.thread_time()
    scores = score_all(Probe(network, x, torch.arange(N_IMAGES) % task.n_classes))
    return {**scores.cpu_s, "all together": time.thread_time() - started}


def main(names) -> int:
    worst = 0.0
    with one_core():
        for name in names:
            task = TASKS[name]
            largest = cpu_seconds(LARGEST, task)
            sampled = [cpu_seconds(sample_config(number), task) for number in range(N_RANDOM)]
            print(f"{name}: CPU seconds of the largest network, mean of {N_RANDOM} random configs")
            for proxy in (*PROXIES, "all together"):
                print(f"  {proxy:12} {largest[proxy]:7.3f} {sum(each[proxy] for each in sampled) / N_RANDOM:7.3f}")
            worst = max(worst, largest["all together"])
    return int(worst > LIMIT_S)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:] or ["fashion_mnist_mini", "cifar10_mini"]))
