"""Recorded configs answered by what was recorded, and by surrogates that never saw them."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.optimizers import make
from experiments.studies.study import ViewChoice
from experiments.worlds import METRIC_NAMES, World, build_worlds, read_worlds, write_worlds
from jahs.comparison.views import open_view
from jahs.errors import CorruptFile, InvalidArgument, MissingData
from jahs.files.runs import is_timed, timing_machine
from jahs.files.tables import take
from jahs.release import RecordedTable, find_release, read_release
from jahs.simulate import Simulation
from jahs.spaces.encoding import decode_columns, encode
from jahs.tasks.definitions import TASKS
from surrogate.models.model import ForestSettings
from tests.experiments.conftest import TASK, recorded_table

QUICK = ForestSettings(n_trees=15, max_depth=4)


@pytest.fixture(scope="module")
def recorded():
    return recorded_table()


@pytest.fixture(scope="module")
def worlds(recorded):
    return build_worlds(recorded, TASKS[TASK], n_folds=3, settings=QUICK)


def configs_of(worlds):
    return decode_columns(np.column_stack([worlds.X, np.ones(len(worlds.X), np.float32)]))[0]


def test_the_table_answers_the_mean_of_what_was_recorded(worlds, recorded):
    runs, world = recorded.runs, World(worlds, "table")
    ids = np.unique(runs["config_id"])
    repeated = next(i for i in ids.tolist() if len(np.unique(runs["seed"][runs["config_id"] == i])) == 3)
    columns = take(recorded.configs, recorded.configs["config_id"] == repeated)
    columns = {name: values for name, values in columns.items() if name[0].isupper()}
    for name in METRIC_NAMES:
        is_row = (runs["config_id"] == repeated) & (runs["epoch"] == 5)
        expected = runs[name][is_row].astype(np.float64).mean()
        assert world.query_many(columns, at=5, metrics=(name,))[name][0] == pytest.approx(expected, rel=1e-6)


def test_the_embedded_release_holds_what_worlds_are_made_of():
    name = "fashion_mnist_mini"
    table = read_release(find_release(name)).table
    found = build_worlds(table, TASKS[name], n_folds=2, settings=ForestSettings(n_trees=5, max_depth=3))
    is_kept = (table.runs["status"] == "finished") & is_timed(table.runs, timing_machine(table.runs, table.profile))
    assert len(found.X) == len(np.unique(table.runs["config_id"][is_kept])) > 500


def test_every_recorded_config_is_nearest_to_itself(worlds):
    assert World(worlds, "table").nearest(configs_of(worlds)).tolist() == list(range(len(worlds.X)))


def test_nearest_counts_choices_steps_and_decades(worlds):
    world = World(worlds, "table")
    asked = world.sample(20, seed=1)
    found = world.nearest(asked)
    recorded_configs = configs_of(worlds)

    def apart(config, row):
        total = 0.0
        for key, value in config.items():
            other = recorded_configs[key][row]
            if key in ("LearningRate", "WeightDecay"):
                total += abs(np.log10(value / other)) / 3
            elif key in ("N", "W", "Resolution"):
                legal = {"N": [1, 3, 5], "W": [4, 8, 16], "Resolution": [0.25, 0.5, 1.0]}[key]
                total += abs(legal.index(value) - legal.index(other)) / 2
            else:
                total += value != other
        return total

    for config, row in zip(asked, found.tolist(), strict=True):
        distances = [apart(config, other) for other in range(len(worlds.X))]
        assert distances[row] == pytest.approx(min(distances), abs=1e-6)


def test_what_is_left_out_changes_nothing_about_its_own_answer(recorded, worlds):
    """Rewrite what was recorded for one config: its answer comes from surrogates that never saw it."""
    victim = np.unique(recorded.runs["config_id"])[7]
    is_victim = recorded.runs["config_id"] == victim
    forged = {**recorded.runs, "valid_acc": np.where(is_victim, 1.0, recorded.runs["valid_acc"]).astype(np.float32)}
    table = RecordedTable(configs=recorded.configs, runs=forged, profile=recorded.profile)
    other = build_worlds(table, TASKS[TASK], n_folds=3, settings=QUICK)
    assert (other.answers["table"]["valid_acc"][7] == 1.0).all()
    assert np.array_equal(other.answers["left_out"]["valid_acc"][7], worlds.answers["left_out"]["valid_acc"][7])
    assert not np.array_equal(other.answers["left_out"]["valid_acc"], worlds.answers["left_out"]["valid_acc"])


def test_runtimes_rise_with_the_epoch_in_both_worlds(worlds):
    for answers in worlds.answers.values():
        assert (np.diff(answers["runtime"], axis=1) > 0).all()


def test_optimisers_search_both_worlds_unchanged(worlds):
    for name in ("table", "left_out"):
        view = open_view(World(worlds, name), ViewChoice(search="sizes"), seed=0)
        trials = Simulation(view, 1, n_trials=30).run(make("hyperband", view, seed=0))
        assert len(trials) == 30
        assert set(trials[0].metrics) == set(METRIC_NAMES)


def test_worlds_survive_their_file_and_a_damaged_one_is_refused(tmp_path, worlds):
    path = tmp_path / "worlds" / "task.npz"
    with pytest.raises(MissingData, match=r"experiments\.run truth builds it"):
        read_worlds(path, TASK)
    write_worlds(path, worlds)
    again = read_worlds(path, TASK)
    assert np.array_equal(again.X, worlds.X)
    assert again.agreement("valid_acc") == worlds.agreement("valid_acc")
    sound = path.read_bytes()
    entry = sound.index(b"PK\x01\x02")  # the first of the directory; the method of compression stands 10 bytes on
    other_methods = [sound[: entry + 10] + bytes([method, 0]) + sound[entry + 12 :] for method in (12, 14, 99)]
    for damaged in (sound[:2000], *other_methods):
        path.write_bytes(damaged)
        with pytest.raises(CorruptFile, match="it is built again"):
            read_worlds(path, TASK)


def test_too_few_recorded_configs_and_seeds_are_refused(recorded, worlds):
    ids = np.unique(recorded.runs["config_id"])[:20]
    few = take(recorded.runs, np.isin(recorded.runs["config_id"], ids))
    with pytest.raises(
        MissingData, match="20 configs have a finished run on the processor of the runtimes; 50 are needed"
    ):
        build_worlds(RecordedTable(configs=recorded.configs, runs=few, profile=recorded.profile), TASKS[TASK])
    with pytest.raises(InvalidArgument, match="no training noise to draw"):
        World(worlds, "table").query_many(configs_of(worlds), seed=1)
    assert encode(configs_of(worlds), 1).shape == (len(worlds.X), 15)
