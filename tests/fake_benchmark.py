"""A benchmark that is a formula: everything a `Queryable` has, for tests that need no release and no forest."""

from __future__ import annotations

import math

import numpy as np

from jahs.errors import UnknownName
from jahs.schema import CONFIG_KEYS, OPS
from jahs.spaces.columns import codes, config_ids
from jahs.spaces.space import space
from jahs.tasks.definitions import task
from jahs.tasks.metrics import METRICS

AT = {name: j for j, name in enumerate(CONFIG_KEYS)}


class FakeBenchmark:
    """Accuracy likes convolutions, a learning rate of 0.1 and large networks; time is what they cost.

    With a seed, accuracy and time have noise that is a function of the config and the seed: the same at every epoch.
    """

    def __init__(
        self, *, max_epoch=9, metrics=("train_acc", "valid_acc", "test_acc", "latency", "runtime", "n_params")
    ):
        self.task = task("fashion_mnist_mini")
        self.space = space()
        self.reference_config = space({"N": 5, "W": 16}).default()
        self.max_epoch = max_epoch
        self.metrics = {name: METRICS[name] for name in metrics}
        self.fidelities = {"epoch": tuple(range(1, max_epoch + 1))}
        self.full = {"epoch": max_epoch}
        self.n_queries = 0

    def sample(self, n=None, *, seed):
        assert seed is None or 0 <= seed < 2**63
        return self.space.sample(n, seed=seed)

    def query(self, config, *, at=None, seed=None, metrics=None):
        return {name: values[0].item() for name, values in self.query_many([config], at=at, seed=seed).items()}

    def query_many(self, configs, *, at=None, each_at=None, seed=None, metrics=None):
        self.n_queries += 1
        X = codes(configs)
        epoch = self.max_epoch if at is None and each_at is None else at if each_at is None else each_at
        epoch = np.broadcast_to(np.asarray(epoch, dtype=np.int64), len(X))
        assert ((epoch >= 1) & (epoch <= self.max_epoch)).all()
        ops = X[:, [AT[op] for op in OPS]]
        n_convolutions = (ops == 2).sum(axis=1) + 0.5 * (ops == 3).sum(axis=1)
        N, W, resolution = (X[:, AT[key]] for key in ("N", "W", "Resolution"))
        # math, not numpy, whose logarithm may differ in the last bit between a batch and a row.
        rate = np.array([math.log10(value) + 1 for value in X[:, AT["LearningRate"]].tolist()])
        share = np.array([1 - math.exp(-3 * e / self.max_epoch) for e in range(self.max_epoch + 1)])[epoch]
        noise = np.zeros(len(X))
        if seed is not None:
            noise = ((config_ids(configs) ^ np.uint64(seed * 2654435761 % 2**64)) % np.uint64(2001)).astype(
                float
            ) / 1000 - 1
        final = 40 + 5 * n_convolutions + N + W / 4 + 4 * resolution - 8 * rate * rate
        valid = np.clip(10 + (final - 10 + noise) * share, 0, 100)
        work = (1 + n_convolutions * N * (W / 4) * resolution) * (1 + 0.01 * noise)
        answers = {
            "train_acc": np.clip(valid + 3, 0, 100),
            "valid_acc": valid,
            "test_acc": np.clip(valid - 1, 0, 100),
            "latency": 0.01 * work,
            "runtime": work * epoch,
            "n_params": 1000 * (1 + n_convolutions) * N * W,
        }
        for name in metrics or ():
            if name not in self.metrics:
                raise UnknownName.of("metric", name, self.metrics)
        return {name: answers[name] for name in metrics or self.metrics}

    def trajectory(self, config, *, frm=1, to=None, step=1, seed=None, metrics=None):
        epochs = np.arange(frm, (to or self.max_epoch) + 1, step)
        return {"epoch": epochs, **self.query_many([config] * len(epochs), each_at=epochs, seed=seed, metrics=metrics)}
