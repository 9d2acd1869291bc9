"""How an optimiser's settings say what is wrong with them."""

from __future__ import annotations

from jahs.errors import InvalidArgument

__all__ = ["require"]


def require(*claims: tuple[bool, str]) -> None:
    """Refuse every claim that does not hold, at once.

    Raises:
        InvalidArgument: with the text of each.
    """
    faults = [text for holds, text in claims if not holds]
    if faults:
        raise InvalidArgument("\n".join(faults))
