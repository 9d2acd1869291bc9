"""The package of the registry: it loads as a user loads it, optimises, and passes the check of its header."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import optuna
import optunahub
import pytest
import yaml

import jahs
from tests.docs.test_markdown import run_blocks

HERE = Path(__file__).parent
PACKAGE = HERE / "package" / "benchmarks" / "jahs"
README = (PACKAGE / "README.md").read_text(encoding="utf-8")


def load_local(package: str):
    return optunahub.load_local_module(package, registry_root=str(HERE / "package"))


@pytest.fixture
def problem():
    return load_local("benchmarks/jahs").Problem


@pytest.fixture(autouse=True)
def _quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def test_the_header_is_what_the_registry_asserts() -> None:
    header = yaml.safe_load(README.split("---\n")[1])
    assert {name: type(value) for name, value in header.items()} == {
        "author": str,
        "title": str,
        "description": str,
        "tags": list,
        "optuna_versions": list,
        "license": str,
    }
    assert all(header.values())
    assert "benchmark" in header["tags"]
    assert header["optuna_versions"] == [optuna.__version__]
    assert not re.search(r"</?\w+>|<!--", README)


def test_the_folder_has_the_files_of_the_template_and_nothing_else() -> None:
    names = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert names == {"LICENSE", "README.md", "__init__.py", "_jahs.py", "example.py", "requirements.txt"}
    assert (PACKAGE / "LICENSE").read_bytes() == (HERE.parents[1] / "LICENSE").read_bytes()


def test_readme_and_example_run_as_a_reader_runs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optunahub, "load_module", load_local)
    monkeypatch.chdir(HERE.parents[1])
    pages = [README, (HERE / "README.md").read_text(encoding="utf-8")]
    assert [len(list(run_blocks(page))) for page in pages] == [1, 1]
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")


@pytest.mark.parametrize("task", jahs.releases())
def test_values_are_those_of_the_benchmark(problem, task: str) -> None:
    instance = problem(task, ("valid_acc", "latency"), constraints={"n_params": 50_000}, seed=1)
    study = optuna.create_study(directions=instance.directions, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(instance, n_trials=5)
    assert task in instance.available_tasks
    for trial in study.trials:
        config = jahs.adapters.optuna.to_config(trial.params, instance.benchmark.space)
        answer = instance.benchmark.query(config, seed=1)
        assert trial.values == [answer.valid_acc, answer.latency]
        assert trial.constraints == {"n_params": answer.n_params - 50_000}


def test_a_sampler_finds_more_than_chance(problem) -> None:
    best = {}
    for name, sampler in (
        ("tpe", optuna.samplers.TPESampler(seed=0)),
        ("random", optuna.samplers.RandomSampler(seed=0)),
    ):
        study = optuna.create_study(directions=problem().directions, sampler=sampler)
        study.optimize(problem(), n_trials=60)
        best[name] = study.best_value
    assert best["tpe"] > best["random"]


def test_parts_of_the_space_are_searched_alone(problem) -> None:
    assert list(problem(search="nas").search_space) == ["Op1", "Op2", "Op3", "Op4", "Op5", "Op6"]
    assert "Op1" not in problem(search="hpo").search_space
    assert problem(metric_names=("n_macs",)).metric_names == ["n_macs"]
    assert "n_macs" in problem().available_metric_names
