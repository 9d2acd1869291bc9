"""meco: how independent the channels of feature maps are.

Jiang, Wang and Bie, "MeCo: zero-shot NAS with one data and single forward pass via minimum eigenvalue of correlation",
NeurIPS 2023. For one image of random pixels, the sum over layers of the smallest eigenvalue of the correlation matrix
of the layer's channels; undefined correlations (constant channels, maps of one pixel) count as 0. The batch is only
read for its shape. BatchNorm in training mode needs two values, so where maps have one pixel a second image is in the
batch; it is in every batch, so that scores do not depend on the side.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.probe import Probe, Undefined, checked, fresh, listen_to_layers


def score(probe: Probe) -> float:
    """Return the score."""
    network = fresh(probe.network)
    smallest: list[float] = []

    def add_smallest(output: Tensor) -> None:
        if output.ndim == 4 and output.shape[1] > 1 and output.shape[2:].numel() > 1:
            correlations = torch.nan_to_num(torch.corrcoef(output[0].flatten(1).double()), nan=0, posinf=0, neginf=0)
            smallest.append(torch.linalg.eigvalsh(correlations)[0].item())

    listen_to_layers(network, add_smallest)
    with torch.no_grad():
        one, other = network(torch.randn((2, *probe.images.shape[1:]), generator=probe.chance()))
    if torch.equal(one, other):
        raise Undefined("the output does not depend on the image")
    return checked(float(sum(smallest)))
