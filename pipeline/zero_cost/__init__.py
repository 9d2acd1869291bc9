"""Zero-cost proxies: scores of an untrained network on one batch, each in a module of its own.

>>> sorted(PROXIES)[:3]
['fisher', 'grad_norm', 'grasp']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from jahs.schema import PROXIES as _NAMES
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
from pipeline.zero_cost.probe import Probe, Undefined

Score: TypeAlias = Callable[[Probe], float]
"""Returns the score of an untrained network on a batch, or raises `Undefined`."""

_SCORES: Final = {
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

PROXIES: Final[Mapping[str, Score]] = MappingProxyType({name: _SCORES[name] for name in _NAMES})
"""Every proxy by name, in the order of the zero-cost benchmark's figures; naswot is ours in addition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyScores:
    """The scores of one network by every proxy.

    Attributes:
        values: by proxy; NaN where there is none.
        reasons: of those that are NaN.
        cpu_s: CPU seconds that each would take alone, with the passes that it shares.
    """

    values: dict[str, float]
    reasons: dict[str, str]
    cpu_s: dict[str, float]


def score_all(probe: Probe) -> ProxyScores:
    """Return every proxy of a network on a batch; what several need is computed once."""
    found = {name: probe.timed(score) for name, score in PROXIES.items()}
    return ProxyScores(
        values={name: math.nan if isinstance(value, Undefined) else value for name, (value, _) in found.items()},
        reasons={name: str(value) for name, (value, _) in found.items() if isinstance(value, Undefined)},
        cpu_s={name: seconds for name, (_, seconds) in found.items()},
    )
