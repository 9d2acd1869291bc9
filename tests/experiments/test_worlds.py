"""Recorded configs answered by what was recorded, and by surrogates that never saw them."""

import numpy as np
import pytest

import jahs
from experiments.optimizers import make
from experiments.repetitions import FromPool
from experiments.views import open_view
from experiments.worlds import METRIC_NAMES, WORLD_NAMES, World, build_worlds, read_worlds, write_worlds
from jahs.comparison.terms import ViewChoice
from jahs.errors import CorruptFile, InvalidArgument, MissingData, NotRecorded
from jahs.files.runs import is_timed, timing_machine
from jahs.files.tables import take
from jahs.release import RecordedTable, find_release, read_release
from jahs.simulate import Simulation
from jahs.spaces.configs import config_id
from jahs.spaces.encoding import decode_columns, encode
from jahs.tasks.definitions import TASKS
from surrogate.models.boosting import ForestSettings
from tests.experiments.conftest import TASK, recorded_table
from tests.jahs.models.noise_models import noise_model

NOISE = noise_model(TASK)
QUICK = ForestSettings(n_trees=15, max_depth=4)


@pytest.fixture(scope="module")
def recorded():
    return recorded_table()


@pytest.fixture(scope="module")
def worlds(recorded):
    return build_worlds(recorded, TASKS[TASK], NOISE, n_folds=3, settings=QUICK)


def configs_of(worlds):
    return decode_columns(np.column_stack([worlds.X, np.ones(len(worlds.X), np.float32)]))[0]


def test_the_table_answers_recorded_runs_in_turn(worlds, recorded):
    runs, world = recorded.runs, World(worlds, "table")
    ids = np.unique(runs["config_id"])
    numbers = [len(np.unique(runs["seed"][runs["config_id"] == i])) for i in ids.tolist()]
    row = numbers.index(3)
    for name in METRIC_NAMES:
        is_row = (runs["config_id"] == ids[row]) & (runs["epoch"] == 5)
        expected = runs[name][is_row][np.argsort(runs["seed"][is_row])].astype(np.float64)
        one = {"configs": [world.configs[row]], "each_at": np.array([5]), "metrics": (name,)}
        asked = [world.query_many(**one, seed=k)[name][0] for k in range(4)]
        assert asked == pytest.approx([*expected, expected[0]], rel=1e-6)
        assert worlds.answers["table"][name][row, 4] == pytest.approx(expected.mean(), rel=1e-6)


def test_the_surrogate_has_as_many_draws_of_a_config_as_recorded_runs(worlds):
    world, mean = World(worlds, "left_out"), worlds.answers["left_out"]["valid_acc"][:, 4]
    at = np.full(len(mean), 5)
    drawn = np.stack([world.query_many(world.configs, each_at=at, seed=k)["valid_acc"] for k in range(6)])
    again = world.query_many(world.configs[::-1], each_at=at, seed=4)["valid_acc"][::-1]
    assert np.array_equal(again, drawn[4])
    assert [len(np.unique(values)) for values in drawn.T] == np.diff(worlds.first).tolist()
    assert (drawn != mean).all()
    assert abs((drawn[0] - mean).mean()) < 3 * (drawn[0] - mean).std() / np.sqrt(len(mean))


def test_the_embedded_release_holds_what_worlds_are_made_of():
    name = "cifar10_mini"
    table = read_release(find_release(name)).table
    worlds = build_worlds(
        table, TASKS[name], noise_model(name), n_folds=2, settings=ForestSettings(n_trees=5, max_depth=3)
    )
    is_kept = (table.runs["status"] == "finished") & is_timed(table.runs, timing_machine(table.runs, table.profile))
    assert len(worlds.X) == len(np.unique(table.runs["config_id"][is_kept])) > 500


def test_every_recorded_config_is_nearest_to_itself(worlds):
    world = World(worlds, "table")
    assert all(world.nearest(config) == config for config in world.configs)


def test_nearest_counts_choices_steps_and_decades(worlds):
    world = World(worlds, "table")
    asked = jahs.space().sample(20, seed=1)
    found = [world.configs.index(world.nearest(config)) for config in asked]
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

    for config, row in zip(asked, found, strict=True):
        distances = [apart(config, other) for other in range(len(worlds.X))]
        assert distances[row] == pytest.approx(min(distances), abs=1e-6)


def test_what_is_left_out_changes_nothing_about_its_own_answer(recorded, worlds):
    """Rewrite what was recorded for one config: its answer comes from surrogates that never saw it."""
    victim = np.unique(recorded.runs["config_id"])[7]
    is_victim = recorded.runs["config_id"] == victim
    forged = {**recorded.runs, "valid_acc": np.where(is_victim, 1.0, recorded.runs["valid_acc"]).astype(np.float32)}
    table = RecordedTable(configs=recorded.configs, runs=forged, profile=recorded.profile)
    other = build_worlds(table, TASKS[TASK], NOISE, n_folds=3, settings=QUICK)
    assert (other.answers["table"]["valid_acc"][7] == 1.0).all()
    assert np.array_equal(other.answers["left_out"]["valid_acc"][7], worlds.answers["left_out"]["valid_acc"][7])
    assert not np.array_equal(other.answers["left_out"]["valid_acc"], worlds.answers["left_out"]["valid_acc"])


def test_runtimes_rise_with_the_epoch_in_both_worlds(worlds):
    for answers in worlds.answers.values():
        assert (np.diff(answers["runtime"], axis=1) > 0).all()


@pytest.mark.parametrize("optimizer", ["local_search", "regularized_evolution", "hyperband"])
def test_optimisers_propose_recorded_configs_once_at_each_epoch(worlds, optimizer):
    for name in ("table", "left_out"):
        world = World(worlds, name)
        view = open_view(world, ViewChoice(search="sizes"), seed=0)
        found = FromPool(make(optimizer, view, seed=0), world)
        trials = Simulation(view, 1, n_trials=60, evaluation_seed=0).run(found)
        assert set(trials[0].metrics) == set(METRIC_NAMES)
        asked = [(config_id(trial.config), trial.fidelity["epoch"]) for trial in trials]
        assert len(set(asked)) == 60
        assert {one for one, _ in asked} <= {config_id(config) for config in world.configs}
        assert optimizer != "hyperband" or len({one for one, _ in asked}) < 60  # promoted ones stay


def test_a_pool_that_is_used_up_begins_again(worlds):
    world = World(worlds, "table")
    view = open_view(world, ViewChoice(search="sizes"), seed=0)
    n = len(world.configs) + 5
    trials = Simulation(view, 1, n_trials=n, evaluation_seed=0).run(
        FromPool(make("random_search", view, seed=0), world)
    )
    assert len({config_id(trial.config) for trial in trials}) == n - 5


def test_worlds_survive_their_file_and_a_damaged_one_is_refused(tmp_path, worlds):
    path = tmp_path / "worlds" / "task.npz"
    with pytest.raises(MissingData, match=r"experiments\.run truth builds it"):
        read_worlds(path, TASK)
    write_worlds(path, worlds)
    again = read_worlds(path, TASK)
    assert np.array_equal(again.X, worlds.X)
    assert again.noise == worlds.noise
    assert np.array_equal(again.first, worlds.first)
    for name in WORLD_NAMES:
        assert np.array_equal(again.answers[name]["valid_acc"], worlds.answers[name]["valid_acc"])
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
        build_worlds(RecordedTable(configs=recorded.configs, runs=few, profile=recorded.profile), TASKS[TASK], NOISE)
    with pytest.raises(InvalidArgument, match="give a seed"):
        World(worlds, "table").query_many(configs_of(worlds))
    with pytest.raises(NotRecorded, match="1 configs are not recorded"):
        World(worlds, "table").query_many([jahs.space().sample(seed=0)], seed=0)
    assert encode(configs_of(worlds), 1).shape == (len(worlds.X), 15)
