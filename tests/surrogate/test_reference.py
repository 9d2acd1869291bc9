"""The reference config: the stated rule, and a release to which it is added answers as before."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.files.tables import take
from jahs.release import read_release
from jahs.schema import CONFIG_KEYS
from surrogate import reference
from surrogate.reference import reference_config
from tests.releases import make_release
from tests.surrogate.landscape import TASK, made_from, measurements, split_of, write_folder

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


def test_a_reference_is_added_to_a_release_of_the_same_data_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = write_folder(tmp_path / "runs", MEASURED)
    facts = made_from(runs, version="0.3.0")
    folder = make_release(tmp_path / "release", task=TASK.name, facts=facts)
    before = read_release(folder)
    arguments = [str(runs), "--split", str(runs / "split.json"), "--release", str(folder)]
    assert reference.main(arguments) == 0
    now = read_release(folder)
    now.verify()
    assert now.reference_config == json.loads(capsys.readouterr().out)["config"] == reference_config(MEASURED, SPLIT)
    assert (now.facts["version"], now.answers_as) == ("0.3.1", {now.sha256, before.sha256})
    assert now.manifest.files == before.manifest.files
    assert reference.main(arguments) == 0
    assert read_release(folder).sha256 == now.sha256
    shutil.rmtree(folder)
    other = make_release(folder, task=TASK.name, facts={**facts, "split": "0" * 16})
    assert reference.main(arguments) == 2
    assert f"split must be '{'0' * 16}', got" in capsys.readouterr().err
    assert read_release(other).facts["version"] == "0.3.0"
