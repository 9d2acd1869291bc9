"""SWAP: how many different activation patterns the images make (Peng et al., ICLR 2024).

A pattern belongs to one unit: the signs of its input over all images of the batch. The score is the number of different
patterns among all units of all activations. It saturates at the number of units, and at 2^images.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pipeline.zero_cost.network import fresh, listen

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:  # noqa: ARG001  # every proxy's signature
    """Return the number of different sign patterns over the batch."""
    network = fresh(network)
    patterns: set[bytes] = set()

    def heard(x: Tensor) -> None:
        signs = (x.detach().flatten(1) > 0).T.contiguous().numpy()  # (n_units, n_images)
        packed: NDArray[np.uint8] = np.unique(np.packbits(signs, axis=1), axis=0)
        patterns.update(row.tobytes() for row in packed)

    listen(network, heard)
    with torch.no_grad():
        network(images)
    return float(len(patterns))
