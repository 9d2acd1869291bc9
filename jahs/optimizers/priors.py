"""Expert priors: configs that an expert could believe to be good, for optimisers that take one."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import numpy as np

from jahs.errors import InvalidArgument, UnknownName
from jahs.queries.queryable import Queryable
from jahs.spaces.configs import Config
from jahs.spaces.parameters import show
from jahs.tasks.objectives import read_objectives

_N_RANDOM: Final = 1000

QUALITIES: Final = MappingProxyType({"good": 9, "medium": 499, "bad": 990})
"""Number of configs, among 1,000 random ones, that are better than the prior."""


def expert_prior(view: Queryable, quality: str, *, objective: str = "valid_acc") -> Config:
    """Return a prior of a given quality, the same for everyone with the same release.

    1,000 random configs (seed 0) are ranked by the mean of the objective at the full fidelity. The 10th is the "good"
    prior, the 500th the "medium" and the 991st the "bad" one.

    Args:
        view: a benchmark or a view; an optimiser cannot query it, so the caller asks for the prior.
        quality: "good", "medium" or "bad".
        objective: a metric, in its own direction.

    Raises:
        InvalidArgument: `view` is neither a benchmark nor a view.
        UnknownName: the quality or the metric does not exist; lists those that do.

    Example:
        >>> import jahs
        >>> view = jahs.Benchmark("cifar10_mini").view(fixed={"N": 5, "W": 16, "Resolution": 1.0})
        >>> means = [view.query(expert_prior(view, quality)).valid_acc for quality in ("good", "medium", "bad")]
        >>> means == sorted(means, reverse=True)
        True
    """
    if not isinstance(view, Queryable):
        raise InvalidArgument(f"view={show(view)} is neither a benchmark nor a view")
    if not isinstance(quality, str) or quality not in QUALITIES:
        raise UnknownName.of("quality", quality, QUALITIES)
    (target,) = read_objectives([objective], known=view.metrics)
    configs = view.sample(_N_RANDOM, seed=0)
    means = view.query_many(configs, metrics=(target.metric.name,))[target.metric.name]
    return configs[int(np.argsort(target.minimised(means), kind="stable")[QUALITIES[quality]])]
