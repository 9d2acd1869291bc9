"""MeCo: how independent the channels of feature maps are (Jiang, Wang and Bie, NeurIPS 2023).

For one image of random pixels, the sum over layers of the smallest eigenvalue of the correlation matrix of the layer's
channels; undefined correlations (constant channels, maps of one pixel) count as 0. The batch is only read for its
shape. BatchNorm in training mode needs two values, so where maps have one pixel a second image is in the batch; it is
in every batch, lest scores depend on the side.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.zero_cost.probe import Probe, checked, fresh, listen_to_layers


def score(probe: Probe) -> float:
    """Return the sum over layers of the smallest eigenvalue of the channels' correlations."""
    network = fresh(probe.network)
    smallest: list[float] = []

    def heard(output: Tensor) -> None:
        if output.ndim == 4 and output.shape[1] > 1 and output.shape[2:].numel() > 1:
            correlations = torch.nan_to_num(torch.corrcoef(output[0].flatten(1).double()), nan=0, posinf=0, neginf=0)
            smallest.append(torch.linalg.eigvalsh(correlations)[0].item())

    listen_to_layers(network, heard)
    with torch.no_grad():
        network(torch.randn((2, *probe.images.shape[1:]), generator=probe.chance()))
    return checked(float(sum(smallest)))
