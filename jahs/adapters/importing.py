"""Import an optimiser's package when it is first needed, and seed the global random generators that some use."""

from __future__ import annotations

import random
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from jahs.errors import MissingDependency


def import_tool(module: str, *, needs: str) -> Any:  # the tools' types are not installed where jahs is checked
    """Return `module` of an optimiser's package; MissingDependency says what to install, `needs`.

    Warnings that it raises while it is imported are ignored.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as err:
        raise MissingDependency(f"{module} cannot be imported ({err}): pip install {needs}") from err


class Chance:
    """A separate state of the global random generators of `random`, `numpy.random` and torch.

    Inside `with chance:` they continue from where the last such block left them; afterwards they are restored.

    Args:
        seed: seed of the generators.
        torch: the torch module, if its generator is included.

    Example:
        >>> import random
        >>> one, other = Chance(0), Chance(0)
        >>> with one:
        ...     first = random.random()
        >>> with other:
        ...     random.random() == first
        True
    """

    def __init__(self, seed: int, *, torch: Any = None) -> None:  # Any: torch is never imported here
        self._torch = torch
        self._outside = self._get()
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002  # the generator that tools draw from
        if torch is not None:
            torch.manual_seed(seed)
        self._inside = self._get()
        self._set(self._outside)

    def __enter__(self) -> None:
        self._outside = self._get()
        self._set(self._inside)

    def __exit__(self, *_: object) -> None:
        self._inside = self._get()
        self._set(self._outside)

    def _get(self) -> tuple[Any, Any, Any]:
        torch_state = None if self._torch is None else self._torch.get_rng_state()
        return random.getstate(), np.random.get_state(), torch_state  # noqa: NPY002

    def _set(self, state: tuple[Any, Any, Any]) -> None:
        random.setstate(state[0])
        np.random.set_state(state[1])  # noqa: NPY002
        if self._torch is not None:
            self._torch.set_rng_state(state[2])
