"""The part of a benchmark that an optimiser may see: everything but the answers, which cost simulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jahs.errors import UnknownName
from jahs.queries.views import Queryable, View
from jahs.simulate.answers import is_hidden
from jahs.simulate.trial import AskedFidelity
from jahs.spaces.configs import Config
from jahs.spaces.space import Space
from jahs.tasks.metrics import Metric

__all__ = ["Visible", "visible"]


class Visible:
    """A benchmark or a view as its optimisers see it: it cannot be queried.

    Attributes:
        space: the searched keys.
        fidelities: every fidelity's legal values in ascending order.
        full: the highest fidelity.
        max_epoch: the last epoch.
        metrics: of the trials; none is measured on the test images.
    """

    __slots__ = ("_oracle", "_view", "fidelities", "full", "max_epoch", "metrics", "space")

    def __init__(self, oracle: Queryable, metrics: Sequence[str] | None) -> None:
        view = oracle if isinstance(oracle, View) else View(oracle)
        names = tuple(view.metrics if metrics is None else metrics)
        for name in names:
            if name not in view.metrics:
                raise UnknownName.of("metric", name, view.metrics)
        self.space: Final[Space] = view.space
        self.fidelities: Final[Mapping[str, tuple[float, ...]]] = view.fidelities
        self.full: Final[Mapping[str, float]] = dict(view.full)
        self.max_epoch: Final[int] = view.max_epoch
        self.metrics: Final[Mapping[str, Metric]] = {name: view.metrics[name] for name in names if not is_hidden(name)}
        self._oracle: Final = oracle
        self._view: Final = view

    def sample(self, n: int, *, seed: int) -> list[Config]:
        """Return `n` random configs that the benchmark can answer for."""
        return self._oracle.sample(n, seed=seed)

    def fidelity(self, at: AskedFidelity = None) -> dict[str, float]:
        """Return a whole fidelity, what is left out at its full value."""
        return self._view.fidelity(at)

    def path(self, share: float) -> dict[str, float]:
        """Return the fidelity at a share in (0, 1] of the way to the full one; see `jahs.queries.views.View.path`."""
        return self._view.path(share)


def visible(oracle: Queryable | Visible, metrics: Sequence[str] | None = None) -> Visible:
    """Return the part of `oracle` that optimisers may see, with the named metrics or all.

    Raises:
        UnknownName: a metric does not exist; lists those that do.
    """
    return oracle if isinstance(oracle, Visible) else Visible(oracle, metrics)
