"""A graph isomorphism network of the cell, for the comparison of model families; torch trains it on one thread.

The operations of a cell are nodes, with its input and its output; an operation sends to those that read its result.
All other keys are appended to the mean of the nodes. The loss is the squared error plus the pairwise hinge loss of
NAS-Bench-301: a pair counts unless its predictions are in the right order and at least the margin apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jahs.schema import COLUMNS, OPS
from jahs.spaces.cell import EDGES, OPERATIONS
from surrogate.models.search import Point

MARGIN: Final = 0.1
_EPOCHS: Final = 60
_BATCH: Final = 128
_OP_COLUMNS: Final = [COLUMNS.index(op) for op in OPS]
_RATES: Final = [COLUMNS.index(key) for key in ("LearningRate", "WeightDecay")]
_ACTIVATION: Final = COLUMNS.index("Activation")
_PLAIN: Final = [COLUMNS.index(key) for key in ("N", "W", "Resolution", "TrivialAugment", "epoch")]

_Floats = NDArray[np.float64]


def adjacency(*, undirected: bool, self_loops: bool) -> _Floats:
    """Return the adjacency matrix, (8, 8), of input, six operations and output: a row's node reads a column's."""
    begins, ends = np.array([(0, 1), *EDGES, (4, 5)]).T  # the input ends where operations begin
    reads: _Floats = (begins[:, None] == ends).astype(np.float64)
    if undirected:
        reads += reads.T
    return reads + np.eye(len(reads)) if self_loops else reads


def hinge(predicted: Tensor, measured: Tensor) -> Tensor:
    """Return the pairwise hinge loss: the mean over ordered pairs of how far they fall short of the margin."""
    is_above = measured[:, None] > measured[None, :]
    shortfall = torch.relu(MARGIN - (predicted[:, None] - predicted[None, :]))
    return (shortfall * is_above).sum() / is_above.sum().clamp(min=1)


class _Network(nn.Module):
    def __init__(self, point: Point, *, n_others: int) -> None:
        super().__init__()
        hidden, n_layers, dropout = (point[name] for name in ("hidden", "n_layers", "dropout"))
        reads = adjacency(undirected=point["undirected"], self_loops=point["self_loops"])
        self.reads = torch.tensor(reads, dtype=torch.float32)
        self.embedding = nn.Embedding(len(OPERATIONS) + 2, hidden)
        self.epsilon = nn.Parameter(torch.zeros(n_layers))
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                nn.Dropout(dropout),
            )
            for _ in range(n_layers)
        )  # fmt: skip
        self.head = nn.Sequential(nn.Linear(hidden + n_others, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, nodes: Tensor, others: Tensor) -> Tensor:
        """Return (n,) predictions for nodes, (n, 8), and other keys, (n, n_others)."""
        h = self.embedding(nodes)
        for epsilon, layer in zip(self.epsilon, self.layers, strict=True):
            h = layer(((1 + epsilon) * h + self.reads @ h).flatten(0, 1)).view(h.shape)
        predicted: Tensor = self.head(torch.cat([h.mean(dim=1), others], dim=1))[:, 0]
        return predicted


def fit_gin(point: Point, X: NDArray[np.float32], y: _Floats, *, seed: int) -> Callable[[NDArray[np.float32]], _Floats]:
    """Train a network on encoded configs, (n, 15), and standardised values; return its prediction function."""
    others = _others(X)
    centre, scale = others.mean(axis=0), others.std(axis=0)
    scale[scale == 0] = 1.0

    def inputs(X: NDArray[np.float32]) -> tuple[Tensor, Tensor]:
        """Return the kinds of nodes, (n, 8): the input, the operations by their codes, the output; and other keys."""
        ends = ((0, 0), (len(OPERATIONS), len(OPERATIONS) + 1))
        kinds = np.pad(X[:, _OP_COLUMNS], ((0, 0), (1, 1)), constant_values=ends).astype(np.int64)
        return torch.tensor(kinds), torch.tensor((_others(X) - centre) / scale, dtype=torch.float32)

    nodes, keys = inputs(X)
    target = torch.tensor(y, dtype=torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _Network(point, n_others=keys.shape[1])
        steps = torch.optim.Adam(network.parameters(), lr=point["learning_rate"])
        rates = torch.optim.lr_scheduler.CosineAnnealingLR(steps, _EPOCHS)
        for _ in range(_EPOCHS):
            for batch in torch.randperm(len(target)).tensor_split(max(1, len(target) // _BATCH)):
                predicted = network(nodes[batch], keys[batch])
                loss = nn.functional.mse_loss(predicted, target[batch])
                loss = loss + point["hinge_weight"] * hinge(predicted, target[batch])
                steps.zero_grad()
                loss.backward()
                steps.step()
            rates.step()
    network.eval()

    def predict(X: NDArray[np.float32]) -> _Floats:
        with torch.no_grad():
            return network(*inputs(X)).numpy().astype(np.float64)  # type: ignore[no-any-return]  # torch's modules

    return predict


def _others(X: NDArray[np.float32]) -> _Floats:
    kinds = X[:, [_ACTIVATION]] == np.arange(3)
    return np.column_stack([np.log(X[:, _RATES]), X[:, _PLAIN], kinds]).astype(np.float64)
