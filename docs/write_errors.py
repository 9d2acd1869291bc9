"""Write docs/errors.md, the index of errors, from the docstrings of jahs/errors.py: `python docs/write_errors.py`."""

from __future__ import annotations

import inspect
from pathlib import Path

from jahs import errors

PAGE = Path(__file__).resolve().with_name("errors.md")

HEAD = """# Errors

All errors that JAHS raises are subclasses of `jahs.errors.JahsError`. A message says what was wrong, where,
what is allowed and what to do. The command `jahs` prints the message without a traceback.
"""


def meaning_and_remedy(error: type) -> tuple[str, str]:
    """Return the first two paragraphs of a docstring: what the error means, and what to do."""
    meaning, remedy, *_ = inspect.getdoc(error).split("\n\n")
    return meaning, " ".join(remedy.split())


def page() -> str:
    """Return the page, errors in the order of the module."""
    parts = [HEAD]
    for error in (value for name, value in vars(errors).items() if name in errors.__all__):
        meaning, remedy = meaning_and_remedy(error)
        bases = " and ".join(f"`{base.__name__}`" for base in error.__bases__)
        parts.append(f"## {error.__name__}\n\n{meaning} Refines {bases}.\n\n**What to do:** {remedy}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
