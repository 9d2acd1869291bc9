"""Random configs, one or many: the form that a space, a benchmark and its views share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import overload

from jahs.spaces.configs import Config


class Sampler(ABC):
    """A source of random configs."""

    __slots__ = ()

    @overload
    def sample(self, n: None = None, *, seed: int | None) -> Config: ...
    @overload
    def sample(self, n: int, *, seed: int | None) -> list[Config]: ...
    def sample(self, n: int | None = None, *, seed: int | None) -> Config | list[Config]:
        """Return `n` random configs, or one if `n` is not given; all 14 keys.

        A space draws as `Space.sample_columns` says; a table, and a view of one that fixes nothing, draws recorded
        configs.

        Raises:
            InvalidArgument: `n` is not an integer >= 0, or `seed` is not an integer >= 0 or None, or too large.

        Example:
            >>> import jahs
            >>> jahs.space().sample(3, seed=0)[:2] == jahs.space().sample(2, seed=0)
            True
        """
        found = self._sample(1 if n is None else n, seed)
        return found[0] if n is None else found

    @abstractmethod
    def _sample(self, n: int, seed: int | None) -> list[Config]:
        """Return `n` random configs."""
