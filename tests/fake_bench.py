"""A benchmark of formulas: what a `Queryable` must be able to do and nothing else, to test what is built on one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jahs.models.cost import n_macs, n_params
from jahs.queries.answers import Result
from jahs.schema import OPS
from jahs.spaces.columns import validate_columns
from jahs.spaces.configs import validate_many
from jahs.spaces.encoding import encode
from jahs.spaces.fidelities import read_budget
from jahs.spaces.space import space
from jahs.tasks.definitions import task
from jahs.tasks.metrics import METRICS


@dataclass
class FakeBench:
    """Accuracy grows with epochs, size and convolutions and has a best learning rate; time grows with the work."""

    names: tuple[str, ...] = ("valid_acc", "latency", "runtime", "n_params", "n_macs")
    n_asked: int = 0
    task = task("fashion_mnist_mini")
    space = space()
    max_epoch = 12
    reference_config = space.fix({"N": 5, "W": 16}).default()

    @property
    def fidelities(self):
        return {"epoch": tuple(range(1, self.max_epoch + 1))}

    @property
    def full(self):
        return {"epoch": self.max_epoch}

    @property
    def metrics(self):
        return {name: METRICS[name] for name in self.names}

    def fidelity(self, at):
        return {"epoch": read_budget(at, self.max_epoch)}

    def sample(self, n=None, *, seed):
        return self.space.sample(n, seed=seed)

    def _answer(self, columns, epochs, seed, metrics):
        X = encode(columns, epochs)
        self.n_asked += len(X)
        macs = n_macs(X, self.task).astype(float)
        convolutions = sum((columns[op] == 2) + 0.5 * (columns[op] == 3) for op in OPS)
        skill = 1 + convolutions + 0.3 * columns["N"] + 0.1 * columns["W"] + 2 * columns["Resolution"]
        off = np.log10(columns["LearningRate"]) + 1.5
        acc = 95 - 80 / (1 + skill * np.sqrt(epochs) / 4) - 3 * off**2
        if seed is not None:
            acc = acc + np.sin(seed + acc)
        second = 1e-3 + macs / 1e9
        answers = {
            "valid_acc": np.clip(acc, 0, 100),
            "latency": second * (1 + 0.1 * columns["N"]),
            "runtime": 8 * second * epochs,
            "n_params": n_params(X, self.task).astype(float),
            "n_macs": macs,
        }
        return {name: answers[name] for name in (metrics or self.names)}

    def query_many(self, configs, *, at=None, each_at=None, seed=None, metrics=None):
        if not isinstance(configs, Mapping):
            clean = validate_many(configs)
            configs = {key: np.array([config[key] for config in clean]) for key in self.space.sample(seed=0)}
        columns = validate_columns(configs)
        n_configs = len(columns["N"])
        if each_at is not None:
            return self._answer(columns, np.asarray(each_at), seed, metrics)
        if at is None or isinstance(at, int):
            return self._answer(columns, np.full(n_configs, at or self.max_epoch), seed, metrics)
        wide = {key: np.repeat(values, len(at)) for key, values in columns.items()}
        answers = self._answer(wide, np.tile(at, n_configs), seed, metrics)
        return {name: values.reshape(n_configs, len(at)) for name, values in answers.items()}

    def query(self, config, *, at=None, seed=None, metrics=None):
        epoch = self.max_epoch if at is None else at
        columns = self.query_many([config], at=epoch, seed=seed, metrics=metrics)
        values = {name: float(values[0]) for name, values in columns.items()}
        return Result(values=values, fidelity={"epoch": epoch}, seed=seed, costs="exact")

    def trajectory(self, config, *, frm=1, to=None, step=1, seed=None, metrics=None):
        epochs = np.arange(frm, (to or self.max_epoch) + 1, step)
        columns = self.query_many([config] * len(epochs), each_at=epochs, seed=seed, metrics=metrics)
        return {"epoch": epochs, **columns}
