"""How exact gradients of the C engine and of torch in single precision are, compared with double precision.

One batch of normal noise for each of 370 random configs with N * W * Resolution up to 40; relative errors of the
gradient of all parameters.

Run: OMP_NUM_THREADS=1 python -m tests.benchmarks.engine_accuracy
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from pipeline.network import build_network
from pipeline.one_core import one_core
from pipeline.sampling import sample_config
from tests.pipeline.test_native import TASK, distance, draw, gradients, networks

N_DRAWN = 400


def main() -> int:
    errors = []
    with one_core():
        for draw_number in range(N_DRAWN):
            config = sample_config(draw_number * 7919 % 1_000_003)
            if config["N"] * config["W"] * config["Resolution"] > 40:
                continue
            side = TASK.image_side(config["Resolution"])
            images, labels = draw(side, seed=draw_number)
            engine, _, exact = networks(config, side, seed=draw_number)
            torch.manual_seed(draw_number)
            single = build_network(config, TASK).train()
            _, gradient = gradients(exact.train(), images, labels)
            functional.cross_entropy(single(images), labels).backward()
            parts = (torch.zeros_like(p) if p.grad is None else p.grad for p in single.parameters())
            engine.learn(images, labels, rate=0.0, momentum=0.9, decay=0.0)
            theirs = distance(torch.cat([part.flatten() for part in parts]), gradient)
            errors.append((distance(engine.param_grads, gradient), theirs))
    for name, values in zip(("engine", "torch"), np.array(errors).T, strict=True):
        median, most = np.quantile(values, [0.5, 0.99])
        print(f"{name}: {len(values)} configs, median relative error {median:.1e}, 99th percentile {most:.1e}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
