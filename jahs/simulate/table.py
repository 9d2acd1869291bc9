"""Trials as a table. It is apart from `trial`: otherwise that page of the site would have a dead link to it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from jahs.queries.answers import to_frame
from jahs.schema import CONFIG_KEYS
from jahs.simulate.trial import Trial


def to_pandas(trials: Iterable[Trial]) -> Any:  # Any: pandas is not a dependency
    """Return a DataFrame with one row per trial: the trial, its config, the epoch and the metrics, NaN where missing.

    N, W and Resolution are those of the network that was trained, where they are fidelities.

    Raises:
        MissingDependency: pandas is not installed.
    """
    trials = list(trials)
    names = dict.fromkeys(name for trial in trials for name in trial.metrics)
    networks: list[dict[str, Any]] = [{**trial.config, **trial.fidelity} for trial in trials]
    about: tuple[str, ...] = ("trial", "status", "worker", "start", "end", "seed")
    return to_frame(
        {
            **{name: [getattr(trial, name) for trial in trials] for name in about},
            **{key: [network[key] for network in networks] for key in (*CONFIG_KEYS, "epoch")},
            **{name: [trial.metrics.get(name, math.nan) for trial in trials] for name in names},
        }
    )
