"""The rungs of multi-fidelity optimisers: fidelities on the view's path, from cheap to full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.simulate import Visible

__all__ = ["RungSettings", "rungs"]

_TINY: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RungSettings(OptimizerSettings):
    """Settings of an optimiser that promotes configs from rung to rung."""

    eta: Annotated[float, Within(1.5)] = 3.0  # 1/eta of a rung's configs are promoted; rungs are a factor of eta apart
    n_rungs: Annotated[int | None, Within(1)] = None  # at most; None: down to the lowest fidelity


def rungs(view: Visible, *, eta: float, n_rungs: int | None = None) -> list[dict[str, float]]:
    """Return fidelities in ascending order: shares 1, 1/eta, 1/eta**2 and so on of the way to the full one.

    Several fidelities rise together (`view.path`). Shares that map to the same fidelity are one rung.
    """
    found, lowest = [view.path(1.0)], view.path(_TINY)
    share = 1.0
    while found[-1] != lowest and (n_rungs is None or len(found) < n_rungs):
        share = max(share / eta, _TINY)
        there = view.path(share)
        if there != found[-1]:
            found.append(there)
    return found[::-1]
