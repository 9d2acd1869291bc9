"""fisher: how much the loss would change if single channels were removed.

Turner, Crowley, O'Boyle, Storkey and Gray, "BlockSwap: Fisher-guided block substitution for network compression on a
budget", ICLR 2020. As in the benchmark: half the mean over images of (activation * gradient)^2, summed over pixels
first, for the outputs of convolutions and linear layers before BatchNorm.
"""

from __future__ import annotations

from pipeline.probe import Probe, checked, total


def score(probe: Probe) -> float:
    """Return the score."""
    terms = []
    for output, gradient in probe.gradients.outputs:
        product = output.detach() * gradient
        by_channel = product.flatten(2).sum(2) if product.ndim > 2 else product
        terms.append(by_channel.square().mean(0).mul(0.5).sum())
    return checked(total(terms))
