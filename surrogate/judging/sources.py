"""Fits without each source in turn: what a source teaches about its own configs (NAS-Bench-301, tables 6 and 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from jahs.schema import SOURCES
from surrogate.data.measurements import Measurements
from surrogate.data.rows import FEWEST_TO_FIT, Rows
from surrogate.judging.agreement import agreement, first_seed
from surrogate.models.model import ForestSettings, fit_surrogate

_FEWEST: Final = 8
_SCORES: Final = ("r2", "tau")


def leave_sources_out(
    metric: str, measured: Measurements, parts: Mapping[str, Rows], settings: ForestSettings
) -> list[dict[str, Any]]:  # Any: JSON
    """Return, for each source, R2 and tau on its test configs of models fitted to train with and without it.

    Scores are for the last epoch and first seeds; None where the source has fewer than eight test configs, or is all
    that there is to fit. With one source, there is nothing to leave out.
    """
    if "source" not in measured.configs or len(np.unique(measured.configs["source"])) < 2:
        return []
    of_config = dict(zip(measured.configs["config_id"].tolist(), measured.configs["source"].tolist(), strict=True))
    train, test = parts["train"], parts["test"]
    test = test.take((test.epoch == measured.task.max_epoch) & first_seed(test))
    trained, tested = (np.array([of_config[one] for one in rows.config_id.tolist()]) for rows in (train, test))
    fitted = fit_surrogate(metric, train, measured.task, settings=settings)
    found = []
    for source in SOURCES:
        is_in, is_test = trained == source, tested == source
        counts = {"n_train": train.take(is_in).n_configs, "n_test": int(is_test.sum())}
        if not any(counts.values()):
            continue
        own, others = test.take(is_test), train.take(~is_in)
        facts: dict[str, Any] = {"source": source, **counts, "with": None, "without": None}  # Any: JSON
        if counts["n_test"] >= _FEWEST and others.n_configs >= FEWEST_TO_FIT:
            without = fit_surrogate(metric, others, measured.task, settings=settings)
            for name, model in (("with", fitted), ("without", without)):
                scores = agreement(metric, own.y, model.predict(own.X))
                facts[name] = {score: scores[score] for score in _SCORES}
        found.append(facts)
    return found
