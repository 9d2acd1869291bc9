"""The recipe: `load_blackbox` finds its tables, they hold the answers of the benchmark, and the simulator uses them."""

from __future__ import annotations

from pathlib import Path

import jahs_import
import numpy as np
import pytest
from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend.simulator_backend.simulator_callback import SimulatorCallback
from syne_tune.blackbox_repository import BlackboxRepositoryBackend, repository
from syne_tune.blackbox_repository.conversion_scripts import utils
from syne_tune.experiments import load_experiment
from syne_tune.optimizer.baselines import ASHA

import jahs

N_CONFIGS = 60


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipes as after a merge, and the repository in a folder of the test; nothing is downloaded."""
    recipes = {recipe.name: recipe for recipe in jahs_import.JAHS_RECIPES}
    make = jahs_import.make_blackbox
    monkeypatch.setattr(jahs_import, "make_blackbox", lambda task: make(task, N_CONFIGS))
    monkeypatch.setattr(repository, "generate_blackbox_recipes", recipes)
    monkeypatch.setattr(repository, "snapshot_download", lambda **_: None)
    monkeypatch.setattr(repository, "repository_path", tmp_path)
    monkeypatch.setattr(utils, "repository_path", tmp_path)
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path))
    for recipe in recipes.values():
        recipe.generate(upload_on_hub=False)


@pytest.mark.parametrize("task", jahs.releases())
def test_the_loaded_table_holds_the_answers_of_the_benchmark(task: str, installed) -> None:
    blackbox = repository.load_blackbox(f"jahs-{task}")[task]
    bench = jahs.Benchmark(task)
    assert blackbox.objectives_evaluations.shape[:3] == (N_CONFIGS, 3, bench.max_epoch)
    assert not [name for name in blackbox.objectives_names if "test" in name]
    elapsed = blackbox.objectives_evaluations[..., blackbox.objectives_names.index("metric_elapsed_time")]
    assert (np.diff(elapsed, axis=-1) > 0).all()
    for row, seed in ((0, 0), (7, 2)):
        params = blackbox.hyperparameters.iloc[row].to_dict()
        config = jahs.adapters.syne_tune.to_config(params, bench.space)
        assert config == bench.space.sample(row + 1, seed=0)[row]
        for epoch in (1, bench.max_epoch):
            answer = bench.query(config, at=epoch, seed=seed)
            recorded = blackbox.objective_function(params, {"hp_epoch": epoch}, seed=seed)
            assert recorded["metric_valid_error"] == pytest.approx(1 - answer.valid_acc / 100, abs=1e-6)
            assert recorded["metric_elapsed_time"] == pytest.approx(answer.runtime, rel=1e-6)
            assert recorded["metric_n_macs"] == pytest.approx(answer.n_macs, rel=1e-6)


def test_the_repository_backend_tunes_in_simulated_time(installed) -> None:
    backend = BlackboxRepositoryBackend(
        blackbox_name="jahs-fashion_mnist_mini",
        elapsed_time_attr=jahs_import.METRIC_ELAPSED_TIME,
        dataset="fashion_mnist_mini",
        surrogate="KNeighborsRegressor",
        surrogate_kwargs={"n_neighbors": 1},
    )
    scheduler = ASHA(
        backend.blackbox.configuration_space,
        metric=jahs_import.METRIC_VALID_ERROR,
        time_attr=jahs_import.TIME_ATTR,
        max_t=27,
        random_seed=0,
    )
    stop = StoppingCriterion(max_num_trials_finished=10)
    callbacks = [SimulatorCallback()]
    tuner = Tuner(backend, scheduler, stop, n_workers=4, sleep_time=0, callbacks=callbacks, save_tuner=False)
    tuner.run()
    results = load_experiment(tuner.name).results
    last = results.groupby("trial_id")["hp_epoch"].max()
    assert len(last) >= 10
    assert len(set(last)) > 1
