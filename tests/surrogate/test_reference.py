"""The reference config follows the stated rule."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from jahs.files.tables import take
from jahs.schema import CONFIG_KEYS
from surrogate.packing import reference_config
from tests.surrogate.landscape import TASK, measurements, split_of

MEASURED = measurements(10)
SPLIT = split_of(MEASURED)


def test_the_reference_is_the_valid_config_at_the_quantile_at_full_size() -> None:
    runs = take(MEASURED.runs, (MEASURED.runs["epoch"] == TASK.max_epoch) & (MEASURED.runs["status"] != "diverged"))
    means = {
        config_id: runs["valid_acc"][runs["config_id"] == config_id].mean(dtype=np.float64)
        for config_id in np.unique(runs["config_id"]).tolist()
        if SPLIT.assignments[f"{config_id:016x}"] == "valid"
    }
    ranked = sorted((round(mean, 9), config_id) for config_id, mean in means.items())
    _, wanted = ranked[math.ceil(0.9 * len(ranked)) - 1]
    place = MEASURED.configs["config_id"].tolist().index(wanted)
    config = {key: MEASURED.configs[key][place].item() for key in CONFIG_KEYS}
    assert reference_config(MEASURED, SPLIT) == {**config, "N": 5, "W": 16, "Resolution": 1.0}


def test_without_a_validation_config_at_the_last_epoch_there_is_no_reference() -> None:
    early = take(MEASURED.runs, MEASURED.runs["epoch"] < TASK.max_epoch)
    assert reference_config(replace(MEASURED, runs=early), SPLIT) is None
