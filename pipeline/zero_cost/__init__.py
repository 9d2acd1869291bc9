"""Zero-cost proxies: scores of an untrained network on one batch. Each names its reference and its traps.

"As in the benchmark" means as computed by Abdelfattah et al. (ICLR 2021) and by the zero-cost benchmark after them.

>>> sorted(PROXIES)[:3]
['fisher', 'grad_norm', 'grasp']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from pipeline.probe import Probe, Undefined
from pipeline.zero_cost.activations import meco, naswot, swap, zen
from pipeline.zero_cost.gradients import fisher, grad_norm, grasp, jacov, ntk, snip, synflow, zico

Score: TypeAlias = Callable[[Probe], float]
"""Returns the score of an untrained network on a batch, or raises `Undefined`."""


def parameters(probe: Probe) -> float:
    """Return the number of trainable parameters, BatchNorm included.

    It needs no batch, and few other proxies rank networks better.
    """
    return float(sum(parameter.numel() for parameter in probe.network.parameters()))


PROXIES: Final[Mapping[str, Score]] = MappingProxyType(
    {
        "parameters": parameters,
        "grad_norm": grad_norm,
        "fisher": fisher,
        "jacov": jacov,
        "snip": snip,
        "grasp": grasp,
        "synflow": synflow,
        "ntk": ntk,
        "zen": zen,
        "zico": zico,
        "meco": meco,
        "swap": swap,
        "naswot": naswot,
    }
)
"""Every proxy by name, in the order of the zero-cost benchmark's figures; naswot is ours in addition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyScores:
    """The scores of one network by every proxy.

    Attributes:
        values: scores by proxy; NaN for a missing score.
        reasons: why each missing score is missing.
        cpu_s: CPU seconds that each would take alone, including shared passes.
    """

    values: dict[str, float]
    reasons: dict[str, str]
    cpu_s: dict[str, float]


def score_all(probe: Probe) -> ProxyScores:
    """Return every proxy of a network on a batch; shared passes are computed once."""
    results = {name: probe.timed(score) for name, score in PROXIES.items()}
    return ProxyScores(
        values={name: math.nan if isinstance(value, Undefined) else value for name, (value, _) in results.items()},
        reasons={name: str(value) for name, (value, _) in results.items() if isinstance(value, Undefined)},
        cpu_s={name: seconds for name, (_, seconds) in results.items()},
    )
