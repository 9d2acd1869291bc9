"""Schedules that end early: their task files and protocols, and both semantics of successive halving."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments import schedules
from experiments.schedules import Paired, compare_schedules, main, pair_schedules, short_task
from jahs.errors import InvalidArgument
from jahs.tasks.definitions import KNOWN, TASKS
from jahs.tasks.own import register
from pipeline.protocol import protocol_digest
from surrogate.data.measurements import Measurements
from tests.building import make_configs, make_profile, make_runs

TASK = TASKS["cifar10_mini"]
N = 40


def test_a_schedule_that_ends_early_is_a_task_with_a_protocol_of_its_own(tmp_path, capsys):
    assert main(["task", TASK.name, "--epochs", "3", "--out", str(tmp_path / "made")]) == 0
    path = json.loads(capsys.readouterr().out)["file"]
    try:
        found = register(path)
    finally:
        KNOWN.pop("cifar10_mini_3", None)
    assert (found.name, found.max_epoch, found.index_digest) == ("cifar10_mini_3", 3, TASK.index_digest)
    assert protocol_digest(found) != protocol_digest(TASK)
    with pytest.raises(InvalidArgument, match=r"epochs=27 must be in 1\.\.26"):
        short_task(TASK.name, TASK.max_epoch)


@pytest.fixture
def folders(monkeypatch):
    """Runs of the same configs under schedules of 3, 9 and 27 epochs, by the name of their folder."""
    configs = make_configs(N, seed=0)
    found = {}
    for n_epochs in (3, 9, TASK.max_epoch):
        task = TASK if n_epochs == TASK.max_epoch else short_task(TASK.name, n_epochs)
        runs = make_runs(configs, seeds=[(0,)] * N, n_epochs=n_epochs)
        found[str(n_epochs)] = Measurements(
            task=task, protocol="0" * 16, configs=configs, runs=runs, profile=make_profile(configs)
        )
    monkeypatch.setattr(schedules, "read_measurements", found.__getitem__)
    return found


def test_configs_are_paired_whatever_the_order_of_the_folders(folders):
    one, other = pair_schedules("27", ["3", "9"]), pair_schedules("27", ["9", "3"])
    assert one.epochs == other.epochs == (3, 9, 27)
    for semantics in ("one schedule", "own schedules"):
        assert np.array_equal(one.accuracy[semantics], other.accuracy[semantics])
        assert one.accuracy[semantics].shape == (N, 3)
        assert (np.diff(one.runtime[semantics], axis=1) > 0).all()
    assert np.array_equal(one.accuracy["one schedule"][:, -1], one.accuracy["own schedules"][:, -1])
    runs = folders["27"].runs
    at_9 = runs["valid_acc"][runs["epoch"] == 9]
    assert sorted(one.accuracy["one schedule"][:, 1]) == pytest.approx(sorted(at_9))


def test_other_tasks_equal_lengths_and_few_configs_are_refused(folders, monkeypatch):
    with pytest.raises(InvalidArgument, match="different lengths"):
        pair_schedules("27", ["27"])
    folders["wide"] = replace(folders["9"], task=replace(folders["9"].task, side=32))
    with pytest.raises(InvalidArgument, match="must be of one task"):
        pair_schedules("27", ["wide"])
    monkeypatch.setattr(schedules, "_FEWEST", N + 1)
    with pytest.raises(InvalidArgument, match=f"{N} configs finished every schedule"):
        pair_schedules("27", ["9"])


def test_own_schedules_cost_every_rung_and_order_as_they_do():
    rng = np.random.default_rng(0)
    full = rng.permutation(N).astype(np.float64)
    wrong = np.column_stack([-full, -full, full])
    right = np.column_stack([full, full, full])
    runtime = np.tile([1.0, 3.0, 9.0], (N, 1))
    runtimes = {"one schedule": runtime, "own schedules": runtime}
    paired = Paired(epochs=(1, 3, 9), accuracy={"one schedule": wrong, "own schedules": right}, runtime=runtimes)
    found = compare_schedules(paired)
    assert [each["tau"] for each in found["own schedules"]["correlations"]] == [1.0, 1.0]
    assert [each["tau"] for each in found["one schedule"]["correlations"]] == [-1.0, -1.0]
    one, own = (found[semantics]["halving"] for semantics in ("one schedule", "own schedules"))
    # 9 configs, 3 of them, 1 of them: continued 9 * 1 + 3 * 2 + 1 * 6, from the first epoch 9 * 1 + 3 * 3 + 1 * 9
    assert one["cost"] == pytest.approx(21 / 9)
    assert own["cost"] == pytest.approx(27 / 9)
    # The best of nine random configs is what nine full trainings find; the worst of nine is worse than one of them.
    assert own["random_search_cost"] == pytest.approx(9, abs=1)
    assert own["speed_up"] == pytest.approx(own["random_search_cost"] / own["cost"])
    assert one["random_search_cost"] == 1
