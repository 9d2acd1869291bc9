"""Zero-cost proxies: scores of an untrained network on one batch, each in a module of its own.

>>> sorted(PROXIES)[:3]
['fisher', 'grad_norm', 'grasp']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from torch import Tensor, nn

from pipeline.zero_cost import (
    fisher,
    grad_norm,
    grasp,
    jacov,
    meco,
    naswot,
    ntk,
    parameters,
    snip,
    swap,
    synflow,
    zen,
    zico,
)
from pipeline.zero_cost.network import Undefined

__all__ = ["PROXIES", "Score", "Undefined"]

Score: TypeAlias = Callable[[nn.Module, Tensor, Tensor], float]
"""Returns the score of an untrained network for images and labels, or raises `Undefined`."""

PROXIES: Final[Mapping[str, Score]] = MappingProxyType(
    {
        "parameters": parameters.score,
        "grad_norm": grad_norm.score,
        "fisher": fisher.score,
        "jacov": jacov.score,
        "snip": snip.score,
        "grasp": grasp.score,
        "synflow": synflow.score,
        "ntk": ntk.score,
        "zen": zen.score,
        "zico": zico.score,
        "meco": meco.score,
        "swap": swap.score,
        "naswot": naswot.score,
    }
)
"""Every proxy by name, in the order of the zero-cost benchmark's figures; naswot is ours in addition."""
