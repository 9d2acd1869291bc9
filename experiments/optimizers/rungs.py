"""The ladder that multi-fidelity optimisers climb: fidelities on the view's path, from cheap to full."""

from __future__ import annotations

from typing import Final

from jahs.errors import InvalidArgument
from jahs.simulate import Visible

__all__ = ["rungs"]

_TINY: Final = 1e-9


def rungs(view: Visible, *, eta: float, n_rungs: int | None = None) -> list[dict[str, float]]:
    """Return fidelities in ascending order: shares 1, 1/eta, 1/eta**2 and so on of the way to the full one.

    With several fidelities they rise together (`view.path`). Shares that come to the same fidelity are one rung.

    Args:
        view: whose path is climbed.
        eta: at least 1.5.
        n_rungs: at most so many; None: as many as there are.
    """
    if not eta >= 1.5:
        raise InvalidArgument(f"eta={eta} is not at least 1.5")
    found, lowest = [view.path(1.0)], view.path(_TINY)
    share = 1.0
    while found[-1] != lowest and (n_rungs is None or len(found) < n_rungs):
        share = max(share / eta, _TINY)
        there = view.path(share)
        if there != found[-1]:
            found.append(there)
    return found[::-1]
