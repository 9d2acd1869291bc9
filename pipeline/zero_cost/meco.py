"""MeCo: how independent the channels of feature maps are (Jiang, Wang and Bie, NeurIPS 2023).

For one image of random pixels, the sum over layers of the smallest eigenvalue of the correlation matrix of the layer's
channels; undefined correlations (constant channels) count as 0. Images are only read for their shape.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pipeline.zero_cost.network import checked, fresh, listen_to_layers

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:  # noqa: ARG001  # every proxy's signature
    """Return the sum over layers of the smallest eigenvalue of the channels' correlations."""
    network = fresh(network)
    smallest: list[float] = []

    def heard(output: Tensor) -> None:
        if output.ndim == 4 and output.shape[1] > 1:
            channels = output.detach()[0].flatten(1).double()
            correlations = torch.nan_to_num(torch.corrcoef(channels), nan=0.0, posinf=0.0, neginf=0.0)
            smallest.append(torch.linalg.eigvalsh(correlations)[0].item())

    listen_to_layers(network, heard)
    with torch.no_grad():
        network(torch.randn_like(images[:1]))
    return checked(float(sum(smallest)))
