"""CARP-S itself runs random search on every task, and SMAC with several fidelities on three."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from carps.utils.trials import TrialInfo
from jahs_carps.make_tasks import FOLDER, TASKS, make_task
from jahs_carps.objective_function import JAHSObjectiveFunction

import jahs

HERE = Path(__file__).parent


def run(tmp_path: Path, *overrides: str) -> dict[str, list[dict]]:
    """Run CARP-S and return the trials that its file logger wrote, by task."""
    command = [sys.executable, "-m", "carps.run", "-m", "hydra.searchpath=[pkg://jahs_carps/configs]", *overrides]
    path = os.pathsep.join(map(str, (HERE, HERE.parents[1])))
    process = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr[-3000:]
    logs = tmp_path.rglob("trial_logs.jsonl")
    return {log.parents[1].name: [json.loads(line) for line in log.read_text().splitlines()] for log in logs}


def test_random_search_runs_on_every_task(tmp_path: Path) -> None:
    logs = run(
        tmp_path,
        "+optimizer/randomsearch=config",
        f"+task/JAHS={','.join(TASKS)}",
        "++task.optimization_resources.n_trials=1",
    )
    assert set(logs) == set(TASKS)
    for name, lines in logs.items():
        for line in lines:
            costs = line["trial_value"]["cost"]
            assert len(costs if isinstance(costs, list) else [costs]) == (2 if "multiobjective" in name else 1)
            assert line["trial_value"]["virtual_time"] > 0


def test_smac_runs_with_several_fidelities(tmp_path: Path) -> None:
    tasks = ("fashion_mnist_mini_multifidelity", "fashion_mnist_mini_multifidelity_sizes", "cifar10_mini_multifidelity")
    options = ("+optimizer/smac20=multifidelity", "++task.optimization_resources.n_trials=3", "seed=1")
    logs = run(tmp_path, f"+task/JAHS={','.join(tasks)}", *options)
    assert set(logs) == set(tasks)
    for lines in logs.values():
        assert len({line["trial_info"]["budget"] for line in lines}) > 1
        assert len(lines) > 3


def test_the_yaml_files_are_what_the_views_say() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(TASKS)
    assert [name for name in TASKS if (FOLDER / f"{name}.yaml").read_text() != make_task(name)] == []


@pytest.fixture
def function():
    return JAHSObjectiveFunction("fashion_mnist_mini", ["valid_acc", "latency"])


def test_answers_are_those_of_the_benchmark(function) -> None:
    config = function.configspace.sample_configuration()
    value = function.evaluate(TrialInfo(config=config, budget=3.4))
    answer = jahs.Benchmark("fashion_mnist_mini").query(
        {**dict(config), "TrivialAugment": config["TrivialAugment"] == "True", "Optimizer": "SGD"}, at=3
    )
    assert value.cost == [100 - answer.valid_acc, answer.latency]
    assert value.virtual_time == answer.runtime


def test_a_trial_that_goes_on_is_charged_the_difference(function) -> None:
    config, other = function.configspace.sample_configuration(2)
    charged = [function.evaluate(TrialInfo(config=config, budget=budget)).virtual_time for budget in (1, 9, 27)]
    fresh = JAHSObjectiveFunction("fashion_mnist_mini")
    full = fresh.evaluate(TrialInfo(config=config)).virtual_time
    assert sum(charged) == pytest.approx(full)
    assert function.evaluate(TrialInfo(config=config, budget=27)).virtual_time == pytest.approx(full - sum(charged[:2]))
    assert function.evaluate(TrialInfo(config=other)).virtual_time == pytest.approx(
        fresh.evaluate(TrialInfo(config=other)).virtual_time
    )


def test_a_larger_network_begins_at_its_first_epoch() -> None:
    function = JAHSObjectiveFunction("fashion_mnist_mini", fidelities=["epoch", "N", "W", "Resolution"])
    config = function.configspace.sample_configuration()
    charged = [function.evaluate(TrialInfo(config=config, budget=budget)).virtual_time for budget in (9, 27)]
    runtimes = [function.evaluator.evaluate(dict(config), budget=budget).cost for budget in (9, 27)]
    assert charged == runtimes
